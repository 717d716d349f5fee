#include "router/io/native_door.h"

#include <stdlib.h>
#include <string.h>

#include "idl/error_code.h"
#include "idl/error_rule.h"
#include "runtime/base/check.h"
#include "runtime/cluster/wire.h"
#include "runtime/codec/proto_codec.h"

struct native_request {
    struct request request;
    struct native_door *door;
    struct call_reply reply;
    struct arena arena;
    struct slice body; /* A copy: the frame's is gone after the callback. */
    uint32_t method;
    struct native_request *next; /* In the pool, or among the open ones. */
    struct native_request *previous;
};

struct native_door {
    struct native_door_options options;
    struct calls *calls;
    struct link_listener *listener;
    struct native_request *pool;
    uint32_t pool_count;
    struct native_request open; /* Head of a circular list. */
    bool draining;
    struct buf scratch;
};

struct native_door *native_door_new(const struct native_door_options *options)
{
    struct native_door *door = mem_zalloc(sizeof *door);

    door->options = *options;
    door->open.next = &door->open;
    door->open.previous = &door->open;
    return door;
}

static void memory_free(struct native_request *native)
{
    arena_deinit(&native->arena);
    free(native);
}

void native_door_free(struct native_door *door)
{
    if (door == NULL)
        return;
    CHECK(door->open.next == &door->open);
    while (door->pool != NULL) {
        struct native_request *native = door->pool;
        door->pool = native->next;
        memory_free(native);
    }
    buf_deinit(&door->scratch);
    free(door);
}

static struct native_request *take_memory(struct native_door *door)
{
    struct native_request *native = door->pool;

    if (native == NULL) {
        native = mem_zalloc(sizeof *native);
        native->door = door;
    } else {
        door->pool = native->next;
        door->pool_count--;
    }
    native->next = &door->open;
    native->previous = door->open.previous;
    native->previous->next = native;
    door->open.previous = native;
    return native;
}

static void give_back(struct native_request *native)
{
    struct native_door *door = native->door;

    native->previous->next = native->next;
    native->next->previous = native->previous;
    if (door->pool_count >= NATIVE_POOL_MAX) {
        memory_free(native);
        return;
    }
    arena_reset(&native->arena);
    native->next = door->pool;
    door->pool = native;
    door->pool_count++;
}

static void answer(struct native_request *native, uint16_t status, struct slice body)
{
    struct native_door *door = native->door;
    err e = call_answer(door->calls, &native->reply, status, body);

    /* ERR_CLOSED: the client has gone. */
    if (e == ERR_TOO_LARGE || e == ERR_FULL) {
        struct slice none = { 0 };

        log_event(door->options.log, LOG_ERROR, "native.answer_too_large",
                  LOG_N("method", native->method), LOG_N("bytes", body.size),
                  LOG_S("why", err_text(e)));
        e = call_answer(door->calls, &native->reply, WIRE_UNKNOWN, none);
        if (e != ERR_OK)
            log_event(door->options.log, LOG_WARN, "native.not_answered",
                      LOG_S("why", err_text(e)));
    }
    give_back(native);
}

static void reply_encoded(struct request *request, struct slice response)
{
    answer(request->origin, WIRE_OK, response);
}

static void reply(struct request *request, const ProtobufCMessage *response)
{
    struct native_request *native = request->origin;
    struct buf *scratch = &native->door->scratch;

    buf_clear(scratch);
    proto_encode(response, scratch);
    answer(native, WIRE_OK, buf_slice(scratch));
}

static void fail(struct request *request, const Holdfast__V1__ErrorDetail *detail)
{
    struct native_request *native = request->origin;
    struct buf *scratch = &native->door->scratch;
    const Holdfast__V1__ErrorDetail whole = error_complete(detail);

    buf_clear(scratch);
    proto_encode(&whole.base, scratch);
    answer(native, WIRE_REFUSED, buf_slice(scratch));
}

static const struct request_door door_ops = {
    .reply = reply,
    .reply_encoded = reply_encoded,
    .fail = fail,
};

/* Before there is a request: nothing to account for. */
static void refuse(struct native_request *native, Holdfast__V1__ErrorCode code, char *message)
{
    Holdfast__V1__ErrorDetail detail;

    holdfast__v1__error_detail__init(&detail);
    detail.code = code;
    detail.message = message;
    fail(&native->request, &detail);
}

static uint64_t deadline_of(const struct native_door *door, const struct frame *frame)
{
    uint32_t budget_ms = frame->deadline_ms;

    if (budget_ms == 0)
        budget_ms = door->options.deadline_default_ms;
    if (budget_ms > door->options.deadline_max_ms)
        budget_ms = door->options.deadline_max_ms;
    return loop_now_ms(door->options.loop) + budget_ms;
}

void native_door_request(void *user, struct link *link, const struct frame *frame,
                         const struct call_reply *call_reply)
{
    static char no_method[] = "no such method";
    static char stopping[] = "the router is stopping; nothing was done";
    struct native_door *door = user;
    struct native_request *native = take_memory(door);
    const struct method_info *method = method_find(frame->method);
    struct codec_scope scope = { .arena = &native->arena };
    ProtobufCMessage *message;

    native->reply = *call_reply;
    native->method = frame->method;
    native->request = (struct request){ .door = &door_ops, .origin = native, .method = method };
    if (method == NULL || method->internal) {
        refuse(native, CODE(UNIMPLEMENTED), no_method);
        return;
    }
    if (door->draining) {
        refuse(native, CODE(UNAVAILABLE), stopping);
        return;
    }
    memcpy(native->request.trace.trace_id, frame->trace, FRAME_TRACE_SIZE);
    native->body = arena_copy(&native->arena, frame->body);
    if (proto_decode(method->request, native->body, &scope, &message) != ERR_OK) {
        refuse(native, CODE(INVALID_ARGUMENT), scope.error.message);
        return;
    }
    native->request.message = message;
    native->request.encoded = native->body;
    native->request.arena = &native->arena;
    native->request.deadline_ms = deadline_of(door, frame);
    /* A certificate of the cluster's CA is membership (DESIGN section 11). */
    native->request.scopes = SCOPES_ALL;
    native->request.peer =
        (const char *)arena_copy(&native->arena, slice_from_text(link_address(link))).data;
    router_dispatch(door->options.router, &native->request);
}

static void on_ready(void *user, struct link *link, const struct hello *peer)
{
    (void)user;
    (void)link;
    (void)peer;
}

static void on_frame(void *user, struct link *link, const struct frame *frame)
{
    struct native_door *door = user;

    (void)calls_frame(door->calls, link, frame);
}

static void on_closed(void *user, struct link *link, enum link_close_reason reason,
                      const char *text)
{
    struct native_door *door = user;

    (void)reason;
    (void)text;
    calls_closed(door->calls, link);
}

void native_door_set_calls(struct native_door *door, struct calls *calls)
{
    door->calls = calls;
}

err native_door_listen(struct native_door *door, struct link_hub *hub, struct calls *calls,
                       const char *address)
{
    const struct link_listen_options options = {
        .transport = LINK_NNG,
        .address = address,
        .handlers = { .ready = on_ready, .frame = on_frame, .closed = on_closed, .user = door },
    };

    door->calls = calls;
    return link_listen(hub, &options, &door->listener);
}

uint16_t native_door_port(const struct native_door *door)
{
    return door->listener != NULL ? link_listener_port(door->listener) : 0;
}

void native_door_cancel(struct native_door *door)
{
    while (door->open.next != &door->open)
        router_cancel(door->options.router, &door->open.next->request);
}

void native_door_drain(struct native_door *door)
{
    door->draining = true;
    if (door->listener != NULL)
        link_listener_close(door->listener);
    door->listener = NULL;
}
