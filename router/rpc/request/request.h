/*
 * request: one call to the router, from whichever door it came (Connect, gRPC and gRPC-Web through
 * runtime/http, native nng through router/io). Handlers see only this; so one dispatcher serves all
 * of them (DESIGN section 10).
 *
 * A request's life: router_dispatch -> exactly one of request_reply, request_reply_encoded or
 * request_fail, now or later, also after its caller has gone. Its message and arena live until that
 * call, and not after it. A stream (METHOD_STREAM) sends any number of messages before, and ends by
 * request_fail, which says why it ends.
 */
#ifndef ROUTER_RPC_REQUEST_REQUEST_H
#define ROUTER_RPC_REQUEST_REQUEST_H

#include "holdfast/v1/error.pb-c.h"
#include "idl/method.h"
#include "router/core/admission.h"
#include "runtime/base/large_reads.h"
#include "router/core/rate_limit.h"
#include "router/core/request_defaults.h"
#include "runtime/base/arena.h"
#include "runtime/trace/trace_context.h"

struct caller_call;
struct request;
struct router;

/* The door's way to answer; each ends the request. */
struct request_door {
    void (*reply)(struct request *request, const ProtobufCMessage *response);
    void (*reply_encoded)(struct request *request, struct slice response);
    /* NULL: reply_encoded is told what the source puts. */
    void (*reply_from)(struct request *request, const struct buf_source *source);
    void (*fail)(struct request *request, const Holdfast__V1__ErrorDetail *detail);
    /* One message of a stream; does not end the request. NULL: this door has no streams. */
    bool (*stream_send)(struct request *request, const ProtobufCMessage *message);
    /* Whether the caller may still call that method: its key may have been revoked. NULL: yes. */
    bool (*is_welcome)(const struct request *request);
};

struct request {
    /* ---- the door fills in ---- */
    const struct request_door *door;
    void *origin; /* The door's own. */
    const struct method_info *method;
    /* Of method->request, in `arena`; from router_dispatch on in the form that nodes know
     * (node_form.h). The elements of a batch are completed in place (scatter.h). */
    const ProtobufCMessage *message;
    struct slice encoded; /* The same in protobuf, if it came so; else empty. */
    struct arena *arena;
    uint64_t deadline_ms;             /* On the loop's clock. */
    struct trace_parent trace;        /* Zeros: the dispatcher begins one. */
    uint32_t scopes;                  /* Of enum scope: what the caller's key is for. */
    struct request_defaults defaults; /* Zeros: there are none. */
    const char *peer;                 /* "10.0.0.1:5123", for logs. */
    /* Who calls: the id of an API key, or "cert:<name>" of a native client. NULL or empty: anyone
     * may, and nothing belongs to one caller alone. */
    const char *key_id;
    const char
        *holder; /* Whose the registrations of servers are (api_key_holder); NULL: key_id's. */
    /* The same for ledgers, where a system acts, but only a name that is proven (caller_name.h):
     * NULL or empty: none is. */
    const char *author;
    /* Of a player's token: the one player that the request may be about; NULL: it brought none. In
     * `arena`. */
    const char *player;
    const char *key_servers; /* Names of servers that it may register; NULL or empty: any. */
    const char
        *key_grants; /* What it may make in a call (mint_guard.h); NULL or empty: no limit. */
    const char *key_per_day; /* And in a day; likewise. */
    uint64_t caller;         /* Stands for the caller's key or certificate, or else address. */
    /* What the caller's key may do a second, of which the door took one call: the others that a
     * batch stands for are taken inside router_dispatch, where alone it is good. NULL: no limit. */
    struct rate_bucket *allowance;
    uint32_t allowance_per_s;
    /* ---- the dispatcher's ---- */
    struct router *router;
    bool lacks_room; /* Before request_fail: a read whose answer has no room now. */
    uint64_t started_ns;
    uint64_t answer_by_ms; /* A little before the deadline, so that the answer arrives in time. */
    enum admission_priority priority;
    uint32_t weight;         /* Calls it stands for in admission; 0: not admitted. */
    bool holds_places;       /* So many are its caller's in router->places, too. */
    bool as_admin;           /* It names the authority system:admin. */
    bool as_system;          /* It names an authority system:<scope>, that one too. */
    uint32_t attempts;       /* Sent to nodes, for the slow log. */
    bool waited;             /* As its caller asked for: how long it took is no latency. */
    struct large_read large; /* What it is expected to be answered with; caller 0: not counted. */
    uint64_t held_bytes;     /* Of the router's budget for answers, until it is answered. */
    /* Of the call to a node that ended last; NULL: there was none. Lives in `arena`. */
    const struct caller_call *last_call;
    /* ---- the handler's ---- */
    void *state;
    /* The caller has gone: ends the request. Every handler that answers later sets it. */
    void (*cancel)(struct request *request);
    /* Streams: there is room again, after request_stream_send said that there was none. */
    void (*writable)(struct request *request);
};

/* How long a question may take that is asked for this request, so that its answer is in time:
 * `most_ms` or less, and at least 1. */
uint32_t request_time_left(const struct request *request, uint32_t most_ms);
void request_reply(struct request *request, const ProtobufCMessage *response);
void request_reply_encoded(struct request *request, struct slice response);
/* The same of what `source` puts, perhaps later and in another thread: it reads nothing but its
 * user, which is in the request's arena, and which no one changes any more. */
void request_reply_from(struct request *request, const struct buf_source *source);
void request_fail(struct request *request, const Holdfast__V1__ErrorDetail *detail);
/* The same error with all that the request adds to it: entity and op_id of `message` (the request's
 * own, or an element's of a batch), the trace of a failure, outcome and action. Texts in its arena.
 */
Holdfast__V1__ErrorDetail request_error(const struct request *request,
                                        const ProtobufCMessage *message,
                                        const Holdfast__V1__ErrorDetail *detail);
/* Whether the cluster did not do what it should, rather than refuse by the rules: such an error
 * names its trace, and has a line in the log. */
bool request_is_failure(Holdfast__V1__ErrorCode code);
/* Streams: sends a message. False: enough waits to be read; send no more before `writable`. */
bool request_stream_send(struct request *request, const ProtobufCMessage *message);
/*
 * Counts bytes that came for the answer in the router's budget, until the request ends. False: they
 * have no room; nothing is counted, and *ret_detail says so as THROTTLED. Never for what writes:
 * the caller is told what became of it.
 */
bool request_hold(struct request *request, size_t bytes, Holdfast__V1__ErrorDetail *ret_detail);
/* What it is expected to be answered with counts as its caller's until it ends. False: the caller
 * has its share of the room for answers on the way, as *ret_detail says, and nothing was taken. */
bool request_expect(struct request *request, Holdfast__V1__ErrorDetail *ret_detail);
/* Gives back all of that: it was let go of before the end. */
void request_release(struct request *request);
/*
 * Takes `weight` of the router's places for the request's caller: a key, a native client, a player
 * and all players together have `percent` of those for its priority, or less. False: it holds that
 * many, *ret_limit, and nothing was taken. The end of the request gives them back.
 */
bool request_take_places(struct request *request, uint32_t weight, uint32_t percent,
                         uint32_t *ret_limit);
/* Before that: the request takes no place after all. */
void request_give_places(struct request *request, uint32_t weight);
/* How nodes are told whose request it is; 0 where access is open (runtime/cluster/wire.h). */
/* Whose game servers it may register, renew and end; empty: anyone's. */
const char *request_holder(const struct request *request);
uint16_t request_asker(const struct request *request);
/* For streams, now and then. */
bool request_is_welcome(const struct request *request);
/* The caller has gone before nodes answered: what writes there has an unknown outcome, a read none.
 */
void request_fail_gone(struct request *request);
/* The same as request_fail with a code and a static sentence. */
void request_fail_text(struct request *request, Holdfast__V1__ErrorCode code, const char *message);
/* With OUTCOME_UNKNOWN, of a conflict in etcd that may be with the call itself. */
#define ETCD_CHANGED_SINCE                                                                         \
    "it may have been carried out, in whole or in part, and was changed since; repeat the call "   \
    "if "                                                                                          \
    "it is still wanted"

#endif
