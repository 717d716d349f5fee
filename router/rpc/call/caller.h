/*
 * caller: the shell around router/core/retry: carries one request to the owner of its shard, again
 * and again as the core says, and tells its one outcome. Waiting calls are driven at once when the
 * shard's record changes or a link becomes ready (DESIGN section 10).
 *
 * Memory of a call is the user's, so that a request's arena can hold it; it must stay until `done`.
 * On the loop's thread only.
 */
#ifndef ROUTER_RPC_CALL_CALLER_H
#define ROUTER_RPC_CALL_CALLER_H

#include "router/core/retry.h"
#include "router/rpc/call/node_port.h"
#include "runtime/base/arena.h"
#include "runtime/cluster/shard_map.h"

/* Behind a cut a member gives no answer, and another one may: so long one is waited for. */
#define CALLER_MEMBER_MS 1500u

struct caller;

struct caller_options {
    struct loop *loop;
    const struct shard_map *map; /* Whose changes are told by caller_shard_changed. */
    struct node_port port;
    uint64_t seed; /* Spreads pauses; any number. */
};

struct caller *caller_new(const struct caller_options *options);
/* Open calls get no callback. NULL is allowed. */
void caller_free(struct caller *caller);

/* What came of a call. `detail` NULL: it was answered, `body` is the encoded response. Else it
 * failed: as a node says, told by idl/error_tell.h, or as the router does.
 * All borrowed during `done`. */
struct caller_result {
    struct slice body;
    const Holdfast__V1__ErrorDetail *detail;
};

/* A place in the list of a shard's calls. */
struct caller_place {
    struct caller_place *next;
    struct caller_place *previous;
};

/* Where a call's time went, for the log of slow requests. `sent_ns` and at_ms are measured from
 * started_ns; the clock is read for repeats alone. */
#define CALLER_ATTEMPTS_TOLD 4u
struct caller_trail {
    uint64_t sent_ns;                     /* Of the last attempt. */
    uint64_t first_ns;                    /* Of the first. */
    uint64_t number;                      /* Of the last attempt's frame: its span. */
    uint64_t nodes[CALLER_ATTEMPTS_TOLD]; /* Whom the first attempts went to, */
    uint32_t at_ms[CALLER_ATTEMPTS_TOLD]; /* and when. */
    uint32_t node_us;                     /* What the node says that it spent; 0: it did not. */
    bool answered;
};

struct caller_call {
    /* ---- the user fills in ---- */
    uint16_t method;
    uint8_t priority;
    uint16_t asker; /* request_asker. */
    uint32_t shard;
    uint64_t deadline_ms; /* On the loop's clock. */
    uint64_t started_ns;  /* loop_clock_ns of its request; what the trail is measured from. */
    bool at_once;         /* That is now. */
    const uint8_t *trace; /* FRAME_TRACE_SIZE bytes, or NULL. */
    struct slice body;    /* Encoded request; must stay until done. */
    /* `body` with who asks behind it (runtime/cluster/caller_name.h), for nodes that take that;
     * empty: nothing is to be told. */
    struct slice called;
    /* A member that was asked before, in a batch that went whole; 0: none. Others are asked first.
     * `asked_unknown`: it may have carried this out. */
    uint64_t asked;
    bool asked_unknown;
    /* Never called from inside caller_start or caller_cancel. May start other calls. */
    void (*done)(struct caller_call *call, const struct caller_result *result);
    void *user;
    /* ---- the caller's own ---- */
    struct caller *caller;
    struct retry_call retry;
    struct loop_timer timer;
    bool at_members;            /* Any member of the shard may answer it, */
    uint32_t turn;              /* and as many attempts were made at some. */
    uint64_t sent;              /* Of node_port.start; 0: none open. */
    struct retry_action ending; /* What to tell from the timer; see caller_start. */
    struct caller_place place;
    struct caller_trail trail;
};

/* call->shard < CLUSTER_SHARDS_MAX (CHECK). */
void caller_start(struct caller *caller, struct caller_call *call);
/* Forgets a call that is not done: no `done`. The node is told; the outcome is unknown. */
void caller_cancel(struct caller_call *call);

/* The record of that shard changed in the map. */
void caller_shard_changed(struct caller *caller, uint32_t shard);
/* The link to that node became ready: calls that wait for it go now. */
void caller_node_ready(struct caller *caller, uint64_t replica_id);

struct caller_stats {
    uint64_t calls;
    uint64_t attempts; /* Sent to nodes. */
    uint64_t waits;    /* Pauses between attempts. */
    uint64_t unknown;  /* Ended as OUTCOME_UNKNOWN. */
    uint32_t open;
};
struct caller_stats caller_stats(const struct caller *caller);

#endif
