#include "idl/method.h"
#include "node/core/codec/text_rule.h"
#include "node/core/goods/mail_page.h"
#include "node/core/handler/refusal.h"
#include "node/core/profile/profile.h"
#include "node/core/rows/rows.h"
#include "node/rpc/methods.h"

/* `id`: memory for page->after. */
static err page_begin(struct read_context *context, const Holdfast__V1__ListMailRequest *request,
                      uint8_t id[ITEM_UID_BYTES], struct mail_page *ret_page)
{
    struct slice cursor = slice_from_text(request->cursor);

    if (request->page_size > MAIL_PAGE_MAX)
        return refuse_number(context->arena, context->refusal, "page_size", "1 to 100, or 0",
                             request->page_size);
    *ret_page = (struct mail_page){
        .size = request->page_size > 0 ? request->page_size : MAIL_PAGE_DEFAULT,
        .bytes_max = MAIL_PAGE_BYTES_MAX,
    };
    if (cursor.size == 0)
        return ERR_OK;
    if (item_uid_parse(cursor, id) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "cursor",
                              "next_cursor of the page before",
                              text_shorten(context->arena, cursor));
    ret_page->after = id;
    return ERR_OK;
}

static err mailbox_list_read(struct read_context *context, const ProtobufCMessage *message,
                             ProtobufCMessage *reply)
{
    Holdfast__V1__ListMailResponse *response = (Holdfast__V1__ListMailResponse *)reply;
    uint8_t id[ITEM_UID_BYTES];
    struct mail_page page;

    err e = page_begin(context, (const Holdfast__V1__ListMailRequest *)message, id, &page);
    if (e == ERR_OK)
        e = mail_page_read(context, &page, response);
    if (e == ERR_OK)
        response->as_of = as_of_text(context);
    return e;
}

const struct handler mailbox_list_mail_handler = {
    .method = METHOD_LIST_MAIL,
    .read = mailbox_list_read,
};
