#include "node/rpc/wallet.h"

#include <inttypes.h>
#include <string.h>

#include "idl/limit.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/json_canon.h"
#include "node/core/codec/text_rule.h"
#include "node/core/goods/goods.h"
#include "node/core/handler/refusal.h"
#include "runtime/base/check.h"
#include "runtime/base/nearest.h"

#define ITEM_KIND_BYTES_MAX       LIMIT_ITEM_KIND_BYTES
#define ITEM_ATTRIBUTES_BYTES_MAX LIMIT_ITEM_ATTRIBUTES_BYTES

/* Only before the log: what a replica says of an entry is part of the outcome that all versions of
 * the program must compute alike. */
void wallet_currency_hint(struct check_context *context, const char *given)
{
    const struct policy *policy = &context->meta->policy;
    struct refusal *refusal = context->refusal;
    struct nearest nearest;
    char hint[NEAREST_HINT_BYTES];

    nearest_init(&nearest, slice_from_text(given));
    for (uint32_t i = 0; i < policy->currency_count; i++)
        nearest_offer_text(&nearest, policy->currencies[i].name);
    if (nearest.name.size > 0)
        refusal->message = arena_printf(context->arena, "%s%s", refusal->message,
                                        nearest_hint(nearest.name, hint));
}

static const char *amount_field(struct arena *arena, size_t place,
                                const Holdfast__V1__CurrencyAmount *amount, const char *name)
{
    return entry_field(arena, "currencies", place, amount->currency, name);
}

static err amount_check(struct check_context *context, size_t place,
                        Holdfast__V1__CurrencyAmount *const *amounts)
{
    const Holdfast__V1__CurrencyAmount *amount = amounts[place];
    struct arena *arena = context->arena;

    err e = wallet_currency_check(arena, context->refusal, &context->meta->policy,
                                  amount_field(arena, place, amount, "currency"), amount->currency);
    if (e == ERR_INVALID)
        wallet_currency_hint(context, amount->currency);
    e = refusal_defer(context, e);
    if (e != ERR_OK)
        return e;
    if (amount->amount < 1 || amount->amount > AMOUNT_MAX)
        return refuse_number(arena, context->refusal, amount_field(arena, place, amount, "amount"),
                             "1 to 9007199254740991", amount->amount);
    for (size_t i = 0; i < place; i++) {
        if (strcmp(amounts[i]->currency, amount->currency) == 0)
            return refuse_twin(arena, context->refusal, amount_field(arena, place, amount, ""));
    }
    return ERR_OK;
}

err wallet_amounts_check(struct check_context *context, size_t count,
                         Holdfast__V1__CurrencyAmount *const *amounts)
{
    if (count > LEDGER_CHANGES_MAX)
        return refuse_number(context->arena, context->refusal, "currencies", "at most 16",
                             (int64_t)count);
    for (size_t i = 0; i < count; i++) {
        err e = amount_check(context, i, amounts);
        if (e != ERR_OK)
            return e;
    }
    return ERR_OK;
}

/* An empty text and Luau's [] for an empty table both mean {}. */
static err attributes_check(struct check_context *context, size_t place, char **attributes)
{
    struct slice given = slice_from_text(*attributes);
    struct buf canonical = { 0 };
    const char *why = "a JSON object of at most 1024 bytes";
    static char empty[] = "{}";
    err e;

    if (given.size == 0 || slice_equal(given, SLICE_LITERAL("[]")) ||
        slice_equal(given, SLICE_LITERAL("{}"))) {
        *attributes = empty;
        return ERR_OK;
    }
    e = given.size > 4u * ITEM_ATTRIBUTES_BYTES_MAX ? ERR_INVALID
                                                    : json_canon(given, &canonical, &why);
    if (e == ERR_OK && (canonical.data[0] != '{' || canonical.size > ITEM_ATTRIBUTES_BYTES_MAX)) {
        why = "a JSON object of at most 1024 bytes";
        e = ERR_INVALID;
    }
    if (e == ERR_OK)
        *attributes = arena_text(context->arena, buf_slice(&canonical));
    else
        e = refuse_invalid(context->arena, context->refusal,
                           arena_printf(context->arena, "items[%zu].attributes", place), why,
                           text_shorten(context->arena, given));
    buf_deinit(&canonical);
    return e;
}

err wallet_items_check(struct check_context *context, size_t count, Holdfast__V1__ItemSpec **items)
{
    if (count > LEDGER_ITEMS_MAX)
        return refuse_number(context->arena, context->refusal, "items", "at most 64",
                             (int64_t)count);
    for (size_t i = 0; i < count; i++) {
        struct slice kind = slice_from_text(items[i]->kind);
        if (kind.size == 0 || kind.size > ITEM_KIND_BYTES_MAX || !text_is_clean(kind))
            return refuse_invalid(context->arena, context->refusal,
                                  arena_printf(context->arena, "items[%zu].kind", i),
                                  "1 to 64 bytes of UTF-8 without control characters",
                                  text_shorten(context->arena, kind));
        err e = attributes_check(context, i, &items[i]->attributes);
        if (e != ERR_OK)
            return e;
    }
    return ERR_OK;
}

err wallet_reason_check(struct check_context *context, const char *reason)
{
    struct slice text = slice_from_text(reason);

    if (text.size <= REASON_BYTES_MAX && text_is_clean(text))
        return ERR_OK;
    return refuse_invalid(context->arena, context->refusal, "reason",
                          "at most 64 bytes of UTF-8 without control characters",
                          text_shorten(context->arena, text));
}

err wallet_mint(struct apply_context *context, size_t count, Holdfast__V1__ItemSpec *const *specs,
                struct item_row *ret_items)
{
    struct player *player = context->player;
    uint64_t max = context->meta->policy.items_max;
    struct buf *row = context->scratch;
    struct row_key key;

    if (count > 0 && player->item_count + count > max) {
        err e = refuse(context->arena, context->refusal, CODE(CAPACITY_FULL), "items",
                       "the player holds %u items; %zu more would pass the maximum of %" PRIu64,
                       player->item_count, count, max);
        context->refusal->limit = arena_printf(context->arena, "%" PRIu64, max);
        context->refusal->value =
            arena_printf(context->arena, "%" PRIu64, player->item_count + (uint64_t)count);
        refusal_tell_capacity(context, "items", (int64_t)max);
        return e;
    }
    err e = goods_places_check(context, count);
    if (e != ERR_OK)
        return e;
    for (size_t i = 0; i < count; i++) {
        struct item_row *item = &ret_items[i];
        item_uid_make(context->shard, context->dot.epoch, context->dot.counter,
                      context->uid_place + (uint32_t)i, item->uid);
        item->step = 1;
        item->minted_at_ms = context->owner_ms;
        item->kind = slice_from_text(specs[i]->kind);
        item->attributes = slice_from_text(specs[i]->attributes);
        buf_clear(row);
        item_row_encode(item, row);
        row_key_item(&key, player->entity, item->uid);
        state_put(context->state, row_key_slice(&key), buf_slice(row));
    }
    player->item_count += (uint32_t)count;
    return ERR_OK;
}

struct balance_list wallet_balances(const struct apply_context *context, size_t count,
                                    const struct ledger_change *changes)
{
    struct balance_list list;

    balance_list_init(&list, context->arena, count, context->version);
    balance_list_note(&list, count, changes);
    return list;
}
