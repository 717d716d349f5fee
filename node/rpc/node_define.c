/* Versions of definitions, which the coordinator brings to every shard. */
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/text_rule.h"
#include "node/core/definition/definition.h"
#include "node/core/handler/refusal.h"
#include "node/rpc/methods.h"

typedef Holdfast__Internal__V1__DefineRequest define_request;

static err refuse_one(struct check_context *context, size_t place, const char *field,
                      const char *limit, const char *value)
{
    return refuse_invalid(context->arena, context->refusal,
                          arena_printf(context->arena, "definitions[%zu].%s", place, field), limit,
                          value);
}

static err check_currency(struct check_context *context, size_t place, const defined *given)
{
    const Holdfast__V1__CurrencyBody *currency = given->body->currency;
    struct slice name = slice_from_text(given->name);

    if (!text_is_name(name, CURRENCY_NAME_BYTES_MAX))
        return refuse_one(context, place, "name", "1 to 32 of [a-z0-9_]",
                          text_shorten(context->arena, name));
    if (currency->max_balance < 0 || currency->max_balance > AMOUNT_MAX)
        return refuse_one(context, place, "body.currency.max_balance", "0 to 9007199254740991",
                          arena_printf(context->arena, "%lld", (long long)currency->max_balance));
    if (currency->min_balance < -AMOUNT_MAX || currency->min_balance > 0)
        return refuse_one(context, place, "body.currency.min_balance", "-9007199254740991 to 0",
                          arena_printf(context->arena, "%lld", (long long)currency->min_balance));
    return ERR_OK;
}

static err check_one(struct check_context *context, const define_request *request, size_t place)
{
    defined *given = request->definitions[place];
    struct slice name = slice_from_text(given->name);
    size_t size = protobuf_c_message_get_packed_size(&given->base);

    if (given->number == 0)
        return refuse_one(context, place, "number", "above 0", "0");
    if (!text_is_name(name, DEFINITION_NAME_MAX))
        return refuse_one(context, place, "name", "1 to 64 of [a-z0-9_]",
                          text_shorten(context->arena, name));
    if (given->body == NULL ||
        given->body->kind_case == HOLDFAST__V1__DEFINITION_BODY__KIND__NOT_SET)
        return refuse_one(context, place, "body", "a body of a kind that this version knows", "");
    if (given->revision <= request->from_revision || given->revision > request->to_revision)
        return refuse_one(
            context, place, "revision", "within the span",
            arena_printf(context->arena, "%llu", (unsigned long long)given->revision));
    if (size > DEFINITION_BYTES_MAX)
        return refuse_one(context, place, "body", "at most 4096 bytes",
                          arena_printf(context->arena, "%zu", size));
    given->generation = request->generation;
    if (given->body->kind_case == HOLDFAST__V1__DEFINITION_BODY__KIND_CURRENCY)
        return check_currency(context, place, given);
    return ERR_OK;
}

/* Replicas of an earlier program could not apply it. */
static err refuse_early(struct check_context *context)
{
    err e = refuse(context->arena, context->refusal, CODE(UNAVAILABLE), "",
                   "shard %u applies version %u; definitions begin with %u, once all its "
                   "replicas are updated",
                   context->shard, context->meta->apply_version, DEFINITION_APPLY_VERSION);

    (void)e;
    return ERR_INVALID;
}

static err node_define_check(struct check_context *context, ProtobufCMessage *message)
{
    define_request *request = (void *)message;
    struct arena *arena = context->arena;
    err e = ERR_OK;

    if (context->meta->apply_version < DEFINITION_APPLY_VERSION)
        return refuse_early(context);
    if (request->generation == 0 || request->from_revision > request->to_revision)
        return refuse_invalid(
            arena, context->refusal, "to_revision", "a revision that is not below from_revision",
            arena_printf(arena, "%llu", (unsigned long long)request->to_revision));
    if (request->n_definitions > DEFINE_COUNT_MAX)
        return refuse_number(arena, context->refusal, "definitions", "at most 64",
                             (int64_t)request->n_definitions);
    for (size_t i = 0; i < request->n_definitions && e == ERR_OK; i++)
        e = check_one(context, request, i);
    return e;
}

static void node_define_footprint(const struct op *op, const ProtobufCMessage *message,
                                  struct need *keys)
{
    (void)op;
    definition_footprint((const define_request *)(const void *)message, keys);
}

static err node_define_handle(struct apply_context *context, const ProtobufCMessage *message,
                              ProtobufCMessage *reply)
{
    Holdfast__Internal__V1__DefineResponse *response = (void *)reply;
    defined_head *head = NULL;

    err e = definition_take(context, (const define_request *)(const void *)message, &head);
    if (e != ERR_OK)
        return e;
    response->generation = head->generation;
    response->revision = head->revision;
    return ERR_OK;
}

const struct handler node_define_handler = {
    .method = METHOD_DEFINE,
    .check = node_define_check,
    .footprint = node_define_footprint,
    .handle = node_define_handle,
};
