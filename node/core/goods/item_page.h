/*
 * item_page: a page of a player's items, for ListItems and for reads that include items.
 */
#ifndef NODE_CORE_GOODS_ITEM_PAGE_H
#define NODE_CORE_GOODS_ITEM_PAGE_H

#include "holdfast/v1/inventory.pb-c.h"
#include "node/core/handler/handler.h"

#define ITEM_PAGE_DEFAULT 100u
#define ITEM_PAGE_MAX     500u

struct item_page {
    struct slice kind;    /* Only items of this kind; empty: all. */
    uint32_t size;        /* 1 to ITEM_PAGE_MAX. */
    const uint8_t *after; /* Of ITEM_UID_BYTES: the page begins behind it. NULL: the first page. */
};

/* Fills all of `response` but its `as_of`; texts in the arena. A page of one kind looks at so many
 * rows, and may be short or empty and have a cursor. An item that cannot be read is told by its
 * UID. ERR_NEED: the page's rows are noted. */
NODISCARD err item_page_read(struct read_context *context, const struct player *player,
                             const struct item_page *page,
                             Holdfast__V1__ListItemsResponse *response);

#endif
