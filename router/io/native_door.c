#include "router/io/native_door.h"

#include <stdlib.h>
#include <string.h>

#include "idl/error_code.h"
#include "idl/error_rule.h"
#include "router/core/native_name.h"
#include "router/core/refusal.h"
#include "router/io/action_log.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"
#include "runtime/base/log_gate.h"
#include "runtime/cluster/caller_name.h"
#include "runtime/cluster/wire.h"
#include "runtime/codec/proto_codec.h"

/* Requests that take no more memory are not counted: there are never more than calls in flight. */
#define FREE_BYTES 16384u
#define RETRY_MS   250u

struct native_request {
    struct request request;
    struct native_door *door;
    struct call_reply reply;
    struct arena arena;
    struct slice body;      /* A copy: the frame's is gone after the callback. */
    uint64_t charged_bytes; /* Of its client, in door->bodies. */
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
    struct action_log actions;
    struct log_gate unsent; /* One line a minute of answers that could not be sent. */
    struct rate_table *clients;
    struct caller_shares *bodies;
    uint64_t bodies_bytes; /* All of it. */
    struct buf scratch;
};

struct native_door *native_door_new(const struct native_door_options *options)
{
    struct native_door *door = mem_zalloc(sizeof *door);

    door->options = *options;
    door->actions.log = options->log;
    door->open.next = &door->open;
    door->open.previous = &door->open;
    door->clients = rate_table_new();
    door->bodies = caller_shares_new();
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
    rate_table_free(door->clients);
    caller_shares_free(door->bodies);
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
    caller_share_give(door->bodies, native->request.caller, native->charged_bytes);
    door->bodies_bytes -= native->charged_bytes;
    native->charged_bytes = 0;
    if (door->pool_count >= NATIVE_POOL_MAX) {
        memory_free(native);
        return;
    }
    arena_reset(&native->arena);
    native->next = door->pool;
    door->pool = native;
    door->pool_count++;
}

static void log_unsent(struct native_request *native, size_t size, err why)
{
    struct native_door *door = native->door;
    uint64_t more = 0;

    if (log_gate_pass(&door->unsent, loop_now_ms(door->options.loop), &more))
        log_event(door->options.log, LOG_ERROR, "native.not_answered",
                  LOG_N("method", native->method), LOG_N("bytes", size),
                  LOG_S("why", err_text(why)), LOG_N("more", more));
}

static void answer(struct native_request *native, uint16_t status, struct slice body)
{
    struct native_door *door = native->door;
    err e = call_answer(door->calls, &native->reply, status, body);

    /* ERR_CLOSED: the client has gone. */
    if (e == ERR_TOO_LARGE || e == ERR_FULL) {
        struct slice none = { 0 };

        log_unsent(native, body.size, e);
        e = call_answer(door->calls, &native->reply, WIRE_UNKNOWN, none);
        if (e != ERR_OK)
            log_unsent(native, 0, e);
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

static uint64_t deadline_of(const struct native_door *door, const struct frame *frame)
{
    uint32_t budget_ms = frame->deadline_ms;

    if (budget_ms == 0)
        budget_ms = door->options.deadline_default_ms;
    if (budget_ms > door->options.deadline_max_ms)
        budget_ms = door->options.deadline_max_ms;
    return loop_now_ms(door->options.loop) + budget_ms;
}

/* The certificate is good for any name: HELLO's is what the client likes to be called. */
static bool is_for_any_name(const struct link *link)
{
    const struct identity *identity = link_identity(link);

    return identity != NULL && strcmp(identity->name, "*") == 0;
}

static const char *name_of(struct arena *arena, const struct link *link)
{
    return native_name(arena, link_peer_hello(link)->name, is_for_any_name(link));
}

/* Before there is a request: nothing to account for, but its caller is told of in the log. */
static void refuse_with(struct native_request *native, const struct link *link,
                        const Holdfast__V1__ErrorDetail *detail)
{
    struct native_door *door = native->door;
    const struct method_info *method = native->request.method;

    action_log_code(&door->actions,
                    &(struct action_refusal){
                        .method = method != NULL ? method->name : "none",
                        .key = name_of(&native->arena, link),
                        .peer = link_address(link),
                    },
                    detail->code, loop_now_ms(door->options.loop));
    fail(&native->request, detail);
}

static void refuse(struct native_request *native, const struct link *link,
                   Holdfast__V1__ErrorCode code, char *message)
{
    Holdfast__V1__ErrorDetail detail = HOLDFAST__V1__ERROR_DETAIL__INIT;

    detail.code = code;
    detail.message = message;
    refuse_with(native, link, &detail);
}

/* What the certificate's scopes say; game and read if it says nothing. Without an identity, that is
 * without TLS or with --tls-names accept-unnamed, the CA's membership is every scope. ERR_INVALID:
 * *ret_bad is no scope. */
static err read_scopes(const struct link *link, uint32_t *ret_scopes, struct slice *ret_bad)
{
    const struct identity *identity = link_identity(link);
    char list[IDENTITY_SCOPES_SIZE_MAX + 1];

    *ret_scopes = SCOPES_ALL;
    if (identity == NULL)
        return ERR_OK;
    *ret_scopes = SCOPE_GAME | SCOPE_READ;
    if (identity->scopes[0] == 0)
        return ERR_OK;
    memcpy(list, identity->scopes, sizeof list);
    for (char *at = list; *at != 0; at++)
        *at = (char)(*at == '+' ? ',' : *at);
    return scopes_parse(slice_from_text(list), ret_scopes, ret_bad);
}

static uint32_t scopes_of(const struct link *link)
{
    struct slice bad;
    uint32_t scopes = 0;

    return read_scopes(link, &scopes, &bad) == ERR_OK ? scopes : 0;
}

static enum link_refusal on_admit(void *user, struct link *link, const struct hello *peer)
{
    struct slice bad;
    uint32_t scopes;

    (void)user;
    (void)peer;
    return read_scopes(link, &scopes, &bad) == ERR_OK ? LINK_ADMITTED : LINK_REFUSED_SCOPES;
}

/* HELLO's name is proven where the certificate says that one name and no other. */
static bool name_is_proven(const struct link *link)
{
    return link_identity(link) != NULL && !is_for_any_name(link);
}

/* Before its body is looked at: how long it may be, and how often its client may ask. */
static bool may_enter(struct native_request *native, const struct frame *frame,
                      Holdfast__V1__ErrorDetail *detail)
{
    struct native_door *door = native->door;
    struct request *request = &native->request;
    uint32_t most = method_request_bytes_max(request->method);

    if (frame->body.size > most) {
        refusal_make(&native->arena, detail, CODE(TOO_LARGE), "the body has %zu bytes; %s takes %u",
                     frame->body.size, request->method->name, most);
        detail->field = text_lend("body");
        detail->limit = arena_printf(&native->arena, "%u", most);
        detail->value = arena_printf(&native->arena, "%zu", frame->body.size);
        return false;
    }
    request->allowance = rate_table_get(door->clients, request->caller);
    request->allowance_per_s = door->options.key_rate;
    if (rate_take(request->allowance, door->options.key_rate, loop_now_ms(door->options.loop),
                  &detail->retry_after_ms))
        return true;
    uint32_t retry_after_ms = detail->retry_after_ms;
    refusal_make(&native->arena, detail, CODE(THROTTLED),
                 "the client is at its limit of %u requests a second; nothing was done",
                 door->options.key_rate);
    detail->retry_after_ms = retry_after_ms;
    return false;
}

/* What the request takes, decoded: until it is answered. */
static bool charge(struct native_request *native, Holdfast__V1__ErrorDetail *detail)
{
    struct native_door *door = native->door;
    uint64_t bytes = native->arena.total_bytes, most = door->options.bodies_bytes_max;

    if (bytes <= FREE_BYTES)
        return true;
    bool room = door->bodies_bytes == 0 || bytes + door->bodies_bytes <= most;
    if (room && caller_share_take(door->bodies, native->request.caller, bytes, most / 2)) {
        native->charged_bytes = bytes;
        door->bodies_bytes += bytes;
        return true;
    }
    refusal_make(&native->arena, detail, CODE(THROTTLED),
                 "native clients have too many bodies under way: %llu bytes, of which one client "
                 "may have half; nothing was done",
                 (unsigned long long)most);
    detail->field = text_lend("bodies");
    detail->limit = arena_printf(&native->arena, "%llu", (unsigned long long)most);
    detail->retry_after_ms = RETRY_MS;
    return false;
}

static void dispatch(struct native_request *native, const struct link *link,
                     const struct frame *frame)
{
    struct native_door *door = native->door;
    struct request *request = &native->request;

    request->encoded = native->body;
    request->arena = &native->arena;
    request->deadline_ms = deadline_of(door, frame);
    request->scopes = scopes_of(link);
    request->author = name_is_proven(link) ? request->key_id : "";
    request->peer =
        (const char *)arena_copy(&native->arena, slice_from_text(link_address(link))).data;
    memcpy(request->trace.trace_id, frame->trace, FRAME_TRACE_SIZE);
    router_dispatch(door->options.router, request);
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
    Holdfast__V1__ErrorDetail detail = HOLDFAST__V1__ERROR_DETAIL__INIT;
    ProtobufCMessage *message;

    native->reply = *call_reply;
    native->method = frame->method;
    native->request = (struct request){ .door = &door_ops, .origin = native, .method = method };
    if (method == NULL || method->internal) {
        refuse(native, link, CODE(UNIMPLEMENTED), no_method);
        return;
    }
    if (door->draining) {
        refuse(native, link, CODE(UNAVAILABLE), stopping);
        return;
    }
    native->request.key_id = name_of(&native->arena, link);
    native->request.caller = hash_u64(slice_from_text(native->request.key_id)) | 1;
    if (!may_enter(native, frame, &detail)) {
        refuse_with(native, link, &detail);
        return;
    }
    native->body = arena_copy(&native->arena, frame->body);
    if (proto_decode(method->request, native->body, &scope, &message) != ERR_OK) {
        refuse(native, link, CODE(INVALID_ARGUMENT), scope.error.message);
        return;
    }
    native->request.message = message;
    if (charge(native, &detail))
        dispatch(native, link, frame);
    else
        refuse_with(native, link, &detail);
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
        .roles = 1u << ROLE_CLIENT,
        .handlers = { .admit = on_admit,
                      .ready = on_ready,
                      .frame = on_frame,
                      .closed = on_closed,
                      .user = door },
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
