/*
 * list_page: what the router's own lists share: the page that a request asks for, and its cursors
 * (idl/page_cursor.h).
 */
#ifndef ROUTER_RPC_REQUEST_LIST_PAGE_H
#define ROUTER_RPC_REQUEST_LIST_PAGE_H

#include "router/rpc/request/request.h"

struct list_page {
    uint32_t size;
    char *place; /* Where it begins, as list_page_next was told; "" for the first page. */
};

struct list_limits {
    uint32_t size_default; /* For a page_size of 0. */
    uint32_t size_max;
};

/* False: the page_size is above the limit, or the cursor is not one of this list with these
 * filters; the request has been ended. Its message has page_size and cursor. */
NODISCARD bool list_page_begin(struct request *request, struct list_limits limits,
                               struct list_page *ret_page);
/* The place as a number below `limit`; 0 for the first page. False: it is none (cursors are not
 * secret, and may be forged); the request has been ended. */
NODISCARD bool list_page_number(struct request *request, const struct list_page *page,
                                uint64_t limit, uint64_t *ret_number);
/* Ends the request: its cursor has a place that the list does not have. */
void list_page_refuse(struct request *request);
/* The cursor for what follows `place`; in the request's arena. */
char *list_page_next(const struct request *request, const char *place);

#endif
