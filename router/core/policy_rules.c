#include "router/core/policy_rules.h"

#include <string.h>

#include "router/core/refusal.h"

static err refuse(struct arena *arena, Holdfast__V1__ErrorDetail *ret_detail, const char *field,
                  const char *limit, const char *value)
{
    refusal_make_field(arena, ret_detail,
                       &(struct refusal_field){ field, limit, slice_from_text(value) },
                       "the policy is out of bounds");
    return ERR_INVALID;
}

static bool name_is_valid(const char *name)
{
    size_t size = strlen(name);

    return size >= 1 && size <= POLICY_CURRENCY_NAME_MAX &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == size;
}

static err complete_currency(const Holdfast__V1__Policy *policy, size_t place, struct arena *arena,
                             Holdfast__V1__CurrencyPolicy *ret_currency,
                             Holdfast__V1__ErrorDetail *ret_detail)
{
    Holdfast__V1__CurrencyPolicy currency = *policy->currencies[place];

    if (!name_is_valid(currency.name))
        return refuse(arena, ret_detail, arena_printf(arena, "policy.currencies[%zu].name", place),
                      "1 to 32 of [a-z0-9_]", currency.name);
    for (size_t i = 0; i < place; i++) {
        if (strcmp(policy->currencies[i]->name, currency.name) == 0)
            return refuse(arena, ret_detail,
                          arena_printf(arena, "policy.currencies[%zu].name", place),
                          "each name once", currency.name);
    }
    if (currency.max_balance == 0)
        currency.max_balance = POLICY_AMOUNT_MAX;
    if (currency.max_balance < 0 || currency.max_balance > POLICY_AMOUNT_MAX)
        return refuse(
            arena, ret_detail, arena_printf(arena, "policy.currencies[%zu].max_balance", place),
            "0 to 2^53 - 1", arena_printf(arena, "%lld", (long long)currency.max_balance));
    if (currency.min_balance > 0 || currency.min_balance < -POLICY_AMOUNT_MAX)
        return refuse(
            arena, ret_detail, arena_printf(arena, "policy.currencies[%zu].min_balance", place),
            "-(2^53 - 1) to 0", arena_printf(arena, "%lld", (long long)currency.min_balance));
    *ret_currency = currency;
    return ERR_OK;
}

static err refuse_number(struct arena *arena, Holdfast__V1__ErrorDetail *ret_detail,
                         const char *field, const char *limit, uint64_t value)
{
    return refuse(arena, ret_detail, field, limit,
                  arena_printf(arena, "%llu", (unsigned long long)value));
}

/* Of a policy with its defaults. */
static err check_limits(const Holdfast__V1__Policy *policy, struct arena *arena,
                        Holdfast__V1__ErrorDetail *ret_detail)
{
    if (policy->operation_window_ms < POLICY_WINDOW_MS_MIN ||
        policy->operation_window_ms > POLICY_WINDOW_MS_MAX)
        return refuse_number(arena, ret_detail, "policy.operation_window_ms", "900000 to 604800000",
                             policy->operation_window_ms);
    if (policy->operations_max < POLICY_OPERATIONS_MIN ||
        policy->operations_max > POLICY_OPERATIONS_MAX)
        return refuse_number(arena, ret_detail, "policy.operations_max", "1000 to 100000000",
                             policy->operations_max);
    if (policy->items_max > POLICY_ITEMS_MAX)
        return refuse_number(arena, ret_detail, "policy.items_max", "1 to 1000000",
                             policy->items_max);
    if (policy->mailbox_max > POLICY_MAILS_MAX)
        return refuse_number(arena, ret_detail, "policy.mailbox_max", "1 to 100000",
                             policy->mailbox_max);
    return ERR_OK;
}

err policy_complete(const Holdfast__V1__Policy *policy, struct arena *arena,
                    Holdfast__V1__Policy **ret_policy, Holdfast__V1__ErrorDetail *ret_detail)
{
    Holdfast__V1__Policy *copy = arena_alloc(arena, sizeof *copy);

    if (policy == NULL)
        return refuse(arena, ret_detail, "policy", "a policy", "");
    if (policy->n_currencies > POLICY_CURRENCIES_MAX)
        return refuse_number(arena, ret_detail, "policy.currencies", "at most 64",
                             policy->n_currencies);
    *copy = *policy;
    if (copy->operation_window_ms == 0)
        copy->operation_window_ms = POLICY_WINDOW_MS_DEFAULT;
    if (copy->operations_max == 0)
        copy->operations_max = POLICY_OPERATIONS_DEFAULT;
    if (copy->items_max == 0)
        copy->items_max = POLICY_ITEMS_DEFAULT;
    if (copy->mailbox_max == 0)
        copy->mailbox_max = POLICY_MAILS_DEFAULT;
    err limits = check_limits(copy, arena, ret_detail);
    if (limits != ERR_OK)
        return limits;
    copy->currencies = arena_alloc(arena, (copy->n_currencies + 1) * sizeof *copy->currencies);
    for (size_t i = 0; i < copy->n_currencies; i++) {
        Holdfast__V1__CurrencyPolicy *currency = arena_alloc(arena, sizeof *currency);
        err e = complete_currency(policy, i, arena, currency, ret_detail);

        if (e != ERR_OK)
            return e;
        copy->currencies[i] = currency;
    }
    *ret_policy = copy;
    return ERR_OK;
}

err policy_check_successor(const Holdfast__V1__Policy *next, const Holdfast__V1__Policy *current,
                           struct arena *arena, Holdfast__V1__ErrorDetail *ret_detail)
{
    uint64_t wanted = (current != NULL ? current->version : 0) + 1;

    if (next->version == wanted)
        return ERR_OK;
    refusal_make(arena, ret_detail, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_VERSION_CONFLICT,
                 "the policy's version must be the current one plus one");
    ret_detail->field = arena_printf(arena, "policy.version");
    ret_detail->limit = arena_printf(arena, "%llu", (unsigned long long)wanted);
    ret_detail->value = arena_printf(arena, "%llu", (unsigned long long)(wanted - 1));
    refusal_tell_version(arena, ret_detail, wanted - 1);
    return ERR_INVALID;
}

bool policy_declares(const Holdfast__V1__Policy *policy, const char *currency)
{
    for (size_t i = 0; policy != NULL && i < policy->n_currencies; i++) {
        if (strcmp(policy->currencies[i]->name, currency) == 0)
            return true;
    }
    return false;
}

static bool is_dropped(const struct policy_drops *drops, const char *currency)
{
    for (size_t i = 0; i < drops->count; i++) {
        if (strcmp(drops->names[i], currency) == 0)
            return true;
    }
    return false;
}

err policy_check_drops(const Holdfast__V1__Policy *next, const Holdfast__V1__Policy *current,
                       const struct policy_drops *drops, struct arena *arena,
                       Holdfast__V1__ErrorDetail *ret_detail)
{
    if (drops->count > POLICY_CURRENCIES_MAX)
        return refuse_number(arena, ret_detail, "drop_currencies", "at most 64", drops->count);
    for (size_t i = 0; i < drops->count; i++) {
        const char *name = drops->names[i];

        if (!policy_declares(current, name) || policy_declares(next, name))
            return refuse(arena, ret_detail, arena_printf(arena, "drop_currencies[%zu]", i),
                          "a currency that the current policy has and the next one leaves out",
                          name);
    }
    for (size_t i = 0; current != NULL && i < current->n_currencies; i++) {
        const char *name = current->currencies[i]->name;

        if (policy_declares(next, name) || is_dropped(drops, name))
            continue;
        refusal_make_field(arena, ret_detail,
                           &(struct refusal_field){ "policy.currencies",
                                                    "every currency of the current policy that "
                                                    "drop_currencies does not name",
                                                    slice_from_text(name) },
                           "players may hold a currency that the policy leaves out");
        return ERR_INVALID;
    }
    return ERR_OK;
}
