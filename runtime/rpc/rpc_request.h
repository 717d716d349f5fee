/*
 * rpc_request: a call as the handlers of an rpc_server see it, whatever its protocol. Data only.
 */
#ifndef RUNTIME_RPC_RPC_REQUEST_H
#define RUNTIME_RPC_RPC_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/v1/error.pb-c.h"
#include "idl/method.h"
#include "runtime/base/arena.h"
#include "runtime/trace/trace_context.h"

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
    struct slice device;       /* "Holdfast-Device": names what the caller runs on; likewise. */
    uint64_t account;          /* may_enter: names the key whose share of the memory for bodies this
                                * request takes; 0: that of its address alone.               */
    bool is_full;              /* may_enter: refused it, and would refuse any other call now. */
    bool lacks_room;           /* Before rpc_fail: its answer has no room now, and another like it
                                * would have none.                                           */
    const char *peer;          /* "10.0.0.1:5123"                                            */
    struct trace_parent trace; /* From `traceparent`; zeros without one that is valid.       */
    enum rpc_protocol protocol;
    enum rpc_form form;
    bool streams;   /* Ends by rpc_stream_end, others by rpc_reply or rpc_fail. A method that
                     * is_stream names does not stream under its REST path.              */
    bool cancelled; /* The caller is gone.               */
    void *user;     /* The handler's own; NULL at first. */
};

struct rpc_handlers {
    /* A call to a known public method. Required. */
    void (*on_request)(void *user, struct rpc_request *request);
    /* Asked when the request's head is whole, before any of its body is read; the message is NULL
     * then. False refuses it with *ret_detail, THROTTLED unless something else is put there; its
     * texts are static, or in the request's arena. Time may pass until on_request, which may never
     * come: what was found here is to be found again there. NULL: all may. */
    bool (*may_enter)(void *user, struct rpc_request *request,
                      Holdfast__V1__ErrorDetail *ret_detail);
    /* An error is answered to a request that neither may_enter refused nor on_request had: what it
     * brought was bad or too much, or there was no room for it. `method` is NULL where it names
     * none. Optional. */
    void (*on_refused)(void *user, const struct rpc_request *request, Holdfast__V1__ErrorCode code);
    /* The caller disconnected or reset the stream. The request must still be ended. Optional. */
    void (*on_cancel)(void *user, struct rpc_request *request);
    /* Streams: what was sent has drained below the stream's limit. Optional. */
    void (*on_writable)(void *user, struct rpc_request *request);
    /* True: the method answers with a stream. NULL: every method is unary. */
    bool (*is_stream)(void *user, const struct method_info *method);
    /* How long the method's requests may be; NULL: method_request_bytes_max. */
    uint32_t (*request_bytes_max)(void *user, const struct method_info *method);
    /* For /healthz and grpc.health.v1: ready to serve? NULL: always. */
    bool (*is_healthy)(void *user);
    void *user;
};

#endif
