#include <string.h>

#include "holdfast/v1/mailbox.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/goods/mailbox.h"
#include "node/core/handler/refusal.h"
#include "node/core/profile/profile.h"
#include "node/rpc/methods.h"
#include "runtime/base/check.h"

#define PAGE_SIZE_DEFAULT 50u
#define PAGE_SIZE_MAX     100u
/* A page is also short when its mail is long; its cursor goes on. */
#define PAGE_BYTES_MAX (1024u * 1024u)

struct page {
    struct read_context *context;
    Holdfast__V1__ListMailResponse *response;
    uint32_t size;
    size_t bytes;
    bool more;
};

/* In the place of what cannot be read, so that pages go on; its player is contained. */
static Holdfast__V1__Mail *unreadable(struct read_context *context, struct slice key)
{
    Holdfast__V1__Mail *mail =
        (Holdfast__V1__Mail *)arena_message(context->arena, &holdfast__v1__mail__descriptor);

    damage_note(context->damage, context->entity, MAIL_DAMAGE);
    mail->mail_id = arena_alloc(context->arena, MAIL_ID_TEXT_SIZE);
    item_uid_print(key.data + key.size - ITEM_UID_BYTES, mail->mail_id);
    return mail;
}

static bool take_mail(void *page_context, struct slice key, struct slice value)
{
    struct page *page = page_context;
    Holdfast__V1__ListMailResponse *response = page->response;

    if (response->n_mails == page->size || page->bytes > PAGE_BYTES_MAX) {
        page->more = true;
        return false;
    }
    page->bytes += value.size;
    Holdfast__V1__Mail *mail = mail_decode(page->context->arena, value);
    if (mail == NULL)
        mail = unreadable(page->context, key);
    response->mails[response->n_mails++] = mail;
    return true;
}

static err page_begin(struct read_context *context, const Holdfast__V1__ListMailRequest *request,
                      struct page *page, struct row_key *ret_after)
{
    struct slice cursor = slice_from_text(request->cursor);
    uint8_t id[ITEM_UID_BYTES];

    if (request->page_size > PAGE_SIZE_MAX)
        return refuse_number(context->arena, context->refusal, "page_size", "1 to 100, or 0",
                             request->page_size);
    page->size = request->page_size > 0 ? request->page_size : PAGE_SIZE_DEFAULT;
    row_key_mail_prefix(ret_after, context->entity);
    if (cursor.size == 0)
        return ERR_OK;
    if (item_uid_parse(cursor, id) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "cursor",
                              "next_cursor of the page before",
                              text_shorten(context->arena, cursor));
    row_key_mail(ret_after, context->entity, id);
    return ERR_OK;
}

static err mailbox_list_read(struct read_context *context, const ProtobufCMessage *message,
                             ProtobufCMessage *reply)
{
    Holdfast__V1__ListMailResponse *response = (Holdfast__V1__ListMailResponse *)reply;
    struct page page = { .context = context, .response = response };
    struct row_key prefix;
    struct row_key after;

    err e = page_begin(context, (const Holdfast__V1__ListMailRequest *)message, &page, &after);
    if (e == ERR_OK)
        e = mailbox_count(context->state, context->entity, context->need, &response->total);
    if (e == ERR_CORRUPT)
        return read_damaged(context, MAILBOX_DAMAGE);
    if (e != ERR_OK)
        return e;
    row_key_mail_prefix(&prefix, context->entity);
    struct state_range range = {
        .prefix = row_key_slice(&prefix),
        .after = row_key_slice(&after),
        .limit = page.size + 1, /* One more than it shows, to know whether there is another. */
    };
    response->mails = arena_alloc(context->arena, sizeof *response->mails * page.size);
    if (response->total > 0)
        e = state_range_visit(context->state, &range, context->need, take_mail, &page);
    if (e != ERR_OK)
        return e;
    if (page.more)
        response->next_cursor = response->mails[response->n_mails - 1]->mail_id;
    response->as_of = dot_message(context->arena, context->as_of);
    return ERR_OK;
}

const struct handler mailbox_list_mail_handler = {
    .method = METHOD_LIST_MAIL,
    .read = mailbox_list_read,
};
