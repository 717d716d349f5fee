/*
 * count_gather: counts of targets, from the router's memory or from all shards. One gather asks
 * every shard once for up to 200 targets of a collection; requests for the same target share it,
 * and what comes while enough gathers are under way waits for the next one, which takes all of it
 * along.
 *
 *   counts_ask -> known and young enough: answered at once
 *              -> else waits for a gather -> every shard answered: kept, and told to all who wait
 *                                         -> one did not: what was known before, as stale, or the
 * error
 *
 * Everything runs on the loop's thread.
 */
#ifndef ROUTER_RPC_COUNTS_COUNT_GATHER_H
#define ROUTER_RPC_COUNTS_COUNT_GATHER_H

#include "router/core/count_ask.h"
#include "router/core/count_memo.h"
#include "router/rpc/request/request.h"

#define COUNT_STALE_MS_MAX 300000u /* What is older is not told even where a shard is silent. */

struct counts;
struct router;

/* The router's options say how old a count may be, and how much is kept. */
struct counts *counts_new(struct router *router);
/* When every request has ended. NULL is allowed. */
void counts_free(struct counts *counts);

/* A count of an answer. */
struct count_told {
    struct count_known known;
    bool stale;
};

/* Ends the request: with its counts, in the order of `ask`, by `reply`, or with an error. `ask` was
 * checked, and lives in the request's arena, as does what it names. */
void counts_ask(struct request *request, const struct count_ask *ask, bool fresh,
                void (*reply)(struct request *request, const struct count_ask *ask,
                              const struct count_told *told));

struct counts_stats {
    struct count_memo_stats memo;
    uint64_t gathers;
    uint64_t gathers_failed;
    uint64_t shared; /* Targets that joined a gather for which another request had begun. */
    uint64_t stale;  /* Counts told as stale. */
    uint32_t gathering;
};
struct counts_stats counts_stats(const struct counts *counts);

#endif
