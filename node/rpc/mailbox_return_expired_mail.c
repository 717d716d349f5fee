#include <string.h>

#include "holdfast/v1/mailbox.pb-c.h"
#include "idl/method.h"
#include "node/core/channel/channel_out.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/goods/goods.h"
#include "node/core/goods/mailbox.h"
#include "node/core/handler/refusal.h"
#include "node/rpc/methods.h"
#include "runtime/base/check.h"

#define MAILS_MAX 64u

typedef Holdfast__V1__ReturnExpiredMailRequest return_request;
typedef Holdfast__V1__ReturnExpiredMailResponse return_response;

static err mailbox_return_expired_mail_check(struct check_context *context,
                                             ProtobufCMessage *message)
{
    const return_request *request = (const return_request *)message;
    uint8_t id[ITEM_UID_BYTES];

    if (context->shard_count == 0)
        return refuse(context->arena, context->refusal, CODE(UNAVAILABLE), "",
                      "the node does not know the cluster yet; nothing was done");
    if (request->max > MAILS_MAX)
        return refuse_number(context->arena, context->refusal, "max", "1 to 64, or 0",
                             request->max);
    struct slice cursor = slice_from_text(request->cursor);
    if (cursor.size > 0 && item_uid_parse(cursor, id) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "cursor",
                              "next_cursor of the call before",
                              text_shorten(context->arena, cursor));
    return refusal_defer(context,
                         channel_check_room(context->arena, context->refusal, context->meta));
}

static void mailbox_return_expired_footprint(const struct op *op, const ProtobufCMessage *message,
                                             struct need *keys)
{
    struct row_key key;

    (void)message;
    row_key_mailbox(&key, op->entity);
    need_add_key(keys, row_key_slice(&key));
}

struct page {
    struct arena *arena;
    bool damaged;
    uint32_t count;
    Holdfast__V1__Mail *mails[MAILS_MAX];
};

static bool take_mail(void *context, struct slice key, struct slice value)
{
    struct page *page = context;

    (void)key;
    Holdfast__V1__Mail *mail = mail_decode(page->arena, value);
    page->damaged = mail == NULL;
    if (mail != NULL)
        page->mails[page->count++] = mail;
    return mail != NULL;
}

/* The oldest mail after the cursor. ERR_NEED. */
static err page_read(struct apply_context *context, const return_request *request,
                     struct page *page, return_response *response)
{
    struct slice cursor = slice_from_text(request->cursor);
    uint8_t id[ITEM_UID_BYTES];
    struct row_key prefix;
    struct row_key after;

    page->arena = context->arena;
    page->count = 0;
    page->damaged = false;
    row_key_mail_prefix(&prefix, context->op->entity);
    after = prefix;
    if (cursor.size > 0) {
        CHECK(item_uid_parse(cursor, id) == ERR_OK);
        row_key_mail(&after, context->op->entity, id);
    }
    struct state_range range = {
        .prefix = row_key_slice(&prefix),
        .after = row_key_slice(&after),
        .limit = request->max > 0 ? request->max : MAILS_MAX,
    };
    err e = state_range_visit(context->state, &range, context->need, take_mail, page);
    if (e == ERR_OK && page->damaged)
        return apply_damaged(context, context->op->entity, MAIL_DAMAGE);
    if (e == ERR_OK && page->count == range.limit)
        response->next_cursor = page->mails[page->count - 1]->mail_id;
    return e;
}

/* True: it can leave. A full mailbox at the sender's leaves it where it is. ERR_NEED. */
static err may_leave(struct apply_context *context, const Holdfast__V1__Mail *mail, bool *ret_may)
{
    struct arena *arena = context->arena;
    uint32_t count;

    *ret_may = mail->expires_at_ms > 0 && (uint64_t)mail->expires_at_ms <= context->owner_ms;
    if (!*ret_may || goods_are_none(mail))
        return ERR_OK;
    if (mail->from_player_id[0] == 0) /* Mail from the system does not expire. */
        return apply_damaged(context, context->op->entity, MAIL_DAMAGE);
    if (channel_shard_of(arena, mail->from_player_id, context->op->shard_count) != context->shard)
        return ERR_OK;
    err e = mailbox_count(context->state, entity_of_player(arena, mail->from_player_id),
                          context->need, &count);
    *ret_may = e == ERR_OK && count < context->meta->policy.mailbox_max;
    return e == ERR_CORRUPT ? ERR_OK : e; /* It lies on where it is. */
}

static err send_back(struct apply_context *context, Holdfast__V1__Mail *mail, uint32_t place)
{
    struct arena *arena = context->arena;
    char *sender = mail->from_player_id;
    uint32_t destination = channel_shard_of(arena, sender, context->op->shard_count);
    static char no_id[] = "";

    mail->mail_id = no_id;
    mail->from_player_id = arena_text(arena, player_id(context->player));
    mail->returned = true;
    mail->expires_at_ms = 0;
    if (destination == context->shard)
        return mailbox_put(context, entity_of_player(arena, sender), mail, place,
                           context->meta->policy.mailbox_max);
    struct channel_send send = { .to_player_id = sender, .mail = mail, .mail_return = true };
    return channel_open(context, destination, &send);
}

static err return_one(struct apply_context *context, const char *mail_id, uint32_t place,
                      return_response *response)
{
    Holdfast__V1__Mail *mail = NULL;

    err e = mailbox_take(context, context->op->entity, mail_id, &mail);
    if (e == ERR_OK && !goods_are_none(mail))
        e = send_back(context, mail, place);
    response->returned++;
    return e;
}

static err mailbox_return_expired_handle(struct apply_context *context,
                                         const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    return_response *response = (return_response *)reply;
    struct page page;

    err e = page_read(context, (const return_request *)message, &page, response);
    for (uint32_t i = 0; i < page.count && e == ERR_OK; i++) {
        bool leaves;
        e = may_leave(context, page.mails[i], &leaves);
        if (e == ERR_OK && leaves)
            e = return_one(context, page.mails[i]->mail_id, i, response);
    }
    return e;
}

const struct handler mailbox_return_expired_mail_handler = {
    .method = METHOD_RETURN_EXPIRED_MAIL,
    .admits = ADMITS_SESSION | ADMITS_SYSTEM | ADMITS_UNHELD,
    .check = mailbox_return_expired_mail_check,
    .footprint = mailbox_return_expired_footprint,
    .handle = mailbox_return_expired_handle,
};
