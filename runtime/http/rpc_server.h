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
#ifndef RUNTIME_HTTP_RPC_SERVER_H
#define RUNTIME_HTTP_RPC_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/v1/error.pb-c.h"
#include "idl/method.h"
#include "runtime/base/arena.h"
#include "runtime/base/log.h"
#include "runtime/http/http_limits.h"
#include "runtime/loop/loop.h"
#include "runtime/trace/trace_context.h"

struct rpc_server;
struct tls_config;

/* Of the request's message, and so of the answer's. docs/json.md */
enum rpc_form { RPC_FORM_PROTO, RPC_FORM_JSON, RPC_FORM_PLAIN_JSON };

enum rpc_protocol { RPC_CONNECT, RPC_CONNECT_STREAM, RPC_GRPC, RPC_GRPC_WEB };

/* One call. Handlers read it and own `user`; the rest belongs to the server. */
struct rpc_request {
    const struct method_info *method;
    ProtobufCMessage *message; /* Of method->request, in `arena`.                            */
    struct slice encoded;      /* The request's protobuf bytes, empty if it came as JSON.    */
    struct arena *arena;       /* For the handler too; freed with the request.               */
    uint64_t deadline_ms;      /* loop_now_ms() time; the caller's, or the default. Not enforced
                                * here: the handler knows whether something was sent. A stream's
                                * may be any; UINT64_MAX when the caller names none.         */
    struct slice api_key;      /* "Authorization: Bearer <this>"; empty without one.         */
    /* "Holdfast-Authority" and "Idempotency-Key", of gRPC's metadata too; empty without one. */
    struct slice authority;
    struct slice idempotency_key;
    const char *peer;          /* "10.0.0.1:5123"                                            */
    struct trace_parent trace; /* From `traceparent`; zeros without one that is valid.       */
    enum rpc_protocol protocol;
    enum rpc_form form;
    bool cancelled; /* The caller is gone.               */
    void *user;     /* The handler's own; NULL at first. */
};

struct rpc_handlers {
    /* A call to a known public method. Required. */
    void (*on_request)(void *user, struct rpc_request *request);
    /* Asked before the request's message is read, which is NULL then: false refuses it with
     * *ret_detail, THROTTLED unless something else is put there; its texts are static, or in the
     * request's arena. What it leaves in request->user is there in on_request. NULL: all may. */
    bool (*may_enter)(void *user, struct rpc_request *request,
                      Holdfast__V1__ErrorDetail *ret_detail);
    /* The caller disconnected or reset the stream. The request must still be ended. Optional. */
    void (*on_cancel)(void *user, struct rpc_request *request);
    /* Streams: what was sent has drained below the stream's limit. Optional. */
    void (*on_writable)(void *user, struct rpc_request *request);
    /* True: the method answers with a stream. NULL: every method is unary. */
    bool (*is_stream)(void *user, const struct method_info *method);
    /* For /healthz and grpc.health.v1: ready to serve? NULL: always. */
    bool (*is_healthy)(void *user);
    void *user;
};

struct rpc_server_config {
    struct loop *loop;         /* Its thread runs everything here.                             */
    const char *address;       /* Numeric: "127.0.0.1", "::".                                  */
    uint16_t port;             /* 0: any free one; see rpc_server_port.                        */
    bool reuse_port;           /* SO_REUSEPORT, one server per worker.                         */
    struct tls_config *tls;    /* NULL: plain. Held while the server lives. Its ALPN names
                                * should be "h2" and "http/1.1".                               */
    const char *cors_origins;  /* Comma-separated origins, or "*"; NULL: no CORS headers.      */
    struct http_limits limits; /* A field of 0 takes its default.                              */
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

/* Serves a stream socket that is connected already, as if it had been accepted; takes it over. For
 * tests and fuzzers, which have no network. */
void rpc_server_adopt(struct rpc_server *server, int fd);

/* New connections use this certificate from now on. CHECK: a server that began plain stays so. */
void rpc_server_set_tls(struct rpc_server *server, struct tls_config *tls);
/* Stops accepting; connections close after the requests they have (GOAWAY, Connection: close). */
void rpc_server_drain(struct rpc_server *server);
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
/* Fails with `detail`; the map to HTTP, Connect and gRPC codes is rpc_status.h. Ends the
 * request. */
void rpc_fail(struct rpc_request *request, const Holdfast__V1__ErrorDetail *detail);
/* The same with a code and a sentence only. */
void rpc_fail_text(struct rpc_request *request, Holdfast__V1__ErrorCode code, const char *message);

/* Streams: sends one message of the stream (the method is one that is_stream names). False: more
 * than stream_bytes_max wait now; send the next one after on_writable. */
bool rpc_stream_send(struct rpc_request *request, const ProtobufCMessage *message);
/* Ends the stream; `detail` NULL for success. Ends the request. */
void rpc_stream_end(struct rpc_request *request, const Holdfast__V1__ErrorDetail *detail);

#endif
