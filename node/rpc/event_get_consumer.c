#include "idl/method.h"
#include "node/core/codec/text_rule.h"
#include "node/core/consumer/consumer.h"
#include "node/core/handler/refusal.h"
#include "node/rpc/methods.h"

typedef Holdfast__V1__GetConsumerRequest get_request;
typedef Holdfast__V1__GetConsumerResponse get_response;

static err event_get_consumer_read(struct read_context *context, const ProtobufCMessage *message,
                                   ProtobufCMessage *reply)
{
    const get_request *request = (const void *)message;
    get_response *response = (void *)reply;
    struct slice name = slice_from_text(request->consumer);
    struct consumer consumer;

    if (!consumer_name_is_good(name))
        return refuse_invalid(context->arena, context->refusal, "consumer", CONSUMER_NAME_RULE,
                              text_shorten(context->arena, name));
    err e =
        consumer_find(context->state, context->arena, context->need, request->consumer, &consumer);
    if (e == ERR_CORRUPT)
        return read_damaged(context, CONSUMER_DAMAGE);
    if (e == ERR_OK && !consumer.exists)
        e = consumer_refuse_absent(context->arena, context->refusal, name);
    if (e != ERR_OK)
        return e;
    response->consumer = consumer_tell(context->arena, &consumer, true);
    response->as_of = as_of_text(context);
    return ERR_OK;
}

const struct handler event_get_consumer_handler = {
    .method = METHOD_GET_CONSUMER,
    .read = event_get_consumer_read,
};
