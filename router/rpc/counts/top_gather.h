/*
 * top_gather: top lists, from the router's memory or from all shards. Requests for one collection,
 * or counter, and window share the gather that is under way. A list is told again until what it
 * says is TOP_TELL_MS old: at least TOP_AGE_MIN_MS, since asking more often does not make it newer,
 * and at most TOP_AGE_MAX_MS. It is gathered for as many places as some request asked for, of 10,
 * 100 and 1000. Everything runs on the loop's thread.
 */
#ifndef ROUTER_RPC_COUNTS_TOP_GATHER_H
#define ROUTER_RPC_COUNTS_TOP_GATHER_H

#include "router/core/top_merge.h"
#include "router/rpc/request/request.h"

#define TOP_TELL_MS      1500
#define TOP_AGE_MIN_MS   250
#define TOP_AGE_MAX_MS   1000
#define TOP_STALE_MS_MAX 300000u /* What is older is not told even where a shard is silent. */
#define TOP_LISTS_MAX    64u     /* Kept, by collection, window and number of places. */

struct tops;
struct router;

struct tops *tops_new(struct router *router);
/* When every request has ended. NULL is allowed. */
void tops_free(struct tops *tops);

struct top_ask {
    const char *collection; /* Or a counter: its name, checked. In the request's arena. */
    Holdfast__V1__TopWindow window;
    uint32_t limit;
    bool is_counter;
};
struct top_told {
    const struct top_place *places;
    size_t count; /* At most the limit. */
    int64_t from_ms, to_ms;
    bool stale;
    uint64_t number; /* Of the collection or counter, which another life of it has not. */
};
/* Ends the request: by `reply`, or with an error. */
void tops_ask(struct request *request, const struct top_ask *ask,
              void (*reply)(struct request *request, const struct top_ask *ask,
                            const struct top_told *told));

#endif
