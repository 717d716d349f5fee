#include "node/core/goods/mailbox.h"

#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/goods/goods_sound.h"
#include "node/core/handler/refusal.h"
#include "runtime/base/check.h"

#define MAILBOX_VERSION   1u
#define MAIL_TEXT_ROW_MAX 8192u

err mailbox_row_decode(struct slice row, uint32_t *ret_count)
{
    struct reader reader = reader_from(row);

    bool known = read_u8(&reader) == MAILBOX_VERSION;
    *ret_count = read_u32(&reader);
    return known && reader_finish(&reader) == ERR_OK ? ERR_OK : ERR_CORRUPT;
}

err mailbox_count(struct state *state, struct slice entity, struct need *need, uint32_t *ret_count)
{
    struct row_key key;
    struct slice value;

    *ret_count = 0;
    row_key_mailbox(&key, entity);
    switch (row_find(state, &key, need, &value)) {
    case STATE_MISSING:
        return ERR_NEED;
    case STATE_ABSENT:
        break;
    case STATE_PRESENT:
        return mailbox_row_decode(value, ret_count);
    }
    return ERR_OK;
}

/* The same while an entry is applied: ERR_CONFLICT, and the damage noted, instead of ERR_CORRUPT.
 */
static err count_find(struct apply_context *context, struct slice entity, uint32_t *ret_count)
{
    err e = mailbox_count(context->state, entity, context->need, ret_count);

    return e == ERR_CORRUPT ? apply_damaged(context, entity, MAILBOX_DAMAGE) : e;
}

void mailbox_count_store(struct apply_context *context, struct slice entity, uint32_t count)
{
    struct row_key key;

    row_key_mailbox(&key, entity);
    if (count == 0) {
        state_delete(context->state, row_key_slice(&key));
        return;
    }
    buf_clear(context->scratch);
    buf_put_u8(context->scratch, MAILBOX_VERSION);
    buf_put_u32(context->scratch, count);
    state_put(context->state, row_key_slice(&key), buf_slice(context->scratch));
}

static err refuse_full(struct apply_context *context, uint32_t count_max)
{
    err e = refuse(context->arena, context->refusal, CODE(CAPACITY_FULL), "to_player_id",
                   "the recipient's mailbox holds %u pieces of mail already", count_max);

    context->refusal->limit = arena_printf(context->arena, "%u", count_max);
    refusal_tell_capacity(context, "mail", count_max);
    return e;
}

err mailbox_put(struct apply_context *context, struct slice entity, Holdfast__V1__Mail *mail,
                uint32_t place, uint32_t count_max)
{
    uint8_t id[ITEM_UID_BYTES];
    uint32_t count;
    struct row_key key;

    err e = count_find(context, entity, &count);
    if (e != ERR_OK)
        return e;
    if (count >= count_max)
        return refuse_full(context, count_max);
    item_uid_make(context->shard, context->dot.epoch, context->dot.counter, place, id);
    mail->mail_id = arena_alloc(context->arena, MAIL_ID_TEXT_SIZE);
    item_uid_print(id, mail->mail_id);
    row_key_mail(&key, entity, id);
    state_put(context->state, row_key_slice(&key), arena_pack(context->arena, &mail->base));
    mailbox_count_store(context, entity, count + 1);
    return ERR_OK;
}

err mailbox_take(struct apply_context *context, struct slice entity, const char *mail_id,
                 Holdfast__V1__Mail **ret_mail)
{
    uint8_t id[ITEM_UID_BYTES];
    uint32_t count;
    struct row_key key;
    struct slice value;

    CHECK(item_uid_parse(slice_from_text(mail_id), id) == ERR_OK);
    row_key_mail(&key, entity, id);
    enum state_found found = state_find(context->state, row_key_slice(&key), &value);
    if (found == STATE_MISSING)
        need_add_key(context->need, row_key_slice(&key));
    *ret_mail = found == STATE_PRESENT ? mail_decode(context->arena, value) : NULL;
    err e = count_find(context, entity, &count);
    if (found == STATE_MISSING || e == ERR_NEED)
        return ERR_NEED;
    if (e != ERR_OK)
        return e;
    if (found == STATE_ABSENT) {
        e = refuse(context->arena, context->refusal, CODE(NOT_FOUND), "mail_ids",
                   "there is no mail %s in the mailbox; perhaps it was claimed before", mail_id);
        context->refusal->value = mail_id;
        return e;
    }
    if (*ret_mail == NULL)
        return apply_damaged(context, entity, MAIL_DAMAGE);
    if (count == 0)
        return apply_damaged(context, entity, MAILBOX_DAMAGE);
    state_delete(context->state, row_key_slice(&key));
    mailbox_count_store(context, entity, count - 1);
    return ERR_OK;
}

Holdfast__V1__Mail *mail_decode(struct arena *arena, struct slice value)
{
    Holdfast__V1__Mail *mail =
        (Holdfast__V1__Mail *)arena_unpack(arena, &holdfast__v1__mail__descriptor, value);

    if (mail == NULL || !mail_is_sound(mail))
        return NULL;
    return mail;
}

bool mail_is_sound(const Holdfast__V1__Mail *mail)
{
    struct slice from = slice_from_text(mail->from_player_id);

    return (from.size == 0 || player_id_check(from) == ERR_OK) &&
           goods_text_is_sound(mail->reason) && goods_text_is_sound(mail->op_id) &&
           strlen(mail->text) <= MAIL_TEXT_ROW_MAX &&
           goods_amounts_are_sound(mail->n_currencies, mail->currencies) &&
           goods_items_are_sound(mail->n_items, mail->items);
}
