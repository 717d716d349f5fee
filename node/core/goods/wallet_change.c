#include "node/core/goods/wallet_change.h"

#include <inttypes.h>

#include "node/core/codec/text_rule.h"
#include "node/core/handler/refusal.h"

static const char *declared(struct arena *arena, const struct policy *policy)
{
    const char *list = "a declared currency:";

    if (policy->currency_count == 0)
        return "a declared currency; none is declared yet";
    for (uint32_t i = 0; i < policy->currency_count; i++)
        list = arena_printf(arena, "%s %s", list, policy->currencies[i].name);
    return list;
}

err wallet_currency_check(struct arena *arena, struct refusal *refusal, const struct policy *policy,
                          const char *field, const char *name)
{
    if (policy_find_currency(policy, slice_from_text(name)) != NULL)
        return ERR_OK;
    /* A new cluster: the shard serves, its first policy is on its way. Not the caller's fault. */
    if (policy->version == 0)
        return refuse(arena, refusal, CODE(UNAVAILABLE), "",
                      "no currency is declared here yet; nothing was done");
    return refuse_invalid(arena, refusal, field, declared(arena, policy),
                          text_shorten(arena, slice_from_text(name)));
}

/* Only when currencies come and go: balances of those no longer declared stay. */
static err refuse_currencies(struct apply_context *context, const char *field)
{
    err e = refuse(context->arena, context->refusal, CODE(CAPACITY_FULL), field,
                   "the player has balances in %u currencies already", CURRENCIES_MAX);
    context->refusal->limit = arena_printf(context->arena, "%u", CURRENCIES_MAX);
    refusal_tell_capacity(context, "currencies", CURRENCIES_MAX);
    return e;
}

static err refuse_balance(struct apply_context *context, size_t place,
                          const struct currency *currency, int64_t balance, int64_t amount)
{
    struct arena *arena = context->arena;
    bool below = amount < 0;
    int64_t limit = below ? currency->min_balance : currency->max_balance;

    err e = refuse(arena, context->refusal, below ? CODE(INSUFFICIENT_FUNDS) : CODE(CAPACITY_FULL),
                   entry_field_applied(context, "currencies", place, currency->name, "amount"),
                   "%s is %" PRId64 "; %+" PRId64 " would pass the %s of %" PRId64, currency->name,
                   balance, amount, below ? "minimum" : "maximum", limit);
    context->refusal->limit = arena_printf(arena, "%" PRId64, limit);
    context->refusal->value = arena_printf(arena, "%" PRId64, amount);
    if (below)
        refusal_tell_funds(context, arena_printf(arena, "%s", currency->name), balance,
                           limit - amount);
    else
        refusal_tell_capacity(context, "balance", limit);
    return e;
}

err wallet_change(struct apply_context *context, size_t count,
                  Holdfast__V1__CurrencyAmount *const *amounts, int sign,
                  struct ledger_change *ret_changes)
{
    const struct policy *policy = &context->meta->policy;

    for (size_t i = 0; i < count; i++) {
        struct slice name = slice_from_text(amounts[i]->currency);
        const struct currency *currency = policy_find_currency(policy, name);
        const struct balance *held = player_find_balance(context->player, name);
        bool full = held == NULL && context->player->balance_count == CURRENCIES_MAX;
        if (currency == NULL || full) {
            const char *field =
                entry_field_applied(context, "currencies", i, amounts[i]->currency, "currency");
            /* The policy may have changed since the request was checked. */
            return currency != NULL ? refuse_currencies(context, field)
                                    : wallet_currency_check(context->arena, context->refusal,
                                                            policy, field, amounts[i]->currency);
        }
        int64_t before = held != NULL ? held->amount : 0;
        int64_t amount = amounts[i]->amount * sign;
        int64_t after;
        if (__builtin_add_overflow(before, amount, &after) ||
            (amount > 0 && after > currency->max_balance) ||
            (amount < 0 && after < currency->min_balance))
            return refuse_balance(context, i, currency, before, amount);
        struct balance *balance = player_get_balance(context->player, context->arena, name);
        balance->amount = after;
        ret_changes[i] = (struct ledger_change){
            .currency = name,
            .amount = amount,
            .balance_after = after,
            .reserved_after = balance->reserved,
        };
    }
    return ERR_OK;
}
