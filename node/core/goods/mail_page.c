#include "node/core/goods/mail_page.h"

#include "node/core/codec/arena_proto.h"
#include "node/core/goods/mailbox.h"
#include "runtime/base/check.h"

struct walk {
    struct read_context *context;
    const struct mail_page *page;
    Holdfast__V1__ListMailResponse *response;
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

static bool take_mail(void *walk_context, struct slice key, struct slice value)
{
    struct walk *walk = walk_context;
    Holdfast__V1__ListMailResponse *response = walk->response;

    if (response->n_mails == walk->page->size || walk->bytes > walk->page->bytes_max) {
        walk->more = true;
        return false;
    }
    walk->bytes += value.size;
    Holdfast__V1__Mail *mail = mail_decode(walk->context->arena, value);
    if (mail == NULL)
        mail = unreadable(walk->context, key);
    response->mails[response->n_mails++] = mail;
    return true;
}

err mail_page_read(struct read_context *context, const struct mail_page *page,
                   Holdfast__V1__ListMailResponse *response)
{
    struct walk walk = { .context = context, .page = page, .response = response };
    struct row_key prefix;
    struct row_key after;

    CHECK(page->size > 0 && page->size <= MAIL_PAGE_MAX);
    err e = mailbox_count(context->state, context->entity, context->need, &response->total);
    if (e == ERR_CORRUPT)
        return read_damaged(context, MAILBOX_DAMAGE);
    if (e != ERR_OK)
        return e;
    row_key_mail_prefix(&prefix, context->entity);
    after = prefix;
    if (page->after != NULL)
        row_key_mail(&after, context->entity, page->after);
    const struct state_range range = {
        .prefix = row_key_slice(&prefix),
        .after = row_key_slice(&after),
        .limit = page->size + 1, /* One more than it shows, to know whether there is another. */
    };
    response->mails = arena_alloc(context->arena, sizeof *response->mails * page->size);
    if (response->total > 0)
        e = state_range_visit(context->state, &range, context->need, take_mail, &walk);
    if (e != ERR_OK)
        return e;
    if (walk.more)
        response->next_cursor = response->mails[response->n_mails - 1]->mail_id;
    return ERR_OK;
}
