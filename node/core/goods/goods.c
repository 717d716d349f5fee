#include "node/core/goods/goods.h"

#include <inttypes.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/handler/refusal.h"
#include "runtime/base/check.h"

#define SENT_RETRY_MS   200u
#define PLACES_RETRY_MS 200u

Holdfast__V1__Item *goods_item_message(struct arena *arena, const struct item_row *item)
{
    Holdfast__V1__Item *message =
        (Holdfast__V1__Item *)arena_message(arena, &holdfast__v1__item__descriptor);

    message->uid = arena_alloc(arena, ITEM_UID_TEXT_SIZE);
    item_uid_print(item->uid, message->uid);
    message->kind = arena_text(arena, item->kind);
    message->attributes = arena_text(arena, item->attributes);
    message->minted_at_ms = (int64_t)item->minted_at_ms;
    message->step = item->step;
    return message;
}

Holdfast__V1__Item **goods_item_messages(struct arena *arena, size_t count,
                                         const struct item_row *items)
{
    Holdfast__V1__Item **messages = arena_alloc(arena, sizeof *messages * (count + 1));

    for (size_t i = 0; i < count; i++)
        messages[i] = goods_item_message(arena, &items[i]);
    return messages;
}

struct item_row goods_item_row(const Holdfast__V1__Item *item)
{
    struct item_row row = {
        .step = item->step,
        .minted_at_ms = (uint64_t)item->minted_at_ms,
        .kind = slice_from_text(item->kind),
        .attributes = slice_from_text(item->attributes),
    };

    CHECK(item_uid_parse(slice_from_text(item->uid), row.uid) == ERR_OK);
    return row;
}

err goods_places_check(struct apply_context *context, size_t count)
{
    if (context->uid_place + count <= ITEM_PLACES_MAX)
        return ERR_OK;
    err e = refuse(context->arena, context->refusal, CODE(THROTTLED), "",
                   "too many operations were decided at once; nothing was done");
    context->refusal->retry_after_ms = PLACES_RETRY_MS;
    context->refusal->transient = true;
    return e;
}

static err refuse_not_held(struct apply_context *context, size_t place, const char *uid)
{
    struct arena *arena = context->arena;
    err e = refuse(arena, context->refusal, CODE(ITEM_NOT_HELD),
                   arena_printf(arena, "item_uids[%zu]", place),
                   "the player does not hold the item %s", uid);

    context->refusal->value = uid;
    return e;
}

err goods_take_items(struct apply_context *context, size_t count, char *const *uids,
                     struct item_row *ret_items)
{
    struct player *player = context->player;
    struct row_key key;
    struct slice value;
    uint8_t uid[ITEM_UID_BYTES];
    err result = ERR_OK;

    for (size_t i = 0; i < count; i++) {
        CHECK(item_uid_parse(slice_from_text(uids[i]), uid) == ERR_OK);
        row_key_item(&key, player->entity, uid);
        switch (state_find(context->state, row_key_slice(&key), &value)) {
        case STATE_MISSING:
            need_add_key(context->need, row_key_slice(&key));
            result = ERR_NEED;
            break;
        case STATE_ABSENT:
            if (result == ERR_OK)
                result = refuse_not_held(context, i, uids[i]);
            break;
        case STATE_PRESENT:
            if (item_row_decode(row_key_slice(&key), arena_copy(context->arena, value),
                                &ret_items[i]) != ERR_OK &&
                result == ERR_OK)
                result = apply_damaged(context, player->entity, ITEM_DAMAGE);
            ret_items[i].step++;
            break;
        }
    }
    for (size_t i = 0; i < count && result == ERR_OK; i++) {
        row_key_item(&key, player->entity, ret_items[i].uid);
        state_delete(context->state, row_key_slice(&key));
        if (player->item_count > 0)
            player->item_count--;
        else
            damage_note(context->damage, player->entity, "the player's count of items is wrong");
    }
    return result;
}

static err refuse_full(struct apply_context *context, size_t count, uint64_t items_max)
{
    struct arena *arena = context->arena;
    uint32_t held = context->player->item_count;
    err e = refuse(arena, context->refusal, CODE(CAPACITY_FULL), "items",
                   "the player holds %u items; %zu more would pass the maximum of %" PRIu64, held,
                   count, items_max);

    context->refusal->limit = arena_printf(arena, "%" PRIu64, items_max);
    context->refusal->value = arena_printf(arena, "%" PRIu64, held + (uint64_t)count);
    refusal_tell_capacity(context, "items", (int64_t)items_max);
    return e;
}

err goods_put_items(struct apply_context *context, size_t count, Holdfast__V1__Item *const *items,
                    uint64_t items_max, struct item_row *ret_items)
{
    struct player *player = context->player;
    struct row_key key;

    if (count > 0 && player->item_count + count > items_max)
        return refuse_full(context, count, items_max);
    for (size_t i = 0; i < count; i++) {
        ret_items[i] = goods_item_row(items[i]);
        ret_items[i].step++;
        buf_clear(context->scratch);
        item_row_encode(&ret_items[i], context->scratch);
        row_key_item(&key, player->entity, ret_items[i].uid);
        state_put(context->state, row_key_slice(&key), buf_slice(context->scratch));
    }
    player->item_count += (uint32_t)count;
    return ERR_OK;
}

bool goods_are_large(const Holdfast__V1__Mail *mail)
{
    for (size_t i = 0; i < mail->n_currencies; i++) {
        if (mail->currencies[i]->amount > GOODS_LARGE)
            return true;
    }
    return false;
}

err goods_note_sent(struct apply_context *context, const Holdfast__V1__Mail *mail)
{
    for (size_t i = 0; i < mail->n_currencies; i++) {
        int64_t amount = mail->currencies[i]->amount;
        if (amount <= GOODS_LARGE)
            continue;
        struct balance *balance =
            player_find_balance(context->player, slice_from_text(mail->currencies[i]->currency));
        CHECK(balance != NULL); /* It was debited. */
        if (balance->sent > AMOUNT_MAX - amount) {
            err e = refuse(context->arena, context->refusal, CODE(THROTTLED),
                           entry_field_applied(context, "currencies", i,
                                               mail->currencies[i]->currency, "amount"),
                           "%" PRId64 " of it are on their way already; nothing was done",
                           balance->sent);
            context->refusal->limit = arena_printf(context->arena, "%lld", AMOUNT_MAX);
            context->refusal->value = arena_printf(context->arena, "%" PRId64, amount);
            context->refusal->retry_after_ms = SENT_RETRY_MS;
            context->refusal->transient = true;
            return e;
        }
        balance->sent += amount;
    }
    return ERR_OK;
}

void goods_forget_sent(struct player *player, const Holdfast__V1__Mail *mail)
{
    for (size_t i = 0; i < mail->n_currencies; i++) {
        int64_t amount = mail->currencies[i]->amount;
        struct balance *balance =
            player_find_balance(player, slice_from_text(mail->currencies[i]->currency));
        if (amount <= GOODS_LARGE || balance == NULL)
            continue;
        /* What left before this was noted is not in it. */
        balance->sent -= balance->sent < amount ? balance->sent : amount;
    }
}

uint32_t goods_add_amounts(struct apply_context *context, size_t count,
                           Holdfast__V1__CurrencyAmount *const *amounts,
                           struct ledger_change *ret_changes)
{
    struct player *player = context->player;
    uint32_t added = 0;

    for (size_t i = 0; i < count; i++) {
        struct slice name = slice_from_text(amounts[i]->currency);
        int64_t after = 0;
        /* It stands since it was debited; but for a player whose row was repaired meanwhile. */
        bool full =
            player_find_balance(player, name) == NULL && player->balance_count == CURRENCIES_MAX;
        struct balance *balance = full ? NULL : player_get_balance(player, context->arena, name);
        if (full || __builtin_add_overflow(balance->amount, amounts[i]->amount, &after)) {
            damage_note(context->damage, player->entity, AMOUNT_DAMAGE);
            continue;
        }
        balance->amount = after;
        ret_changes[added++] = (struct ledger_change){
            .currency = name,
            .amount = amounts[i]->amount,
            .balance_after = after,
            .reserved_after = balance->reserved,
        };
    }
    return added;
}

void goods_refund(struct apply_context *context, const Holdfast__V1__Mail *mail,
                  uint32_t counterpart_count, const char *const *counterparts)
{
    struct ledger_change changes[LEDGER_CHANGES_MAX];
    struct item_row items[LEDGER_ITEMS_MAX];

    CHECK(mail->n_currencies <= LEDGER_CHANGES_MAX);
    CHECK(mail->n_items <= LEDGER_ITEMS_MAX);
    uint32_t change_count =
        goods_add_amounts(context, mail->n_currencies, mail->currencies, changes);
    CHECK(goods_put_items(context, mail->n_items, mail->items, UINT64_MAX, items) == ERR_OK);
    struct ledger_entry entry = {
        .kind = HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_REFUND,
        .reason = slice_from_text(mail->reason),
        .change_count = change_count,
        .changes = changes,
        .item_count = (uint32_t)mail->n_items,
        .items = items,
        .counterpart_count = counterpart_count,
        .counterparts = counterparts,
    };
    ledger_append(context, &entry);
}

bool goods_are_none(const Holdfast__V1__Mail *mail)
{
    return mail->n_currencies + mail->n_items == 0;
}
