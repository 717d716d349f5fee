#include "node/core/goods/item_page.h"

#include <string.h>

#include "node/core/goods/goods.h"
#include "runtime/base/check.h"

/* Rows looked at for one page that filters by kind; a page may be short, its cursor goes on. */
#define SCAN_MAX 1000u

struct walk {
    struct read_context *context;
    const struct item_page *page;
    Holdfast__V1__ListItemsResponse *response;
    uint32_t scanned;
    bool more;
    uint8_t last[ITEM_UID_BYTES];
};

static bool take_item(void *walk_context, struct slice key, struct slice value)
{
    struct walk *walk = walk_context;
    const struct item_page *page = walk->page;
    struct item_row item;

    if (item_row_decode(key, value, &item) != ERR_OK) {
        damage_note(walk->context->damage, walk->context->entity, ITEM_DAMAGE);
        item = (struct item_row){ 0 }; /* Told by its UID alone, so that pages go on. */
        memcpy(item.uid, key.data + key.size - ITEM_UID_BYTES, ITEM_UID_BYTES);
    }
    bool matches = page->kind.size == 0 || slice_equal(page->kind, item.kind);
    if (matches && walk->response->n_items == page->size) {
        walk->more = true;
        return false;
    }
    walk->scanned++;
    memcpy(walk->last, item.uid, ITEM_UID_BYTES);
    if (matches)
        walk->response->items[walk->response->n_items++] =
            goods_item_message(walk->context->arena, &item);
    return true;
}

err item_page_read(struct read_context *context, const struct player *player,
                   const struct item_page *page, Holdfast__V1__ListItemsResponse *response)
{
    struct walk walk = { .context = context, .page = page, .response = response };
    struct row_key prefix;
    struct row_key after;
    err e = ERR_OK;

    CHECK(page->size > 0 && page->size <= ITEM_PAGE_MAX);
    row_key_item_prefix(&prefix, context->entity);
    after = prefix;
    if (page->after != NULL)
        row_key_item(&after, context->entity, page->after);
    const struct state_range range = {
        .prefix = row_key_slice(&prefix),
        .after = row_key_slice(&after),
        /* One more than a page shows, to know whether there is another. */
        .limit = page->kind.size > 0 ? SCAN_MAX : page->size + 1,
    };
    response->items = arena_alloc(context->arena, sizeof *response->items * page->size);
    if (player->item_count > 0)
        e = state_range_visit(context->state, &range, context->need, take_item, &walk);
    if (e != ERR_OK)
        return e;
    if (walk.more || walk.scanned == range.limit) {
        response->next_cursor = arena_alloc(context->arena, ITEM_UID_TEXT_SIZE);
        item_uid_print(walk.last, response->next_cursor);
    }
    response->total = player->item_count;
    return ERR_OK;
}
