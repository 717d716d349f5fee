#include "idl/method.h"
#include "node/core/consumer/consumer.h"
#include "node/core/handler/refusal.h"
#include "node/core/rows/rows.h"
#include "node/rpc/methods.h"

typedef Holdfast__V1__DeleteConsumerRequest delete_request;
typedef Holdfast__V1__DeleteConsumerResponse delete_response;

static err event_delete_consumer_check(struct check_context *context, ProtobufCMessage *message)
{
    return consumer_check_name(context, ((const delete_request *)(const void *)message)->consumer);
}

static void event_delete_consumer_footprint(const struct op *op, const ProtobufCMessage *message,
                                            struct need *keys)
{
    (void)op;
    consumer_footprint(((const delete_request *)(const void *)message)->consumer, keys);
}

static err event_delete_consumer_handle(struct apply_context *context,
                                        const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    const delete_request *request = (const void *)message;
    delete_response *response = (void *)reply;
    struct consumer consumer;
    struct row_key key;

    err e = consumer_find_applied(context, request->consumer, &consumer);
    if (e != ERR_OK)
        return e;
    struct version_pair versions = { consumer.row.version, request->version };
    if (consumer.exists && request->version != 0 && versions.current != versions.expected)
        return refuse_version(context, "version", "the consumer", &versions);
    response->deleted = consumer.exists;
    consumer_row_key(&key, consumer.name);
    if (consumer.exists)
        state_delete(context->state, row_key_slice(&key));
    return ERR_OK;
}

const struct handler event_delete_consumer_handler = {
    .method = METHOD_DELETE_CONSUMER,
    .check = event_delete_consumer_check,
    .footprint = event_delete_consumer_footprint,
    .handle = event_delete_consumer_handle,
};
