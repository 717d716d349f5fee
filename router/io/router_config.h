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
    X(key_rate,            U32,      "5000",                  0,   1000000,  "a second",  "requests of one API key here, unless its own record says; 0: no limit") \
    X(player_rate,         U32,      "200",                   0,   1000000,  "a second",  "calls of one API key for one player here, in batches too; 0: no limit") \
    X(register_rate,       U32,      "100",                   0,   1000000,  "a second",  "game servers that one API key or native client registers here; 0: no limit") \
    X(count_age,           DURATION, "5s",                    2000, 10000,   "ms",        "how old a count of favorites may be that is told without asking the shards") \
    X(count_memo_size,     SIZE,     "16MiB",                 65536, 1073741824, "bytes", "counts of favorites kept; what was asked for longest ago goes first") \
    X(metadata_age,        DURATION, "10s",                   0,   3600000,  "ms",        "how old the metadata of a target may be that lists tell without asking again") \
    X(metadata_timeout,    DURATION, "1s",                    50,  10000,    "ms",        "how long a list waits for the metadata of its targets; then it goes out without") \
    X(metadata_memo_size,  SIZE,     "16MiB",                 65536, 1073741824, "bytes", "metadata of targets kept") \
    X(metadata_hosts,      TEXT,     "*",                     0,   4000,     "",          "hosts that a collection's metadata_url may name, *.example for all that end so; * is any; empty: none") \
    X(metadata_plain_hosts, TEXT,    "",                      0,   4000,     "",          "hosts of metadata_url that may be asked by http://, as this machine may; others by https:// alone") \
    X(metadata_ca,         PATH,     "",                      0,   4000,     "",          "CAs for a metadata_url at https (PEM); empty: the system's") \
    X(address_rate,        U32,      "0",                     0,   1000000,  "a second",  "requests of one client address (IPv6: one /64); 0: no limit") \
    X(failure_rate,        U32,      "50",                    1,   1000000,  "a second",  "requests of one address that bring no valid key; more are THROTTLED") \
    X(player_keys,         PATH,     "",                      0,   4000,     "",          "keys of players' tokens: a JWK Set, in a file or at an http(s) URL; empty: none are taken") \
    X(player_keys_ca,      PATH,     "",                      0,   4000,     "",          "CAs for player_keys at an https URL (PEM); empty: the system's") \
    X(player_audience,     TEXT,     "",                      0,   255,      "",          "what a player's token has to name in aud; required with player_keys") \
    X(player_issuer,       TEXT,     "",                      0,   1000,     "",          "what a player's token has to name in iss; empty: anything") \
    X(player_skew,         DURATION, "30s",                   0,   300000,   "ms",        "how far the clock of the issuer of players' tokens may differ") \
    X(player_token_rate,   U32,      "20",                    0,   1000000,  "a second",  "requests of one player by token here; 0: no limit") \
    X(player_address_writes, U32,    "0",                     0,   1000000,  "a minute",  "writes by players' tokens from one client address (IPv6: one /64) here; 0: no limit") \
    X(player_device_writes, U32,     "120",                   0,   1000000,  "a minute",  "writes by players' tokens under one Holdfast-Device header here; 0: no limit") \
    X(player_token_share,  U32,      "20",                    1,   100,      "percent",   "of the loop's time, for signatures of players' tokens; half of it for addresses without a token refused in the last seconds") \
    X(cors_origins,        TEXT,     "",                      0,   4000,     "",          "origins of web pages that may call, or *; empty: none") \
    X(hosts_allowed,       TEXT,     "",                      0,   4000,     "",          "more names that Host may have where anyone may call (access open), *.example for all that end so; * is any") \
    X(native_listen,       ADDRESS,  "",                      0,   255,      "host:port", "nng endpoint for native clients; empty: none") \
    X(node_transport,      TEXT,     "nng",                   3,   4,        "",          "what dials nodes: nng or peer (libuv); the other side may differ") \
    PROCESS_CONFIG(X) \
    X(in_flight_max,       U32,      "20000",                 1,   60000,    "",          "calls in flight; more are THROTTLED, bulk first") \
    X(in_flight_key_share, U32,      "50",                    1,   100,      "percent",   "of in_flight_max that one API key or native client may hold, or all players' tokens; one call passes always") \
    X(connections_max,     U32,      "10000",                 1,   100000,   "",          "public connections; for more, those without a valid key yet go first, then idle ones") \
    X(address_connections_max, U32,  "0",                     0,   100000,   "",          "public connections of one address (IPv6: one /64); 0: a quarter of connections_max") \
    X(proxies,             LIST,     "",                      0,   64,       "CIDRs",     "addresses of proxies: no limit on connections or handshakes of one address holds for them") \
    X(body_size_max,       SIZE,     "4MiB",                  1024, 4194304, "bytes",     "body of one public request") \
    X(header_size_max,     SIZE,     "16KiB",                 1024, 65536,   "bytes",     "headers of one public request; 64 at most") \
    X(bodies_size_max,     SIZE,     "256MiB",                4194304, 4294967295, "bytes", "bodies being received or with nodes, all connections together") \
    X(bodies_key_share,    U32,      "25",                    1,   100,      "percent",   "of bodies_size_max that one API key may hold; never less than one body") \
    X(bodies_address_share, U32,     "12",                    1,   100,      "percent",   "of bodies_size_max that one address may hold, behind a proxy the proxy's; never less than one body") \
    X(heads_size_max,      SIZE,     "128MiB",                1048576, 4294967295, "bytes", "heads of requests that are not answered, all connections together") \
    X(heads_address_share, U32,      "25",                    1,   100,      "percent",   "of heads_size_max that one address may hold, behind a proxy the proxy's") \
    X(heads_connection_max, SIZE,    "2MiB",                  65536, 67108864, "bytes",   "heads of requests of one connection that are not answered") \
    X(answers_size_max,    SIZE,     "0",                     0,   4294967295, "bytes",  "answers gathered or not read yet, together; past it reads are THROTTLED and slow readers closed; 0: a sixteenth of the memory, else at least 1MiB") \
    X(streams_max,         U32,      "256",                   1,   1000,     "",          "HTTP/2 streams open at once on one connection") \
    X(stream_resets_max,   U32,      "50",                    1,   10000,    "a second",  "HTTP/2 streams of one connection that end by a reset; burst 20 times") \
    X(control_frames_max,  U32,      "500",                   10,  100000,   "a second",  "HTTP/2 frames of one connection that bring no request and no body, window updates for nothing, and streams refused; burst 4 times") \
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
