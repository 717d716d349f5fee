/*
 * request_spans: where the time of an ended request went, as its slow line tells it. Pure. The
 * spans follow one another and never add up to more than the whole.
 */
#ifndef ROUTER_RPC_CALL_REQUEST_SPANS_H
#define ROUTER_RPC_CALL_REQUEST_SPANS_H

#include "router/rpc/call/caller.h"

#define REQUEST_ROUTE_SIZE (CALLER_ATTEMPTS_TOLD * 40u)

struct request_spans {
    uint64_t
        wait_ms; /* Until a call was first sent: no owner, no link, or other calls before it. */
    uint64_t retry_ms; /* From there until the last attempt was. */
    uint64_t link_ms;  /* That attempt: on its way, and in the queues of both processes' kernels. */
    uint64_t node_ms;  /* What the node says that it spent; 0 from one that does not tell. */
    uint64_t lost_ms;  /* Instead of those two, when it was not answered. */
};

/* `call` is the last of the request's, `total_ns` the time of the whole request. */
void request_spans_get(const struct caller_call *call, uint64_t total_ns,
                       struct request_spans *ret_spans);
/* "17@0 18@312": which node each of the first attempts went to, and when, in ms. */
void request_route_print(const struct caller_call *call, char ret_text[REQUEST_ROUTE_SIZE]);

#endif
