#include "router/rpc/forward.h"

#include "router/core/refusal.h"
#include "router/rpc/handlers.h"

static struct slice encode_in_arena(struct arena *arena, const ProtobufCMessage *message)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *data = arena_alloc(arena, size + 1);

    (void)protobuf_c_message_pack(message, data);
    return (struct slice){ data, size };
}

err forward_prepare(struct request *request, const struct forward_message *message,
                    struct caller_call *call, Holdfast__V1__ErrorDetail *ret_detail)
{
    struct router *router = request->router;
    struct route_entity entity;
    err e =
        route_find_entity(message->method, message->message, request->arena, &entity, ret_detail);

    if (e != ERR_OK)
        return e;
    if (!shard_map_find_shard_of(router->options.map,
                                 (struct slice){ (const uint8_t *)entity.text, entity.size },
                                 &call->shard)) {
        refusal_make(request->arena, ret_detail, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNAVAILABLE,
                     "the router does not know the cluster yet; nothing was done");
        return ERR_UNAVAILABLE;
    }
    call->method = (uint16_t)message->method->id;
    call->priority = (uint8_t)request->priority;
    call->mutation = message->method->route == METHOD_MUTATION;
    call->deadline_ms = request->answer_by_ms;
    call->trace = request->trace;
    call->body = message->encoded.size > 0 ? message->encoded
                                           : encode_in_arena(request->arena, message->message);
    return ERR_OK;
}

static void forward_done(struct caller_call *call, const struct caller_result *result)
{
    struct request *request = call->user;

    request->attempts += call->retry.sent;
    if (result->detail != NULL)
        request_fail(request, result->detail);
    else
        request_reply_encoded(request, result->body);
}

/* Nobody waits any more: the node is told, and what it does stays unknown to the caller. */
static void forward_cancel(struct request *request)
{
    struct caller_call *call = request->state;

    caller_cancel(call);
    request_fail_text(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_OUTCOME_UNKNOWN,
                      "the caller has gone");
}

void forward_handle(struct request *request)
{
    const struct forward_message message = { request->method, request->message, request->encoded };
    struct caller_call *call = arena_alloc(request->arena, sizeof *call);
    Holdfast__V1__ErrorDetail detail;

    if (forward_prepare(request, &message, call, &detail) != ERR_OK) {
        request_fail(request, &detail);
        return;
    }
    call->done = forward_done;
    call->user = request;
    request->state = call;
    request->cancel = forward_cancel;
    caller_start(request->router->options.caller, call);
}
