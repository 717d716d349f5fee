/*
 * read_hold: reads of several players that keep new writes of these players waiting for a moment,
 * so that a read comes to its end although others write all the time. Pure; an owner's memory, and
 * never state: what a read tells is proven by what it has read, whether or not anything waited for
 * it (router/core/txn_read.h). docs/transactions.md.
 *
 * Fair to both: a player's writes wait for ms_max at most, however many join meanwhile, and
 * then for READ_HOLD_REST times as long no read may hold them up, but for what was saved up.
 */
#ifndef NODE_CORE_SHARD_READ_HOLD_H
#define NODE_CORE_SHARD_READ_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "node/core/player/player.h"
#include "runtime/base/buf.h"

#define READ_HOLDS_MAX        256u /* Players of one shard, at most. */
#define READ_HOLD_READERS_MAX 16u  /* Of one player. */
#define READ_HOLD_PASS_MAX    8u
#define READ_HOLD_REST        20u
/* So many times ms_max of rest may be owed when a read begins to hold a player; and if it has
 * waited for long. */
#define READ_HOLD_OWED        5u
#define READ_HOLD_OWED_URGENT 15u
/* More is forgiven: one that lasted for ms_max, since an owner died meanwhile, shuts no read out
 * for longer than five times that. */
#define READ_HOLD_OWED_MAX 20u

/* What one read asks for. */
struct read_ask {
    struct slice entity;
    uint64_t reader; /* 0: no one (CHECK). */
    bool urgent;
    struct txn_ref pass[READ_HOLD_PASS_MAX]; /* Transactions that need not wait. */
    uint32_t pass_count;
};

struct read_holder {
    uint64_t reader;
    struct txn_ref pass[READ_HOLD_PASS_MAX];
    uint32_t pass_count;
};

struct read_hold {
    struct buf entity;
    struct read_holder readers[READ_HOLD_READERS_MAX];
    uint32_t reader_count; /* 0: no one holds the player; its rest is remembered. */
    uint64_t since_ms;
    uint64_t rest_ms; /* Until then it rests. */
};

struct read_holds {
    struct read_hold *list; /* In no order. */
    uint32_t count, capacity;
    uint32_t ms_max;  /* The user's to set. */
    uint32_t active;  /* Players that somebody holds. */
    uint64_t taken;   /* Times that a player began to be held, */
    uint64_t ended;   /* and that one came free. */
    uint64_t held_ms; /* Over all players that are free again. */
};

void read_holds_deinit(struct read_holds *holds);
/* No reader holds anything from here on. */
void read_holds_clear(struct read_holds *holds);
/* A read would be given the player. */
bool read_holds_may(const struct read_holds *holds, struct slice entity, bool urgent,
                    uint64_t now_ms);
/* Begins, or joins, or says it again with other transactions that pass. False: the player rests, or
 * there is no room; what the reader held of it before, it holds still. */
bool read_holds_take(struct read_holds *holds, const struct read_ask *ask, uint64_t now_ms);
bool read_holds_held(const struct read_holds *holds, struct slice entity, uint64_t reader,
                     uint64_t now_ms);
void read_holds_release(struct read_holds *holds, struct slice entity, uint64_t reader,
                        uint64_t now_ms);
/* Ends what has lasted for its time. */
void read_holds_step(struct read_holds *holds, uint64_t now_ms);
/* A write that begins now must wait. `txn` NULL: it is no part of a transaction on its way. */
bool read_holds_stop(const struct read_holds *holds, struct slice entity, const struct txn_ref *txn,
                     uint64_t now_ms);

#endif
