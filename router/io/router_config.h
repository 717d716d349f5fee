/* router_config: every option of holdfast-router, in one table. See runtime/config/config.h. */
#ifndef ROUTER_IO_ROUTER_CONFIG_H
#define ROUTER_IO_ROUTER_CONFIG_H

#include "runtime/config/process_config.h"

/* clang-format off */
/*    field                type      default                  min  max       unit         doc */
#define ROUTER_CONFIG(X)                                                                                   \
    X(name,                TEXT,     "router",                1,   63,       "",          "name in logs and to nodes") \
    X(cluster,             TEXT,     "dev",                   1,   63,       "",          "cluster name: prefix of its etcd keys") \
    X(listen,              ADDRESS,  "127.0.0.1:7400",        3,   255,      "host:port", "public endpoint: Connect, gRPC, gRPC-Web; numeric host") \
    X(public_tls_cert,     PATH,     "",                      0,   4000,     "",          "certificate of the public endpoint (PEM); empty: plain") \
    X(public_tls_key,      PATH,     "",                      0,   4000,     "",          "key of public_tls_cert (PEM)") \
    X(access,              TEXT,     "keys",                  4,   4,        "",          "who may call: keys (an API key each, see holdfast key), or open (anyone)") \
    X(key_rate,            U32,      "0",                     0,   1000000,  "a second",  "requests of one API key here, unless its own record says; 0: no limit") \
    X(address_rate,        U32,      "0",                     0,   1000000,  "a second",  "requests of one client address (IPv6: one /64); 0: no limit") \
    X(failure_rate,        U32,      "50",                    1,   1000000,  "a second",  "requests of one address that bring no valid key; more are THROTTLED") \
    X(cors_origins,        TEXT,     "",                      0,   4000,     "",          "origins of web pages that may call, or *; empty: none") \
    X(native_listen,       ADDRESS,  "",                      0,   255,      "host:port", "nng endpoint for native clients; empty: none") \
    X(node_transport,      TEXT,     "nng",                   3,   4,        "",          "what dials nodes: nng or peer (libuv); the other side may differ") \
    PROCESS_CONFIG(X) \
    X(in_flight_max,       U32,      "20000",                 1,   60000,    "",          "calls in flight; more are THROTTLED, bulk first") \
    X(connections_max,     U32,      "10000",                 1,   100000,   "",          "public connections; more close the one idle for longest, or are closed") \
    X(body_size_max,       SIZE,     "4MiB",                  1024, 4194304, "bytes",     "body of one public request") \
    X(header_size_max,     SIZE,     "16KiB",                 1024, 65536,   "bytes",     "headers of one public request; 64 at most") \
    X(bodies_size_max,     SIZE,     "256MiB",                4194304, 4294967295, "bytes", "bodies being received, all connections together") \
    X(answers_size_max,    SIZE,     "256MiB",                1048576, 4294967295, "bytes", "answers not read yet, all together; past it slow readers are closed") \
    X(streams_max,         U32,      "256",                   1,   1000,     "",          "HTTP/2 streams open at once on one connection") \
    X(stream_resets_max,   U32,      "50",                    1,   10000,    "a second",  "HTTP/2 streams of one connection that end by a reset; burst 20 times") \
    X(control_frames_max,  U32,      "500",                   10,  100000,   "a second",  "HTTP/2 SETTINGS, PING, PRIORITY, empty frames of one connection; burst 4 times") \
    X(header_timeout,      DURATION, "10s",                   100, 300000,   "ms",        "from a request's first byte to its last header; and a TLS handshake") \
    X(body_timeout,        DURATION, "30s",                   100, 300000,   "ms",        "from the last header to the body's end") \
    X(write_timeout,       DURATION, "20s",                   100, 300000,   "ms",        "an answer of which the client reads nothing for so long is given up") \
    X(idle_timeout,        DURATION, "60s",                   100, 3600000,  "ms",        "a connection without a request for so long is closed") \
    X(deadline_default,    DURATION, "10s",                   100, 60000,    "ms",        "deadline of a request that names none") \
    X(deadline_max,        DURATION, "60s",                   100, 60000,    "ms",        "longest deadline a request may name") \
    X(slow_request,        DURATION, "1s",                    1,   3600000,  "ms",        "requests slower than this are logged, with where their time went") \
    X(drain_timeout,       DURATION, "15s",                   0,   300000,   "ms",        "on SIGTERM: how long open requests may take") \
    PROCESS_LOG_CONFIG(X)
/* clang-format on */

CONFIG_STRUCT(router_config, ROUTER_CONFIG)

#endif
