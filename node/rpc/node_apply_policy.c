#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "idl/policy_limit.h"
#include "node/core/codec/text_rule.h"
#include "node/core/definition/definition.h"
#include "node/core/handler/operation_floor.h"
#include "node/core/handler/refusal.h"
#include "node/core/profile/profile.h"
#include "node/rpc/methods.h"
#include "runtime/base/check.h"

typedef Holdfast__V1__CurrencyPolicy CurrencyPolicy;

static err check_currency(struct check_context *context, size_t place,
                          CurrencyPolicy *const *currencies)
{
    struct arena *arena = context->arena;
    CurrencyPolicy *currency = currencies[place];
    struct slice name = slice_from_text(currency->name);

    if (!text_is_name(name, CURRENCY_NAME_BYTES_MAX))
        return refuse_invalid(arena, context->refusal,
                              arena_printf(arena, "policy.currencies[%zu].name", place),
                              "1 to 32 of [a-z0-9_]", text_shorten(arena, name));
    for (size_t i = 0; i < place; i++) {
        if (strcmp(currencies[i]->name, currency->name) == 0)
            return refuse_invalid(arena, context->refusal,
                                  arena_printf(arena, "policy.currencies[%zu].name", place),
                                  "each currency once", currency->name);
    }
    if (currency->max_balance == 0)
        currency->max_balance = AMOUNT_MAX;
    if (currency->max_balance < 0 || currency->max_balance > AMOUNT_MAX)
        return refuse_number(arena, context->refusal,
                             arena_printf(arena, "policy.currencies[%zu].max_balance", place),
                             "0 to 9007199254740991", currency->max_balance);
    if (currency->min_balance < -AMOUNT_MAX || currency->min_balance > 0)
        return refuse_number(arena, context->refusal,
                             arena_printf(arena, "policy.currencies[%zu].min_balance", place),
                             "-9007199254740991 to 0", currency->min_balance);
    return ERR_OK;
}

static err check_limits(struct check_context *context, Holdfast__V1__Policy *policy)
{
    struct policy standard = policy_default();
    struct arena *arena = context->arena;

    if (policy->operation_window_ms == 0)
        policy->operation_window_ms = standard.operation_window_ms;
    if (policy->operations_max == 0)
        policy->operations_max = standard.operations_max;
    if (policy->items_max == 0)
        policy->items_max = standard.items_max;
    if (policy->mailbox_max == 0)
        policy->mailbox_max = standard.mailbox_max;
    if (policy->operation_window_ms < POLICY_WINDOW_MS_MIN ||
        policy->operation_window_ms > POLICY_WINDOW_MS_MAX)
        return refuse_unsigned(arena, context->refusal, "policy.operation_window_ms",
                               "900000 to 604800000", policy->operation_window_ms);
    if (policy->operations_max < POLICY_OPERATIONS_MIN ||
        policy->operations_max > POLICY_OPERATIONS_MAX)
        return refuse_unsigned(arena, context->refusal, "policy.operations_max",
                               "1000 to 100000000", policy->operations_max);
    if (policy->items_max > POLICY_ITEMS_MAX)
        return refuse_number(arena, context->refusal, "policy.items_max", "1 to 1000000",
                             policy->items_max);
    if (policy->mailbox_max > POLICY_MAILS_MAX)
        return refuse_number(arena, context->refusal, "policy.mailbox_max", "1 to 100000",
                             policy->mailbox_max);
    return ERR_OK;
}

static err node_apply_policy_check(struct check_context *context, ProtobufCMessage *message)
{
    Holdfast__Internal__V1__ApplyPolicyRequest *request =
        (Holdfast__Internal__V1__ApplyPolicyRequest *)message;
    Holdfast__V1__Policy *policy = request->policy;

    if (policy == NULL || policy->version == 0)
        return refuse_invalid(context->arena, context->refusal, "policy.version",
                              "the version that stands plus one", "0");
    if (policy->n_currencies > CURRENCIES_MAX)
        return refuse_number(context->arena, context->refusal, "policy.currencies", "at most 64",
                             (int64_t)policy->n_currencies);
    for (size_t i = 0; i < policy->n_currencies; i++) {
        err e = check_currency(context, i, policy->currencies);
        if (e != ERR_OK)
            return e;
    }
    return check_limits(context, policy);
}

static void keep_debts(const struct apply_context *context, struct policy *policy)
{
    const struct policy *before = &context->meta->policy;

    if (context->version >= DROPPED_MIN_APPLY_VERSION) {
        policy_keep_lowest(before, policy);
        return;
    }
    for (uint32_t i = 0; i < policy->currency_count; i++) {
        struct currency *currency = &policy->currencies[i];
        const struct currency *stood =
            policy_find_currency(before, slice_from_text(currency->name));

        if (stood != NULL && stood->lowest_min < currency->lowest_min)
            currency->lowest_min = stood->lowest_min;
    }
}

static struct policy policy_of(const struct apply_context *context,
                               const Holdfast__Internal__V1__ApplyPolicyRequest *request)
{
    const Holdfast__V1__Policy *given = request->policy;
    const struct policy *before = &context->meta->policy;
    struct policy policy = { .generation = before->generation, .version = given->version };

    if (context->version >= POLICY_GENERATION_APPLY_VERSION && request->generation > 0)
        policy.generation = request->generation;
    policy.operation_window_ms = given->operation_window_ms;
    policy.operations_max = given->operations_max;
    policy.items_max = given->items_max;
    policy.mailbox_max = given->mailbox_max;
    policy.currency_count = (uint32_t)given->n_currencies;
    for (size_t i = 0; i < given->n_currencies; i++) {
        struct currency *currency = &policy.currencies[i];
        memcpy(currency->name, given->currencies[i]->name, strlen(given->currencies[i]->name));
        currency->min_balance = given->currencies[i]->min_balance;
        currency->max_balance = given->currencies[i]->max_balance;
        currency->lowest_min = currency->min_balance;
    }
    qsort(policy.currencies, policy.currency_count, sizeof(struct currency), currency_compare);
    return policy;
}

static void tell(const struct apply_context *context,
                 Holdfast__Internal__V1__ApplyPolicyResponse *response)
{
    if (context->version < POLICY_GENERATION_APPLY_VERSION)
        return;
    response->generation = context->meta->policy.generation;
    response->version = context->meta->policy.version;
}

/* Applying a policy again, or an older one late, changes nothing. One of an etcd that was restored
 * and accepted holds over all of before, whatever its version is. */
static err node_apply_policy_handle(struct apply_context *context, const ProtobufCMessage *message,
                                    ProtobufCMessage *reply)
{
    const Holdfast__Internal__V1__ApplyPolicyRequest *request =
        (const Holdfast__Internal__V1__ApplyPolicyRequest *)message;
    Holdfast__Internal__V1__ApplyPolicyResponse *response =
        (Holdfast__Internal__V1__ApplyPolicyResponse *)reply;
    struct policy policy = policy_of(context, request);

    response->dot = dot_message(context->arena, context->dot);
    if (policy_order(&policy, &context->meta->policy) > 0) {
        err e = definition_keep_currencies(context, &policy);
        if (e != ERR_OK)
            return e;
        keep_debts(context, &policy);
        operation_floor_keep(context, policy.operation_window_ms);
        context->meta->policy = policy;
    }
    tell(context, response);
    return ERR_OK;
}

const struct handler node_apply_policy_handler = {
    .method = METHOD_APPLY_POLICY,
    .check = node_apply_policy_check,
    .handle = node_apply_policy_handle,
};
