/*
 * lane: carries copied parcels one way, from the loop of one thread to that of another. What a
 * round sends leaves at its end in one push, so a burst costs one wake-up (DESIGN section 9).
 * Knows nothing of what parcels mean. Bounded: a sender that may lose or refuse a parcel asks
 * first.
 */
#ifndef NODE_IO_WORKER_LANE_H
#define NODE_IO_WORKER_LANE_H

#include "node/core/shard/shard.h"
#include "runtime/loop/loop.h"
#include "runtime/loop/mailbox.h"

#define LANE_BYTES_MAX (64u * 1024u * 1024u)

/* There are two lanes each way. What the cluster says to itself (MESSAGE, RECORD, ROLE, DAMAGE,
 * SAVED) has its own, with room of its own: callers' requests and answers never fill it. */
enum lane_use { LANE_SYSTEM, LANE_CALLS, LANE_USES };

enum parcel_kind {
    PARCEL_CALL,      /* shard, id: call, method, deadline_ms, bytes: request,
                         arrived_ns, number, trace                            */
    PARCEL_CANCEL,    /* shard, id: call                                      */
    PARCEL_MESSAGE,   /* id: replica it is from or for, bytes, trace          */
    PARCEL_RECORD,    /* shard, record                                        */
    PARCEL_ANSWER,    /* id: call, reply, bytes: body                         */
    PARCEL_ROLE,      /* shard                                                */
    PARCEL_DAMAGE,    /* shard, bytes: text with its final 0                  */
    PARCEL_DELIVER,   /* shard: from, delivery, bytes: request                */
    PARCEL_DELIVERED, /* shard, id: token, reply: its status, bytes: body   */
    PARCEL_SAVED      /* Every shard's checkpoint is written.                 */
};

enum lane_use parcel_lane(enum parcel_kind kind);

struct parcel {
    struct mailbox_node node;
    enum parcel_kind kind;
    uint32_t shard;
    uint32_t method;
    uint64_t id;
    uint64_t deadline_ms;
    struct rep_record record;
    struct shard_reply reply;
    struct shard_delivery delivery;
    struct slice bytes;  /* Copied by lane_send. */
    uint64_t arrived_ns; /* CALL, as in worker_request, */
    uint64_t number;
    uint8_t trace[16]; /* and MESSAGE; zeros: none. */
};

struct lane {
    struct mailbox mailbox;
    struct loop_hook hook;
    struct mailbox_node *newest, *oldest; /* Of this round. */
    atomic_uint_fast64_t parcels, bytes;  /* Sent, and not yet received. */
    uint64_t parcels_max;
    void (*receive)(void *user, const struct parcel *parcel);
    void *user;
};

struct lane_options {
    struct loop *from;
    struct loop *to;
    uint64_t parcels_max;
    void (*receive)(void *user, const struct parcel *parcel); /* On the thread of `to`. Borrowed. */
    void *user;
};

/* Before either loop's thread runs, or on both. */
void lane_init(struct lane *lane, const struct lane_options *options);
/* When neither loop runs any more; what is still under way is dropped unseen. */
void lane_deinit(struct lane *lane);

/* On the sender's thread. False: so much is under way that calls are refused, messages lost. */
bool lane_has_room(const struct lane *lane, size_t bytes);
/* On the sender's thread: copies the parcel and its bytes. In order; never lost. */
void lane_send(struct lane *lane, const struct parcel *parcel);

#endif
