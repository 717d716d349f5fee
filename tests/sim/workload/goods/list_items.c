/* InventoryService.ListItems: what a player holds, a page at a time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/v1/inventory.pb-c.h"
#include "runtime/base/check.h"
#include "tests/sim/oracle/list.h"
#include "tests/sim/servers/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__ListItemsRequest request = HOLDFAST__V1__LIST_ITEMS_REQUEST__INIT;

    (void)sim;
    request.player_id = parts->player;
    request.read = request_read(op, parts);
    request.page_size = request_page(op, op->twist % 3 == 0 ? 0 : 1 + op->twist / 3 % 5, 500);
    if (op->twist / 15 % 4 == 0)
        request.kind = request_text("sword");
    request.cursor = request_text(op->cursor);
    request_pack(&request.base, out);
}

static void taken(struct sim *sim, const struct sim_op *op, struct slice body)
{
    Holdfast__V1__ListItemsResponse *response =
        holdfast__v1__list_items_response__unpack(NULL, body.size, body.data);

    CHECK(response != NULL);
    server_ask_on(sim, op, response->next_cursor);
    holdfast__v1__list_items_response__free_unpacked(response, NULL);
}

/* A page that filters may be short, or empty, and have a next one; but not so few items. */
static void told(const struct told *t)
{
    const Holdfast__V1__ListItemsRequest *request = (const void *)t->request;
    const Holdfast__V1__ListItemsResponse *response = (const void *)t->response;
    size_t size = request->page_size > 0 ? request->page_size : 100;
    uint64_t index = told_index(t), from = list_from(t, request->cursor);
    struct listed_item *items;
    size_t at = 0, place = 0;

    if (index == 0 || from == LIST_UNKNOWN)
        return;
    uint32_t count = list_items(t, index, &items);
    if (response->total != told_moment(t, index)->items)
        told_fail(t, "how many items there are", response->total, told_moment(t, index)->items);
    for (; place < count; place++) {
        const struct item_model *item = items[place].item;
        bool before = from > 0 && strcmp(item->uid, t->sim->oracle->book.items[from - 1].uid) <= 0;
        if (before || (request->kind[0] != '\0' && strcmp(item->kind, request->kind) != 0))
            continue;
        if (at == size)
            break;
        if (at == response->n_items || !list_is_item(&items[place], response->items[at])) {
            told_fail(t, "an item is told otherwise, or not at all", at, count);
            break;
        }
        at++;
    }
    if (t->sim->failure[0] == '\0' && response->n_items != at)
        told_fail(t, "more items than there are", response->n_items, at);
    /* A page that filters ends before the next item that matches, which others may precede. */
    const char *end = place > 0 ? items[place - 1].item->uid : "";
    uint32_t last = goods_item_find(&t->sim->oracle->book, end);
    if (t->sim->failure[0] == '\0')
        list_goes_on(t, response->next_cursor, place < count, last);
    free(items);
}

const struct workload_row workload_list_items = {
    .method = METHOD_LIST_ITEMS,
    .shares = { [WISH_READ] = { .place = 3, .weight = 4 } },
    .encode = encode,
    .taken = taken,
    .rule = { .told = told },
};
