#include "router/rpc/forward.h"

#include <string.h>

#include "router/core/refusal.h"
#include "router/rpc/handlers.h"
#include "router/rpc/operation_tell.h"
#include "runtime/base/check.h"

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
    call->deadline_ms = request->answer_by_ms;
    call->trace = request->trace.trace_id;
    call->started_ns = request->started_ns;
    call->at_once = false;
    call->body = message->encoded.size > 0 ? message->encoded
                                           : encode_in_arena(request->arena, message->message);
    return ERR_OK;
}

void forward_count(struct request *request, const struct caller_call *call)
{
    request->attempts += call->retry.sent;
    request->last_call = call;
}

/* A node's answer that callers get in other words. */
static void reply_told(struct request *request, struct slice answer)
{
    const ProtobufCMessage *response = operation_tell(
        request->method, arena_copy(request->arena, answer), request->message, request->arena);

    if (response != NULL)
        request_reply(request, response);
    else if (request->method->writes)
        request_fail_text(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_OUTCOME_UNKNOWN,
                          "the node's answer cannot be read");
    else
        request_fail_text(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_INTERNAL,
                          "the node's answer cannot be read");
}

static void forward_done(struct caller_call *call, const struct caller_result *result)
{
    struct request *request = call->user;

    forward_count(request, call);
    if (result->detail != NULL)
        request_fail(request, result->detail);
    else if (method_answer(request->method) != request->method->response)
        reply_told(request, result->body);
    else
        request_reply_encoded(request, result->body);
}

/* The caller has gone: tell the node; the outcome stays unknown to the caller. */
static void forward_cancel(struct request *request)
{
    struct caller_call *call = request->state;

    forward_count(request, call);
    caller_cancel(call);
    request_fail_text(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_OUTCOME_UNKNOWN,
                      "the caller has gone");
}

static void forward_start(struct request *request, struct caller_call *call)
{
    call->done = forward_done;
    call->user = request;
    call->at_once = true;
    request->state = call;
    request->cancel = forward_cancel;
    caller_start(request->router->options.caller, call);
}

void forward_as(struct request *request, const struct method_info *method)
{
    const struct forward_message message = { method, request->message, request->encoded };
    struct caller_call *call = arena_alloc(request->arena, sizeof *call);
    Holdfast__V1__ErrorDetail detail;

    if (forward_prepare(request, &message, call, &detail) == ERR_OK)
        forward_start(request, call);
    else
        request_fail(request, &detail);
}

void forward_handle(struct request *request)
{
    forward_as(request, request->method);
}

/* Field 1 of its request is `shard`. */
static uint32_t shard_named(const ProtobufCMessage *message)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(message->descriptor, 1);
    uint32_t shard;

    CHECK(field != NULL && field->type == PROTOBUF_C_TYPE_UINT32);
    memcpy(&shard, (const uint8_t *)message + field->offset, sizeof shard);
    return shard;
}

void forward_shard_handle(struct request *request)
{
    struct caller_call *call = arena_alloc(request->arena, sizeof *call);
    uint32_t shard_count = shard_map_shard_count(request->router->options.map);
    uint32_t shard = shard_named(request->message);

    if (shard_count == 0) {
        request_fail_text(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNAVAILABLE,
                          "the router does not know the cluster yet; nothing was done");
        return;
    }
    if (shard >= shard_count) {
        request_fail_text(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_INVALID_ARGUMENT,
                          "shard: there is no such shard");
        return;
    }
    *call = (struct caller_call){
        .method = (uint16_t)request->method->id,
        .priority = (uint8_t)request->priority,
        .shard = shard,
        .deadline_ms = request->answer_by_ms,
        .trace = request->trace.trace_id,
        .started_ns = request->started_ns,
        .body = request->encoded.size > 0 ? request->encoded
                                          : encode_in_arena(request->arena, request->message),
    };
    forward_start(request, call);
}
