#include "router/rpc/forward/forward.h"

#include <string.h>

#include "holdfast/v1/session.pb-c.h"
#include "router/core/refusal.h"
#include "router/rpc/events/event_consumer.h"
#include "router/rpc/request/handlers.h"
#include "router/rpc/forward/operation_tell.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"
#include "runtime/cluster/caller_name.h"
#include "runtime/cluster/placement.h"

static struct slice encode_in_arena(struct arena *arena, const ProtobufCMessage *message)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *data = arena_alloc(arena, size + 1);

    (void)protobuf_c_message_pack(message, data);
    return (struct slice){ data, size };
}

/* A bucket for each player and key: what one key asks for costs another nothing. */
static uint64_t turn_name(const struct request *request, const struct route_entity *entity)
{
    uint64_t name = hash_u64((struct slice){ (const uint8_t *)entity->text, entity->size });

    return request->key_id != NULL ? name ^ hash_u64(slice_from_text(request->key_id)) : name;
}

/* One player's callers may not have the shard to themselves. */
static err take_turn(struct request *request, const struct route_entity *entity,
                     Holdfast__V1__ErrorDetail *ret_detail)
{
    struct router *router = request->router;
    uint32_t rate = router->options.player_rate;
    uint32_t retry_after_ms = 0;

    if (router->players == NULL)
        return ERR_OK;
    struct rate_bucket *bucket = rate_table_get(router->players, turn_name(request, entity));
    if (rate_take(bucket, rate, loop_now_ms(router->options.loop), &retry_after_ms))
        return ERR_OK;
    router->players_throttled++;
    refusal_make(request->arena, ret_detail, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_THROTTLED,
                 "player_id: more than %u calls a second for one player, of one API key; nothing "
                 "was done",
                 rate);
    ret_detail->field = arena_printf(request->arena, "player_id");
    ret_detail->limit = arena_printf(request->arena, "%u a second", rate);
    /* Each of those who wait is told its own turn, or all would come back at once. */
    ret_detail->retry_after_ms = rate_turn_ms(bucket, rate, loop_now_ms(router->options.loop));
    return ERR_FULL;
}

/* Of requests that name a system, or whose rows say who wrote them: who asks stands behind them, be
 * it nothing, since the last such field counts, and a caller may have written one. */
static void encode(struct request *request, const struct forward_message *message,
                   struct caller_call *call)
{
    call->called = (struct slice){ 0 };
    if (!request->as_system && !method_keeps_caller(request->method)) {
        call->body = message->encoded.size > 0 ? message->encoded
                                               : encode_in_arena(request->arena, message->message);
        return;
    }
    size_t size = message->encoded.size > 0 ? message->encoded.size
                                            : protobuf_c_message_get_packed_size(message->message);
    uint8_t *data = arena_alloc(request->arena, size + CALLER_NAME_ENCODED_SIZE);
    const char *name = request->author != NULL ? request->author : "";

    if (message->encoded.size > 0)
        memcpy(data, message->encoded.data, size);
    else
        (void)protobuf_c_message_pack(message->message, data);
    call->body = (struct slice){ data, size };
    call->called =
        (struct slice){ data, size + caller_name_put(slice_from_text(name), data + size) };
}

err forward_prepare(struct request *request, const struct forward_message *message,
                    struct caller_call *call, Holdfast__V1__ErrorDetail *ret_detail)
{
    struct router *router = request->router;
    struct route_entity entity;
    err e =
        route_find_entity(message->method, message->message, request->arena, &entity, ret_detail);

    if (e == ERR_OK && !message->again)
        e = take_turn(request, &entity, ret_detail);
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
    call->asker = request_asker(request);
    call->deadline_ms = request->answer_by_ms;
    call->trace = request->trace.trace_id;
    call->started_ns = request->started_ns;
    call->at_once = false;
    call->asked = 0;
    call->asked_unknown = false;
    encode(request, message, call);
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
    const ProtobufCMessage *response =
        operation_tell(request->method, answer, request->message, request->arena);

    if (response != NULL)
        request_reply(request, response);
    else if (request->method->writes)
        request_fail_text(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_OUTCOME_UNKNOWN,
                          "the node's answer cannot be read");
    else
        request_fail_text(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_INTERNAL,
                          "the node's answer cannot be read");
}

/* A session's token goes to its owner with its MAC. */
static void reply_started(struct request *request, struct slice answer)
{
    const Holdfast__V1__StartSessionRequest *start = (const void *)request->message;
    struct slice whole;

    if (session_guard_sign(&request->router->guard, slice_from_text(start->player_id), answer,
                           request->arena, &whole) == ERR_OK)
        request_reply_encoded(request, whole);
    else
        request_fail_text(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_OUTCOME_UNKNOWN,
                          "the node's answer cannot be read");
}

static void reply(struct request *request, struct slice answer)
{
    if (request->method->id == METHOD_START_SESSION)
        reply_started(request, answer);
    else if (method_answer(request->method) != request->method->response)
        reply_told(request, answer);
    else
        request_reply_encoded(request, answer);
}

struct forward_call {
    struct caller_call call;
    forward_tell_fn *tell;
};

static void forward_done(struct caller_call *call, const struct caller_result *result)
{
    struct request *request = call->user;
    const struct forward_call *forward = request->state;
    Holdfast__V1__ErrorDetail detail;

    forward_count(request, call);
    if (result->detail != NULL) {
        request->lacks_room =
            !request->method->writes &&
            result->detail->code == HOLDFAST__V1__ERROR_CODE__ERROR_CODE_THROTTLED;
        request_fail(request, result->detail);
    } else if (!request_hold(request, result->body.size, &detail)) {
        request_fail(request, &detail);
    } else {
        forward->tell(request, result->body);
    }
}

/* The caller has gone: tell the node. */
static void forward_cancel(struct request *request)
{
    struct forward_call *forward = request->state;

    forward_count(request, &forward->call);
    caller_cancel(&forward->call);
    request_fail_gone(request);
}

static void forward_start(struct request *request, struct forward_call *forward)
{
    struct caller_call *call = &forward->call;

    call->done = forward_done;
    call->user = request;
    call->at_once = true;
    request->state = forward;
    request->cancel = forward_cancel;
    caller_start(request->router->options.caller, call);
}

void forward_as_told(struct request *request, const struct method_info *method,
                     forward_tell_fn *tell)
{
    const struct forward_message message = { method, request->message, request->encoded, false };
    struct forward_call *forward = arena_alloc(request->arena, sizeof *forward);
    Holdfast__V1__ErrorDetail detail;

    forward->tell = tell;
    if (forward_prepare(request, &message, &forward->call, &detail) == ERR_OK)
        forward_start(request, forward);
    else
        request_fail(request, &detail);
}

void forward_as(struct request *request, const struct method_info *method)
{
    forward_as_told(request, method, reply);
}

void forward_handle(struct request *request)
{
    forward_as(request, request->method);
}

/* Field 1 of its request is `shard`, or a consumer of events or a target that lives there. */
static uint32_t shard_named(const struct request *request, uint32_t shard_count)
{
    const ProtobufCMessage *message = request->message;
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(message->descriptor, 1);
    uint32_t shard;

    if (field != NULL && strcmp(field->name, "consumer") == 0) {
        char *name;
        memcpy(&name, (const uint8_t *)message + field->offset, sizeof name);
        return shard_of_entity(event_consumer_entity(name, request->arena), shard_count);
    }
    if (field != NULL && strcmp(field->name, "target_id") == 0) {
        char *target;
        memcpy(&target, (const uint8_t *)message + field->offset, sizeof target);
        struct slice id = slice_from_text(target);
        return id.size <= TARGET_BYTES_MAX ? shard_of_target(id, shard_count) : 0;
    }
    CHECK(field != NULL && field->type == PROTOBUF_C_TYPE_UINT32);
    memcpy(&shard, (const uint8_t *)message + field->offset, sizeof shard);
    return shard;
}

void forward_shard_handle(struct request *request)
{
    struct forward_call *forward = arena_alloc(request->arena, sizeof *forward);
    uint32_t shard_count = shard_map_shard_count(request->router->options.map);
    struct forward_message message = { .message = request->message, .encoded = request->encoded };

    if (shard_count == 0) {
        request_fail_text(request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNAVAILABLE,
                          "the router does not know the cluster yet; nothing was done");
        return;
    }
    uint32_t shard = shard_named(request, shard_count);
    if (shard >= shard_count) {
        Holdfast__V1__ErrorDetail detail;
        refusal_make_shard(request->arena, &detail, "shard", shard, shard_count);
        request_fail(request, &detail);
        return;
    }
    forward->tell = reply;
    forward->call = (struct caller_call){
        .method = (uint16_t)request->method->id,
        .priority = (uint8_t)request->priority,
        .asker = request_asker(request),
        .shard = shard,
        .deadline_ms = request->answer_by_ms,
        .trace = request->trace.trace_id,
        .started_ns = request->started_ns,
    };
    encode(request, &message, &forward->call);
    forward_start(request, forward);
}
