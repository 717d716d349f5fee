#include <inttypes.h>
#include <string.h>

#include "idl/method.h"
#include "node/core/consumer/consumer.h"
#include "node/core/handler/refusal.h"
#include "node/rpc/methods.h"

typedef Holdfast__V1__CreateConsumerRequest create_request;
typedef Holdfast__V1__CreateConsumerResponse create_response;

static err event_create_consumer_check(struct check_context *context, ProtobufCMessage *message)
{
    create_request *request = (void *)message;

    err e = consumer_check_name(context, request->consumer);
    if (e == ERR_OK)
        e = consumer_check_op(context, &request->op_id);
    if (e == ERR_OK)
        e = consumer_check_filter(context, request);
    return e == ERR_OK ? consumer_check_cursor(context, request->cursor, true) : e;
}

static void event_create_consumer_footprint(const struct op *op, const ProtobufCMessage *message,
                                            struct need *keys)
{
    (void)op;
    consumer_footprint(((const create_request *)(const void *)message)->consumer, keys);
}

/* One of that name stands. */
static err refuse_existing(struct apply_context *context, const struct consumer *consumer)
{
    err e = refuse(context->arena, context->refusal, CODE(VERSION_CONFLICT), "consumer",
                   "there is a consumer of that name, version %" PRIu64, consumer->row.version);

    context->refusal->value = arena_printf(context->arena, "%" PRIu64, consumer->row.version);
    return e;
}

static err check_room(struct apply_context *context)
{
    uint32_t count;

    err e = consumer_count(context, &count);
    if (e != ERR_OK || count < LIMIT_CONSUMERS)
        return e;
    e = refuse(context->arena, context->refusal, CODE(CAPACITY_FULL), "consumer",
               "shard %" PRIu32 ", where that name belongs, has %" PRIu32 " consumers",
               context->shard, count);
    context->refusal->limit = arena_printf(context->arena, "%u", LIMIT_CONSUMERS);
    context->refusal->value = arena_printf(context->arena, "%" PRIu32, count);
    return e;
}

/* Requests were looked at before the log; no entry of a log may write past a row's bounds. */
static err check_again(struct apply_context *context, const create_request *request)
{
    struct op_id id;
    const char *why;

    if (request->n_kinds <= CONSUMER_KINDS_MAX &&
        strlen(request->entity_prefix) <= CONSUMER_PREFIX_MAX &&
        strlen(request->entity) <= CONSUMER_PREFIX_MAX &&
        op_id_parse(slice_from_text(request->op_id), &id, &why) == ERR_OK)
        return ERR_OK;
    return refuse_invalid(context->arena, context->refusal, "", "a request within its limits", "");
}

static err decode_cursor(struct apply_context *context, const create_request *request,
                         struct consumer *consumer)
{
    struct slice text = slice_from_text(request->cursor);

    if (text.size == 0 || event_cursor_decode(text, context->op->shard_count, context->arena,
                                              &consumer->cursor) == ERR_OK)
        return ERR_OK;
    return refuse_invalid(context->arena, context->refusal, "cursor",
                          "next_cursor of Poll or Subscribe of this cluster", "");
}

static void create(struct apply_context *context, const create_request *request,
                   struct consumer *consumer)
{
    struct consumer_row *row = &consumer->row;

    *row = (struct consumer_row){
        .kind_count = (uint32_t)request->n_kinds,
        .entity_prefix = slice_from_text(request->entity_prefix),
        .entity = slice_from_text(request->entity),
        .cursor = slice_from_text(request->cursor),
    };
    for (uint32_t i = 0; i < row->kind_count; i++)
        row->kinds[i] = (uint8_t)request->kinds[i];
    consumer_store(context, consumer, request->op_id, CONSUMER_CREATED);
}

static err event_create_consumer_handle(struct apply_context *context,
                                        const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    const create_request *request = (const void *)message;
    create_response *response = (void *)reply;
    struct consumer consumer;
    bool repeats = false;

    err e = check_again(context, request);
    if (e == ERR_OK)
        e = consumer_find_applied(context, request->consumer, &consumer);
    if (e == ERR_OK && consumer.exists)
        e = consumer_repeats(context, &consumer, request->op_id, CONSUMER_CREATED, &repeats);
    if (e == ERR_OK && consumer.exists && !repeats)
        e = refuse_existing(context, &consumer);
    if (e == ERR_OK && !consumer.exists)
        e = check_room(context);
    if (e == ERR_OK && !repeats)
        e = decode_cursor(context, request, &consumer);
    if (e != ERR_OK)
        return e;
    if (!repeats)
        create(context, request, &consumer);
    response->consumer = consumer_tell(context->arena, &consumer, true);
    response->duplicate = repeats;
    return ERR_OK;
}

const struct handler event_create_consumer_handler = {
    .method = METHOD_CREATE_CONSUMER,
    .check = event_create_consumer_check,
    .footprint = event_create_consumer_footprint,
    .handle = event_create_consumer_handle,
};
