/*
 * fixture_one_shard: a whole shard with one replica: every write is durable at once, every row that
 * is not in memory is absent. The test takes in what each step brings. For tests only.
 */
#ifndef NODE_RPC_FIXTURE_ONE_SHARD_H
#define NODE_RPC_FIXTURE_ONE_SHARD_H

#include "node/core/shard/shard.h"
#include "runtime/base/id.h"

#define ONE_SHARD_UNIX_MS 1790000000000u

struct one_shard {
    struct shard *shard;
    uint64_t now_ms;
    uint64_t wall_ms; /* By which the wall clock is ahead of it. */
    uint64_t calls;
    /* Replies and incidents of a step, with `user`. */
    void (*taken)(void *user, const struct shard_out *out);
    void *user;
    /* Is to answer with SHARD_ROWS, now or later. NULL: the database is empty. */
    void (*load)(void *user, const struct need *need);
};

/* A step, and all that follows from it. */
void one_shard_step(struct one_shard *one, struct shard_event event);
/* A call with 10 s; its number is one->calls. */
void one_shard_call(struct one_shard *one, uint32_t method, const ProtobufCMessage *request);
/* An entry that the owner makes itself, from owner_op_encode. */
void one_shard_propose(struct one_shard *one, struct slice body);
/* A fresh UUIDv7. */
void one_shard_op_id(const struct one_shard *one, char text[UUID_TEXT_SIZE]);
/* The first policy, without which no shard serves: gold. */
void one_shard_policy(struct one_shard *one);

#endif
