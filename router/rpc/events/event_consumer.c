#include "router/rpc/events/event_consumer.h"

#include "idl/error_code.h"
#include "router/core/refusal.h"
#include "router/rpc/call/caller.h"
#include "router/rpc/request/router_state.h"
#include "runtime/cluster/placement.h"
#include "runtime/codec/proto_codec.h"

#define READ_MS 2000u

typedef Holdfast__V1__GetConsumerResponse get_response;

/* In the request's arena. */
struct reading {
    struct caller_call call;
    struct event_consumer_wish *wish;
};

static uint32_t shard_count_of(const struct request *request)
{
    return shard_map_shard_count(request->router->options.map);
}

struct slice event_consumer_entity(const char *name, struct arena *arena)
{
    return slice_from_text(arena_printf(arena, "consumer:%s", name));
}

static void on_cancel(struct request *request)
{
    struct reading *reading = request->state;

    caller_cancel(&reading->call);
    request_fail_text(request, CODE(CANCELED), "the caller has gone");
}

/* The cursor is known. */
static void go_on(struct event_consumer_wish *wish, struct slice cursor)
{
    struct request *request = wish->request;
    Holdfast__V1__ErrorDetail detail;

    if (event_cursor_parse(cursor, shard_count_of(request), request->arena, wish->cursor_read,
                           &detail) != ERR_OK) {
        request_fail(request, &detail);
        return;
    }
    wish->cursor_read->counts |= wish->ask->consumer[0] != '\0';
    wish->done(wish->user);
}

static const Holdfast__V1__EventConsumer *decode(struct slice body, struct arena *arena)
{
    struct codec_scope scope = { .arena = arena };
    ProtobufCMessage *message;

    if (proto_decode(&holdfast__v1__get_consumer_response__descriptor, body, &scope, &message) !=
        ERR_OK)
        return NULL;
    return ((const get_response *)(const void *)message)->consumer;
}

static void answered(struct caller_call *call, const struct caller_result *result)
{
    struct reading *reading = call->user;
    struct event_consumer_wish *wish = reading->wish;
    struct request *request = wish->request;

    if (result->detail != NULL) {
        request_fail(request, result->detail);
        return;
    }
    const Holdfast__V1__EventConsumer *consumer = decode(result->body, request->arena);
    if (consumer == NULL) {
        request_fail_text(request, CODE(INTERNAL), "the answer about the consumer cannot be read");
        return;
    }
    wish->ask->kinds = consumer->kinds;
    wish->ask->kind_count = consumer->n_kinds;
    wish->ask->entity_prefix = consumer->entity_prefix;
    wish->ask->entity = consumer->entity;
    wish->version = consumer->version;
    go_on(wish, wish->cursor.size > 0 ? wish->cursor : slice_from_text(consumer->cursor));
}

static void ask(struct event_consumer_wish *wish)
{
    struct request *request = wish->request;
    const struct router *router = request->router;
    struct reading *reading = arena_zalloc(request->arena, sizeof *reading);
    Holdfast__V1__GetConsumerRequest question = HOLDFAST__V1__GET_CONSUMER_REQUEST__INIT;
    struct slice entity = event_consumer_entity(wish->ask->consumer, request->arena);

    question.consumer = (char *)(uintptr_t)wish->ask->consumer;
    size_t size = holdfast__v1__get_consumer_request__get_packed_size(&question);
    uint8_t *body = arena_alloc(request->arena, size + 1);
    reading->wish = wish;
    reading->call = (struct caller_call){
        .method = METHOD_GET_CONSUMER,
        .priority = (uint8_t)request->priority,
        .asker = request_asker(request),
        .shard = shard_of_entity(entity, shard_count_of(request)),
        .deadline_ms = loop_now_ms(router->options.loop) + request_time_left(request, READ_MS),
        .started_ns = loop_clock_ns(),
        .trace = request->trace.trace_id,
        .body = { body, holdfast__v1__get_consumer_request__pack(&question, body) },
        .done = answered,
        .user = reading,
    };
    request->state = reading;
    request->cancel = on_cancel;
    caller_start(router->options.caller, &reading->call);
}

void event_consumer_begin(struct event_consumer_wish *wish)
{
    if (wish->ask->consumer[0] != '\0')
        ask(wish);
    else
        go_on(wish, wish->cursor);
}
