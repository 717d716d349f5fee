/*
 * puller: what one node does, once or twice a second, for the homes of targets that it owns: asks
 * each shard what changed for all of them, and has each home log what there is in one entry. Pure:
 * the shell makes the calls, tells the time and who owns what. Nothing here is state: a node that
 * begins to own a home asks it how far it is.
 *
 *   puller_begin -> GetPulled of homes that are not known, or were not asked for a minute
 *                -> PullPartials of every shard: since when, for which homes, and how far those of
 *                   them are that have not logged all of then; it tells what is new
 *                -> TakePartials of every home with something to log
 *                -> ForgetPartials of every shard that keeps targets without edges, as far as
 *                   their homes have logged that -> the round ends
 *
 * Every call is answered or failed by the shell. Whatever fails is asked again in a later round.
 */
#ifndef NODE_CORE_TOP_PULLER_H
#define NODE_CORE_TOP_PULLER_H

#include "node/core/top/pull_item.h"

#define PULLER_EVERY_MS 1000u
#define PULLER_BUSY_MS  500u /* After one with something to log, while lists are read. */
#define PULLER_AGAIN_MS 50u  /* While there is more than one round takes. */
#define PULLER_WINDOW   64u  /* Calls on their way at once. */
/* How far a home is, it is asked again after so long: a repair may have taken it back, so that a
 * source is pulled again (top_repair.h). */
#define PULLER_LOOK_MS 60000u
/* Lists are read for so long after one was. */
#define PULLER_WATCH_MS 10000u

struct puller;

struct puller *puller_new(uint32_t shard_count);
void puller_free(struct puller *puller);

/* Begins a round, for the homes that `owned` says, unless one is under way or it is not time yet.
 */
void puller_begin(struct puller *puller, uint64_t now_ms, uint64_t unix_ms, const bool *owned);
/* A top list is read. */
void puller_watch(struct puller *puller, uint64_t now_ms);
/* When to begin the next round. What the last one came to decides that: ask when it has ended. */
uint64_t puller_next_ms(const struct puller *puller);
/* The round that is under way has calls out. */
bool puller_is_busy(const struct puller *puller);

/* A call to the owner of a shard. The request stays as it is until the call is answered. */
struct pull_call {
    uint64_t token; /* Never 0. */
    uint32_t shard;
    uint32_t method;
    struct slice request;
};
/* False: nothing is to be called for now. */
bool puller_next(struct puller *puller, struct pull_call *ret_call);
/* The answer's body; not `ok`: it failed, or may have. Tokens of an earlier round are ignored. */
void puller_answered(struct puller *puller, uint64_t token, bool ok, struct slice body);

/* What every shard had committed by then, by its owner's clock, is logged in this home, as far as
 * this node knows: milliseconds since 1970; 0: unknown. It rises with the answer of the home, or of
 * the last shard where there is nothing to log; calls of others do not hold it back. Stays what it
 * was when the node owns it no more. */
int64_t puller_pulled_ms(const struct puller *puller, uint32_t home);

/* How often that has risen, of any home. */
uint64_t puller_moves(const struct puller *puller);

/* How long ago that was, for the home of this node's that is the furthest behind; one that was
 * never pulled for counts from when the node began to own it. 0: it owns none. */
uint64_t puller_behind_ms(const struct puller *puller, uint64_t unix_ms);

struct puller_stats {
    uint64_t rounds;
    uint64_t failed;      /* Calls that were not answered. */
    uint64_t items;       /* Logged. */
    uint64_t forgotten;   /* Targets without edges that a shard removed. */
    uint64_t asked_bytes; /* Of what sources were asked, */
    uint64_t bytes;       /* and of what they told. */
    uint64_t unchanged;   /* Answers of sources that had nothing new. */
};
struct puller_stats puller_stats(const struct puller *puller);
/* CHECKs that its calls and what it keeps for each home fit together. For tests. */
void puller_check(const struct puller *puller);

#endif
