#include <string.h>

#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/goods/goods.h"
#include "node/core/handler/refusal.h"
#include "node/core/profile/profile.h"
#include "node/rpc/methods.h"
#include "node/rpc/wallet.h"
#include "runtime/base/check.h"

#define PAGE_SIZE_DEFAULT 100u
#define PAGE_SIZE_MAX     500u
/* Rows looked at for one page that filters by kind; a page may be short, its cursor goes on. */
#define SCAN_MAX 1000u

struct page {
    struct read_context *context;
    Holdfast__V1__ListItemsResponse *response;
    struct slice kind;
    uint32_t size;
    uint32_t scanned;
    bool more;
    uint8_t last[ITEM_UID_BYTES];
};

static bool take_item(void *page_context, struct slice key, struct slice value)
{
    struct page *page = page_context;
    struct item_row item;

    if (item_row_decode(key, value, &item) != ERR_OK) {
        damage_note(page->context->damage, page->context->entity, ITEM_DAMAGE);
        item = (struct item_row){ 0 }; /* Told by its UID alone, so that pages go on. */
        memcpy(item.uid, key.data + key.size - ITEM_UID_BYTES, ITEM_UID_BYTES);
    }
    bool matches = page->kind.size == 0 || slice_equal(page->kind, item.kind);
    if (matches && page->response->n_items == page->size) {
        page->more = true;
        return false;
    }
    page->scanned++;
    memcpy(page->last, item.uid, ITEM_UID_BYTES);
    if (matches)
        page->response->items[page->response->n_items++] =
            goods_item_message(page->context->arena, &item);
    return true;
}

static err page_begin(struct read_context *context, const Holdfast__V1__ListItemsRequest *request,
                      struct page *page, struct row_key *ret_after)
{
    struct slice cursor = slice_from_text(request->cursor);
    uint8_t uid[ITEM_UID_BYTES];

    if (request->page_size > PAGE_SIZE_MAX)
        return refuse_number(context->arena, context->refusal, "page_size", "1 to 500, or 0",
                             request->page_size);
    page->size = request->page_size > 0 ? request->page_size : PAGE_SIZE_DEFAULT;
    row_key_item_prefix(ret_after, context->entity);
    if (cursor.size == 0)
        return ERR_OK;
    if (item_uid_parse(cursor, uid) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "cursor",
                              "next_cursor of the page before",
                              text_shorten(context->arena, cursor));
    row_key_item(ret_after, context->entity, uid);
    return ERR_OK;
}

static err inventory_list_items_read(struct read_context *context, const ProtobufCMessage *message,
                                     ProtobufCMessage *reply)
{
    const Holdfast__V1__ListItemsRequest *request = (const Holdfast__V1__ListItemsRequest *)message;
    Holdfast__V1__ListItemsResponse *response = (Holdfast__V1__ListItemsResponse *)reply;
    struct page page = { .context = context,
                         .response = response,
                         .kind = slice_from_text(request->kind) };
    struct row_key prefix;
    struct row_key after;
    struct player player;

    err e = page_begin(context, request, &page, &after);
    if (e == ERR_OK)
        e = player_row_read(context, &player);
    if (e != ERR_OK)
        return e;
    row_key_item_prefix(&prefix, context->entity);
    struct state_range range = {
        .prefix = row_key_slice(&prefix),
        .after = row_key_slice(&after),
        /* One more than a page shows, to know whether there is another. */
        .limit = page.kind.size > 0 ? SCAN_MAX : page.size + 1,
    };
    response->items = arena_alloc(context->arena, sizeof *response->items * page.size);
    if (player.item_count > 0)
        e = state_range_visit(context->state, &range, context->need, take_item, &page);
    if (e != ERR_OK)
        return e;
    if (page.more || page.scanned == range.limit) {
        response->next_cursor = arena_alloc(context->arena, ITEM_UID_TEXT_SIZE);
        item_uid_print(page.last, response->next_cursor);
    }
    response->total = player.item_count;
    response->as_of = dot_message(context->arena, context->as_of);
    return ERR_OK;
}

const struct handler inventory_list_items_handler = {
    .method = METHOD_LIST_ITEMS,
    .read = inventory_list_items_read,
};
