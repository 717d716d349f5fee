/* A consumer's place moves on. Nothing of what happens in between sets it back: neither a worker
 * that slept while another one committed, nor a request that was under way for long. */
#include "idl/method.h"
#include "node/core/consumer/consumer.h"
#include "node/core/handler/refusal.h"
#include "node/rpc/methods.h"

typedef Holdfast__V1__CommitConsumerRequest commit_request;
typedef Holdfast__V1__CommitConsumerResponse commit_response;

static err event_commit_consumer_check(struct check_context *context, ProtobufCMessage *message)
{
    commit_request *request = (void *)message;

    err e = consumer_check_name(context, request->consumer);
    if (e == ERR_OK)
        e = consumer_check_op(context, &request->op_id);
    if (e == ERR_OK && request->version == 0)
        e = refuse_invalid(context->arena, context->refusal, "version",
                           "the consumer's version, as Poll or GetConsumer tells it", "0");
    return e == ERR_OK ? consumer_check_cursor(context, request->cursor, request->rewind) : e;
}

static void event_commit_consumer_footprint(const struct op *op, const ProtobufCMessage *message,
                                            struct need *keys)
{
    (void)op;
    consumer_footprint(((const commit_request *)(const void *)message)->consumer, keys);
}

/* Before the log each cursor was found to be one; entries of the log are looked at once more. */
static err move(struct apply_context *context, const commit_request *request,
                struct consumer *consumer)
{
    struct event_cursor next = { 0 };
    struct slice text = slice_from_text(request->cursor);

    if (text.size > 0 &&
        event_cursor_decode(text, context->op->shard_count, context->arena, &next) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "cursor",
                              "next_cursor of Poll or Subscribe of this cluster", "");
    bool back =
        consumer->cursor.shard_count > 0 && (next.shard_count != consumer->cursor.shard_count ||
                                             event_cursor_goes_back(&consumer->cursor, &next));
    if (back && !request->rewind)
        return refuse(context->arena, context->refusal, CODE(OUT_OF_RANGE), "cursor",
                      "the cursor is before what is committed, in some shard, and `rewind` is not "
                      "set");
    consumer->row.cursor = text;
    consumer->cursor = next;
    return ERR_OK;
}

static err commit(struct apply_context *context, const commit_request *request,
                  struct consumer *consumer)
{
    struct version_pair versions = { consumer->row.version, request->version };

    if (versions.current != versions.expected)
        return refuse_version(context, "version", "the consumer", &versions);
    err e = move(context, request, consumer);
    if (e == ERR_OK)
        consumer_store(context, consumer, request->op_id, CONSUMER_COMMITTED);
    return e;
}

static err event_commit_consumer_handle(struct apply_context *context,
                                        const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    const commit_request *request = (const void *)message;
    commit_response *response = (void *)reply;
    struct consumer consumer;
    bool repeats = false;

    err e = consumer_find_applied(context, request->consumer, &consumer);
    if (e == ERR_OK && !consumer.exists)
        e = consumer_refuse_absent(context->arena, context->refusal, consumer.name);
    if (e == ERR_OK)
        e = consumer_repeats(context, &consumer, request->op_id, CONSUMER_COMMITTED, &repeats);
    if (e == ERR_OK && !repeats)
        e = commit(context, request, &consumer);
    if (e != ERR_OK)
        return e;
    response->consumer = consumer_tell(context->arena, &consumer, true);
    response->duplicate = repeats;
    return ERR_OK;
}

const struct handler event_commit_consumer_handler = {
    .method = METHOD_COMMIT_CONSUMER,
    .check = event_commit_consumer_check,
    .footprint = event_commit_consumer_footprint,
    .handle = event_commit_consumer_handle,
};
