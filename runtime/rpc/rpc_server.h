/*
 * rpc_server: the public endpoint. One port serves Connect (JSON and binary, unary and streaming
 * envelopes), gRPC and gRPC-Web over HTTP/1.1 and HTTP/2, with or without TLS, plus GET /healthz
 * and grpc.health.v1. JSON is canonical for those who speak Connect's protocol, and plain for
 * everybody else. It parses, limits and answers; who may call what, and what a call does, is
 * decided by the handlers. DESIGN sections 9, 10 and 11.
 *
 * Everything runs on the loop's thread; no call here blocks. Answers of one loop round leave in
 * one write per connection.
 *
 * A request's life:  on_request -> exactly one of rpc_reply, rpc_reply_encoded, rpc_fail or
 * rpc_stream_end, now or later, also after on_cancel (the answer then goes nowhere). The request,
 * its message and its arena live until that call, and not after it.
 */
#ifndef RUNTIME_RPC_RPC_SERVER_H
#define RUNTIME_RPC_RPC_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/log.h"
#include "runtime/base/turnstile.h"
#include "runtime/http/http_limits.h"
#include "runtime/rpc/rpc_request.h"
#include "runtime/loop/loop.h"

struct rpc_server;
struct tls_config;

struct rpc_server_config {
    struct loop *loop;        /* Its thread runs everything here.                             */
    const char *address;      /* Numeric: "127.0.0.1", "::".                                  */
    uint16_t port;            /* 0: any free one; see rpc_server_port.                        */
    bool reuse_port;          /* SO_REUSEPORT, one server per worker.                         */
    struct tls_config *tls;   /* NULL: plain. Held while the server lives. Its ALPN names
                               * should be "h2" and "http/1.1".                               */
    const char *cors_origins; /* Comma-separated origins, or "*"; NULL: no CORS headers.      */
    const char *hosts;        /* Comma-separated names that Host may have, without ports; NULL: any.
                               * Against pages that let their own name point here. Also "*",
                               * "*.<ending>", and what rpc_host.h has.           */
    struct budget *answers; /* Counts answers that wait to be sent; borrowed. NULL: nothing does. */
    struct http_limits limits; /* A field of 0 takes its default.                              */
    /* No limit of an address holds for these; copied. May be NULL. */
    const struct address_ranges *proxies;
    struct rpc_handlers handlers;
    const struct log *log; /* May be NULL. */
};

/*
 * Listens. `config` is copied, the strings in it are not.
 *
 * ERR_INVALID: address is not numeric. ERR_IO: socket, bind or listen failed (the log says why).
 */
NODISCARD err rpc_server_new(const struct rpc_server_config *config,
                             struct rpc_server **ret_server);
uint16_t rpc_server_port(const struct rpc_server *server);
const struct http_stats *rpc_server_stats(const struct rpc_server *server);
/* Its connections and handshakes, and what was refused. */
const struct turnstile_stats *rpc_server_turnstile(const struct rpc_server *server);

/* Serves a stream socket that is connected already, as if it had been accepted; takes it over. For
 * tests and fuzzers, which have no network. */
void rpc_server_adopt(struct rpc_server *server, int fd);

/* New connections use this certificate from now on. CHECK: a server that began plain stays so. */
void rpc_server_set_tls(struct rpc_server *server, struct tls_config *tls);
/* Stops accepting; connections close after the requests they have (GOAWAY, Connection: close). */
void rpc_server_drain(struct rpc_server *server);
/* After rpc_server_drain: whether each client has taken the last of its answers. */
bool rpc_server_is_drained(const struct rpc_server *server);
/* Closes the listener and every connection (on_cancel for each open request). on_stopped is
 * called from the loop once all handles are closed; the server may be freed there or later. */
void rpc_server_stop(struct rpc_server *server, void (*on_stopped)(void *user), void *user);
/* After on_stopped, and after every request was ended. NULL is fine. */
void rpc_server_free(struct rpc_server *server);

/* Answers with a message of method->response. Ends the request. */
void rpc_reply(struct rpc_request *request, const ProtobufCMessage *response);
/* Answers with the protobuf encoding of method->response: passed through for binary callers,
 * decoded and encoded for those of either JSON. INTERNAL if it does not decode. Ends the request.
 */
void rpc_reply_encoded(struct rpc_request *request, struct slice response);
/* The same of what `source` puts. A large answer it puts later, in another thread: it reads nothing
 * but its user, which lives as long as the request's arena, and which no one changes any more. */
void rpc_reply_from(struct rpc_request *request, const struct buf_source *source);
/* Fails with `detail`; the map to HTTP, Connect and gRPC codes is rpc_status.h. Ends the
 * request. */
void rpc_fail(struct rpc_request *request, const Holdfast__V1__ErrorDetail *detail);

/* Streams: sends one message of the stream (the method is one that is_stream names). False: more
 * than stream_bytes_max wait now; send the next one after on_writable. */
bool rpc_stream_send(struct rpc_request *request, const ProtobufCMessage *message);
/* Ends the stream; `detail` NULL for success. Ends the request. */
void rpc_stream_end(struct rpc_request *request, const Holdfast__V1__ErrorDetail *detail);

#endif
