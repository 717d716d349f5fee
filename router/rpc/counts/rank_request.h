/*
 * rank_request: what GetRank and GetCounterRank share. The target is looked for in the list of
 * TOP_LIMIT_MAX places that GetTop and GetCounterTop tell; the total of one that is outside of it,
 * and of all time, is gathered as GetCount gathers it.
 */
#ifndef ROUTER_RPC_COUNTS_RANK_REQUEST_H
#define ROUTER_RPC_COUNTS_RANK_REQUEST_H

#include "router/rpc/counts/top_request.h"

struct rank_told {
    uint32_t rank; /* 0: outside of the list. */
    bool counts;   /* `count` is known. */
    uint64_t count, last_count;
    uint32_t listed;
    const char *window;
    int64_t from_ms, to_ms;
    bool stale;
};

/* Of a request. */
struct rank_fields {
    const char *collection; /* Or a counter. */
    const char *target;
    const char *window;
    bool is_counter;
};

/* Ends the request: by `reply`, or with an error. */
void rank_request_ask(struct request *request, const struct rank_fields *fields,
                      void (*reply)(struct request *request, const struct rank_told *told));

#endif
