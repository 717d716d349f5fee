/*
 * rpc_call: the inside of rpc_server, shared by the files that read calls and answer them. Lowest
 * first, and nothing uses what stands behind it: rpc_call, rpc_error (bodies of errors),
 * rpc_payload (messages as callers read them), rpc_work (large ones), rpc_answer (writes answers),
 * rpc_refusal (answers that refuse), rpc_message and rpc_rest (read requests), rpc_head,
 * rpc_server. Private to runtime/rpc.
 */
#ifndef RUNTIME_RPC_RPC_CALL_H
#define RUNTIME_RPC_RPC_CALL_H

#include "runtime/codec/gzip.h"
#include "runtime/codec/json_codec.h"
#include "runtime/http/http_state.h"
#include "runtime/rpc/rpc_request.h"
#include "runtime/rest/rest_route.h"

#define RPC_METHOD_SLOTS      512u
#define RPC_THROTTLE_RETRY_MS 1000u
#define RPC_WORK_THREADS      2u
#define RPC_REPLY_MEMORY_MAX  (256u << 20) /* A node's answer is trusted more than a request. */

/* An envelope: u8 flags, u32 big-endian size of what follows it. */
#define RPC_ENVELOPE_BYTES    5u
#define RPC_FLAG_PACKED       0x01u /* Compressed as the header of the encoding says. */
#define RPC_FLAG_CONNECT_END  0x02u /* Connect: the last one, JSON. */
#define RPC_FLAG_WEB_TRAILERS 0x80u /* gRPC-Web: the trailers, in the last one. */

struct rpc_call {
    struct rpc_request request;
    struct rpc_server *server;
    struct http_exchange *exchange;
    struct arena arena;
    struct rpc_call *next_free;
    size_t body_max;       /* Of its message, as sent and unpacked. */
    bool is_health;        /* grpc.health.v1, which has no method of ours. */
    bool admitted;         /* With the handlers, and counted.                      */
    bool refused_there;    /* ... who did not let it in.                           */
    bool begun;            /* The stream's head was sent.                          */
    bool packed;           /* The request's message may be compressed.             */
    bool packed_whole;     /* gRPC-Web: its body is, as a whole.                   */
    bool packs;            /* The stream's messages may be compressed.             */
    bool working;          /* It was answered, and its answer is made: rpc_work.h. */
    bool unknown_encoding; /* Refused for it: the answer says which ones there are. */

    /* REST (rpc_rest.h). */
    bool is_rest;
    const struct rest_found *found; /* In the arena; NULL: no method was found yet. */
    struct slice if_match;          /* The header; empty without one.               */
    struct slice if_none_match;     /* Likewise.                                    */
    const char *allow;              /* 405: the verbs of the path.                  */
};

/* What making payloads needs and keeps for the next; of one thread at a time. */
struct rpc_tools {
    struct json_codec codec;
    struct gzip gzip;
    struct buf packed; /* Scratch. */
};

/* rpc_work.h. A zeroed one is valid. */
struct rpc_workshop {
    struct rpc_work *first, *last; /* Those that wait, in order. */
    uint32_t busy;                 /* Calls that are worked on. */
    uint64_t account;              /* Of the caller whose turn was last. */
    /* From `busy` on those that no thread has; NULL: not made yet. */
    struct rpc_tools *tools[RPC_WORK_THREADS];
    void (*idle)(void *user); /* NULL: no one waits for it. */
    void *idle_user;
};

struct rpc_server {
    struct http_server http;
    struct rpc_handlers handlers;
    const char *cors_origins;
    const char *hosts;
    struct rpc_tools tools;
    struct rpc_workshop workshop;
    struct buf scratch;  /* Of the answer being written. */
    struct buf details;  /* Of the error being written. */
    struct buf unpacked; /* Of the message being read. */
    void (*on_stopped)(void *user);
    void *stopped_user;
    struct rpc_call *free_calls;
    size_t free_count;
    const struct method_info *methods[RPC_METHOD_SLOTS]; /* Public ones, by hash of the name. */
};

/* The protocol and the form of the request, by its head. False: its Content-Type is none of ours,
 * and what is set then is no more than a guess. */
bool rpc_call_read_form(struct rpc_call *call);
/* Of either JSON. */
static inline enum json_form rpc_call_json_form(const struct rpc_call *call)
{
    return call->request.form == RPC_FORM_PLAIN_JSON ? JSON_PLAIN : JSON_CANONICAL;
}

/* Whether the caller takes gzip: it says so, or says nothing and sends gzip itself. */
bool rpc_call_may_pack(const struct rpc_call *call);
void rpc_tools_init(struct rpc_tools *tools);
void rpc_tools_deinit(struct rpc_tools *tools);
struct rpc_call *rpc_call_new(struct rpc_server *server, struct http_exchange *exchange);
/* Resets the call and gives it back. */
void rpc_call_release(struct rpc_call *call);

#endif
