#include "idl/method.h"
#include "node/core/codec/text_rule.h"
#include "node/core/goods/item_page.h"
#include "node/core/handler/refusal.h"
#include "node/core/profile/profile.h"
#include "node/core/rows/rows.h"
#include "node/rpc/methods.h"

/* `uid`: memory for page->after. */
static err page_begin(struct read_context *context, const Holdfast__V1__ListItemsRequest *request,
                      uint8_t uid[ITEM_UID_BYTES], struct item_page *ret_page)
{
    struct slice cursor = slice_from_text(request->cursor);

    if (request->page_size > ITEM_PAGE_MAX)
        return refuse_number(context->arena, context->refusal, "page_size", "1 to 500, or 0",
                             request->page_size);
    *ret_page = (struct item_page){
        .kind = slice_from_text(request->kind),
        .size = request->page_size > 0 ? request->page_size : ITEM_PAGE_DEFAULT,
    };
    if (cursor.size == 0)
        return ERR_OK;
    if (item_uid_parse(cursor, uid) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "cursor",
                              "next_cursor of the page before",
                              text_shorten(context->arena, cursor));
    ret_page->after = uid;
    return ERR_OK;
}

static err inventory_list_items_read(struct read_context *context, const ProtobufCMessage *message,
                                     ProtobufCMessage *reply)
{
    Holdfast__V1__ListItemsResponse *response = (Holdfast__V1__ListItemsResponse *)reply;
    uint8_t uid[ITEM_UID_BYTES];
    struct item_page page;
    struct player player;

    err e = page_begin(context, (const Holdfast__V1__ListItemsRequest *)message, uid, &page);
    if (e == ERR_OK)
        e = player_row_read(context, &player);
    if (e == ERR_OK)
        e = item_page_read(context, &player, &page, response);
    if (e == ERR_OK)
        response->as_of = as_of_text(context);
    return e;
}

const struct handler inventory_list_items_handler = {
    .method = METHOD_LIST_ITEMS,
    .read = inventory_list_items_read,
};
