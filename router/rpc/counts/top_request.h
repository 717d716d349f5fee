/* top_request: what GetTop and GetCounterTop share: their fields, and what these may say. */
#ifndef ROUTER_RPC_COUNTS_TOP_REQUEST_H
#define ROUTER_RPC_COUNTS_TOP_REQUEST_H

#include "holdfast/v1/favorites.pb-c.h"
#include "router/rpc/counts/top_gather.h"

/* Of a request; `limit` NULL: absent. */
struct top_fields {
    const char *collection;
    const char *window;
    const uint32_t *limit;
    bool is_counter;
};
/* In the request's arena; NULL: the request has ended with an error. */
struct top_ask *top_request_ask(struct request *request, const struct top_fields *fields);
/* "24h" */
const char *top_window_name(Holdfast__V1__TopWindow window);
/* The entries of an answer, in the request's arena. */
Holdfast__V1__TopEntry **top_request_entries(struct request *request, const struct top_told *told);

#endif
