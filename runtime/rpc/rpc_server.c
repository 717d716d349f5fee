#include "runtime/rpc/rpc_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "idl/error_code.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"
#include "runtime/base/nearest.h"
#include "runtime/http/http_budget.h"
#include "runtime/http/http_conn.h"
#include "runtime/http/http_server.h"
#include "runtime/rpc/rpc_answer.h"
#include "runtime/rpc/rpc_head.h"
#include "runtime/rpc/rpc_header.h"
#include "runtime/rpc/rpc_message.h"
#include "runtime/rpc/rpc_refusal.h"
#include "runtime/rpc/rpc_rest.h"
#include "runtime/rpc/rpc_work.h"

#define HEALTH_BYTES_MAX 4096u /* Unpacked: anybody may ask. */
#define ARENA_BYTES      8192u /* Of a call that keeps something while its body comes. */
#define HEALTH_CHECK     "grpc.health.v1.Health/Check"

static void fail(struct rpc_call *call, Holdfast__V1__ErrorCode code, const char *message,
                 unsigned http_status)
{
    rpc_refuse(call, code, message, http_status);
}

/* ---- headers of a call ---- */

/* False: answered with an error. */
static bool read_timeout(struct rpc_call *call)
{
    const struct http_limits *limits = &call->server->http.config.limits;
    bool is_connect = rpc_is_connect(call->request.protocol);
    const char *name = is_connect ? "connect-timeout-ms" : "grpc-timeout";
    struct slice value = http_header_find(call->exchange, name);
    uint64_t timeout_ms = limits->deadline_default_ms;

    if (call->request.streams && value.size == 0) {
        call->request.deadline_ms = UINT64_MAX;
        return true;
    }
    if (value.size > 0) {
        if (!(is_connect ? rpc_connect_timeout_parse(value, &timeout_ms)
                         : rpc_grpc_timeout_parse(value, &timeout_ms))) {
            rpc_refuse_field(call, name, is_connect ? "1 to 10 digits" : "1 to 8 digits and a unit",
                             value);
            return false;
        }
        if (timeout_ms > limits->deadline_max_ms && !call->request.streams)
            timeout_ms = limits->deadline_max_ms;
    }
    if (timeout_ms == 0) {
        fail(call, CODE(DEADLINE_EXCEEDED), "the deadline had passed on arrival", 0);
        return false;
    }
    call->request.deadline_ms = http_now_ms(&call->server->http) + timeout_ms;
    return true;
}

static bool check_version(struct rpc_call *call)
{
    struct slice version = http_header_find(call->exchange, "connect-protocol-version");

    if (!rpc_is_connect(call->request.protocol) || version.size == 0 ||
        http_text_equal(version, "1"))
        return true;
    rpc_refuse_field(call, "connect-protocol-version", "1", version);
    return false;
}

/* Two of them are as good as none (Trace Context, section 3.2); `tracestate` is dropped, as a
 * process without spans of its own in the trace may do. */
static void read_trace(struct rpc_call *call)
{
    struct slice parent;

    if (http_header_find_sole(call->exchange, "traceparent", &parent))
        (void)trace_parent_parse(parent, &call->request.trace);
}

/* ---- health ---- */

static bool is_healthy(const struct rpc_server *server)
{
    if (server->http.draining)
        return false;
    return server->handlers.is_healthy == NULL ||
           server->handlers.is_healthy(server->handlers.user);
}

static void answer_healthz(struct rpc_call *call)
{
    if (is_healthy(call->server))
        rpc_answer_plain(call, 200, "text/plain", "ok\n");
    else
        rpc_answer_plain(call, 503, "text/plain", "not ready\n");
}

/* grpc.health.v1: HealthCheckResponse { ServingStatus status = 1; }, 1 SERVING, 2 NOT_SERVING.
 * All services of this port are healthy together, so the request's `service` is not read. */
static void answer_health_check(struct rpc_call *call)
{
    bool healthy = is_healthy(call->server);
    struct slice message;

    if (!rpc_message_open(call, HEALTH_BYTES_MAX, &message))
        return;
    if (call->request.form != RPC_FORM_PROTO)
        rpc_answer_bytes(call, healthy ? SLICE_LITERAL("{\"status\":\"SERVING\"}")
                                       : SLICE_LITERAL("{\"status\":\"NOT_SERVING\"}"));
    else
        rpc_answer_bytes(call, healthy ? SLICE_LITERAL("\x08\x01") : SLICE_LITERAL("\x08\x02"));
}

/* ---- methods ---- */

static void methods_index(struct rpc_server *server)
{
    size_t count;
    const struct method_info *all = method_all(&count);

    CHECK(count <= RPC_METHOD_SLOTS / 2);
    for (size_t i = 0; i < count; i++) {
        if (all[i].internal)
            continue;
        size_t at = hash_u64(slice_from_text(all[i].name)) % RPC_METHOD_SLOTS;
        while (server->methods[at] != NULL)
            at = (at + 1) % RPC_METHOD_SLOTS;
        server->methods[at] = &all[i];
    }
}

static const struct method_info *find_method(const struct rpc_server *server, struct slice name)
{
    size_t at = hash_u64(name) % RPC_METHOD_SLOTS;

    while (server->methods[at] != NULL) {
        if (slice_equal(slice_from_text(server->methods[at]->name), name))
            return server->methods[at];
        at = (at + 1) % RPC_METHOD_SLOTS;
    }
    return NULL;
}

static void fail_no_method(struct rpc_call *call, struct slice name)
{
    const char *meant = method_suggest(name);
    struct slice name_meant = slice_from_text(meant != NULL ? meant : "");
    char hint[NEAREST_HINT_BYTES];

    fail(call, CODE(UNIMPLEMENTED),
         arena_printf(&call->arena, "no such method%s", nearest_hint(name_meant, hint)), 404);
}

static bool method_streams(const struct rpc_server *server, const struct method_info *method)
{
    return server->handlers.is_stream != NULL &&
           server->handlers.is_stream(server->handlers.user, method);
}

/* ---- the way of a call ---- */

/* At the head alone: under overload most are refused, and that must cost little; and a caller whom
 * no key names must not make us hold anything. */
static bool may_enter(struct rpc_call *call)
{
    const struct rpc_handlers *handlers = &call->server->handlers;
    struct http_stats *stats = &call->server->http.stats;
    Holdfast__V1__ErrorDetail detail = HOLDFAST__V1__ERROR_DETAIL__INIT;

    detail.retry_after_ms = RPC_THROTTLE_RETRY_MS;
    detail.code = CODE(THROTTLED);
    detail.message = text_lend("too many requests are under way; nothing was done");
    bool room = stats->requests_active < call->server->http.config.limits.requests_max;
    bool welcome = handlers->may_enter == NULL ||
                   (room && handlers->may_enter(handlers->user, &call->request, &detail));
    call->refused_there = room && !welcome;
    if (welcome)
        http_exchange_prove(call->exchange);
    if (welcome && room)
        return true;
    if (detail.code == CODE(THROTTLED))
        stats->requests_throttled++;
    else
        detail.retry_after_ms = 0;
    if (!room || call->request.is_full)
        http_exchange_full(call->exchange, detail.retry_after_ms);
    rpc_answer_error(call, &detail, 0);
    return false;
}

/* From here on a body of so many bytes is welcome. */
static void await_body(struct rpc_call *call, size_t bytes_max, bool keyless)
{
    struct http_exchange *exchange = call->exchange;
    uint32_t limit = exchange->server->config.limits.body_bytes_max;
    bool enveloped = call->request.protocol != RPC_CONNECT;
    enum http_refused why;

    call->body_max = bytes_max < limit ? bytes_max : limit;
    exchange->body_max_told = (uint32_t)call->body_max;
    exchange->body_max = exchange->body_max_told + (enveloped ? RPC_ENVELOPE_BYTES : 0);
    http_body_owner(exchange, call->request.account, keyless);
    if (call->arena.total_bytes > 0) /* A whole block of it. */
        exchange->head_extra = ARENA_BYTES;
    (void)http_head_charge(exchange, &why);
}

static uint32_t request_bytes_max(const struct rpc_call *call)
{
    const struct rpc_handlers *handlers = &call->server->handlers;

    return handlers->request_bytes_max != NULL
               ? handlers->request_bytes_max(handlers->user, call->request.method)
               : method_request_bytes_max(call->request.method);
}

/* The head names a method that there is. False: answered. */
static bool enter(struct rpc_call *call)
{
    call->request.peer = http_peer(call->exchange);
    rpc_head_read(call);
    read_trace(call);
    if (!may_enter(call))
        return false;
    await_body(call, request_bytes_max(call), false);
    return true;
}

/* The same once its body is whole. */
static void admit(struct rpc_call *call)
{
    struct rpc_server *server = call->server;
    struct http_stats *stats = &server->http.stats;

    if (stats->requests_active >= server->http.config.limits.requests_max) {
        stats->requests_throttled++;
        rpc_refuse_throttled(call, "too many requests are under way; nothing was done");
        return;
    }
    if (!read_timeout(call))
        return;
    if (!(call->is_rest ? rpc_rest_decode(call) : rpc_message_decode(call)))
        return;
    rpc_head_shrink(call);
    call->request.peer =
        (const char *)arena_copy(&call->arena, slice_from_text(http_peer(call->exchange))).data;
    stats->requests_active++;
    call->admitted = true;
    server->handlers.on_request(server->handlers.user, &call->request);
}

/* POST /package.Service/Method with a Content-Type of ours. */
static bool open_method(struct rpc_call *call, struct slice name)
{
    struct rpc_request *request = &call->request;
    struct rpc_server *server = call->server;

    if (request->protocol == RPC_GRPC && !http_is_h2(call->exchange)) {
        rpc_refuse_version(call);
        return false;
    }
    if (slice_equal(name, SLICE_LITERAL(HEALTH_CHECK))) {
        if (!rpc_message_check_encoding(call))
            return false;
        call->is_health = true;
        await_body(call, HEALTH_BYTES_MAX, true);
        return true;
    }
    request->method = find_method(server, name);
    if (request->method == NULL) {
        fail_no_method(call, name);
        return false;
    }
    call->request.streams = method_streams(server, request->method);
    if ((request->protocol == RPC_CONNECT && call->request.streams) ||
        (request->protocol == RPC_CONNECT_STREAM && !call->request.streams)) {
        rpc_refuse_type(call, call->request.streams ? "this method answers with a stream"
                                                    : "this method does not answer with a stream");
        return false;
    }
    return check_version(call) && rpc_message_check_encoding(call) && enter(call);
}

static bool is_method(const struct http_exchange *exchange, const char *name)
{
    return slice_equal(exchange->method, slice_from_text(name));
}

/* What is no call: answered. */
static void answer_other(struct rpc_call *call, struct slice name)
{
    const struct http_exchange *exchange = call->exchange;
    struct rpc_server *server = call->server;

    call->request.protocol = rpc_content_type_family(http_header_find(exchange, "content-type"));
    if (slice_equal(name, SLICE_LITERAL("healthz")) &&
        (is_method(exchange, "GET") || is_method(exchange, "HEAD")))
        answer_healthz(call);
    else if (is_method(exchange, "OPTIONS") && server->cors_origins != NULL)
        rpc_answer_preflight(call, "POST");
    else if (find_method(server, name) == NULL && !slice_equal(name, SLICE_LITERAL(HEALTH_CHECK)))
        fail_no_method(call, name);
    else if (!is_method(exchange, "POST"))
        rpc_refuse_method(call);
    else
        rpc_refuse_type(call, "unknown Content-Type");
}

static bool on_http_head(void *user, struct http_exchange *exchange)
{
    struct rpc_call *call = rpc_call_new(user, exchange);
    struct slice name = exchange->path;
    bool known = rpc_call_read_form(call);

    if (!rpc_head_check(call))
        return false;
    if (call->is_rest)
        return rpc_rest_open(call) && rpc_message_check_encoding(call) && enter(call);
    name = name.size > 0 ? (struct slice){ name.data + 1, name.size - 1 } : name;
    if (known && is_method(exchange, "POST"))
        return open_method(call, name);
    answer_other(call, name);
    return false;
}

static void on_http_request(void *user, struct http_exchange *exchange)
{
    struct rpc_call *call = exchange->user;

    (void)user;
    CHECK(call != NULL && !call->admitted);
    if (call->is_health)
        answer_health_check(call);
    else
        admit(call);
}

static void on_http_forgotten(void *user, struct http_exchange *exchange)
{
    (void)user;
    CHECK(exchange->user != NULL);
    rpc_call_release(exchange->user);
}

static void on_http_cancel(void *user, struct http_exchange *exchange)
{
    struct rpc_server *server = user;
    struct rpc_call *call = exchange->user;

    CHECK(call != NULL && call->admitted);
    call->request.cancelled = true;
    if (call->working)
        rpc_work_cancel(call);
    else if (server->handlers.on_cancel != NULL)
        server->handlers.on_cancel(server->handlers.user, &call->request);
}

static void on_http_writable(void *user, struct http_exchange *exchange)
{
    struct rpc_server *server = user;
    struct rpc_call *call = exchange->user;

    CHECK(call != NULL && call->request.streams);
    if (server->handlers.on_writable != NULL)
        server->handlers.on_writable(server->handlers.user, &call->request);
}

/* ---- the public interface ---- */

err rpc_server_new(const struct rpc_server_config *config, struct rpc_server **ret_server)
{
    struct rpc_server *server = mem_zalloc(sizeof *server);
    struct http_server_config http = {
        .loop = config->loop,
        .address = config->address,
        .port = config->port,
        .reuse_port = config->reuse_port,
        .tls = config->tls,
        .proxies = config->proxies,
        .limits = config->limits,
        .answers = config->answers,
        .log = config->log,
        .handlers = { .on_head = on_http_head,
                      .on_forgotten = on_http_forgotten,
                      .on_request = on_http_request,
                      .on_refused = rpc_refuse_http,
                      .on_cancel = on_http_cancel,
                      .on_writable = on_http_writable,
                      .user = server },
    };
    err e;

    CHECK(config->handlers.on_request != NULL);
    server->handlers = config->handlers;
    server->cors_origins = config->cors_origins;
    server->hosts = config->hosts;
    e = http_server_init(&server->http, &http);
    if (e != ERR_OK) {
        free(server);
        return e;
    }
    rpc_tools_init(&server->tools);
    methods_index(server);
    *ret_server = server;
    return ERR_OK;
}

uint16_t rpc_server_port(const struct rpc_server *server)
{
    return http_server_port(&server->http);
}

const struct http_stats *rpc_server_stats(const struct rpc_server *server)
{
    return &server->http.stats;
}

const struct turnstile_stats *rpc_server_turnstile(const struct rpc_server *server)
{
    return turnstile_stats(server->http.turnstile);
}

void rpc_server_adopt(struct rpc_server *server, int fd)
{
    http_conn_adopt(&server->http, fd);
}

void rpc_server_set_tls(struct rpc_server *server, struct tls_config *tls)
{
    http_server_set_tls(&server->http, tls);
}

void rpc_server_drain(struct rpc_server *server)
{
    http_server_drain(&server->http);
}

bool rpc_server_is_drained(const struct rpc_server *server)
{
    return http_server_is_drained(&server->http);
}

/* The calls whose answers are made are gone, too. */
static void on_http_stopped(void *user)
{
    struct rpc_server *server = user;

    rpc_work_when_idle(server, server->on_stopped, server->stopped_user);
}

void rpc_server_stop(struct rpc_server *server, void (*on_stopped)(void *user), void *user)
{
    server->on_stopped = on_stopped;
    server->stopped_user = user;
    http_server_stop(&server->http, on_http_stopped, server);
}

void rpc_server_free(struct rpc_server *server)
{
    if (server == NULL)
        return;
    http_server_deinit(&server->http);
    while (server->free_calls != NULL) {
        struct rpc_call *call = server->free_calls;
        server->free_calls = call->next_free;
        arena_deinit(&call->arena);
        free(call);
    }
    rpc_work_deinit(server);
    rpc_tools_deinit(&server->tools);
    buf_deinit(&server->scratch);
    buf_deinit(&server->details);
    buf_deinit(&server->unpacked);
    free(server);
}

static struct rpc_call *call_of(struct rpc_request *request)
{
    struct rpc_call *call = CONTAINER_OF(request, struct rpc_call, request);

    CHECK(call->admitted && !call->working);
    return call;
}

void rpc_reply(struct rpc_request *request, const ProtobufCMessage *response)
{
    CHECK(response->descriptor == request->method->response);
    rpc_answer_message(call_of(request), response);
}

void rpc_reply_encoded(struct rpc_request *request, struct slice response)
{
    rpc_answer_encoded(call_of(request), response);
}

void rpc_reply_from(struct rpc_request *request, const struct buf_source *source)
{
    rpc_answer_from(call_of(request), source);
}

void rpc_fail(struct rpc_request *request, const Holdfast__V1__ErrorDetail *detail)
{
    if (request->lacks_room)
        http_exchange_lacks_room(call_of(request)->exchange, detail->retry_after_ms);
    rpc_answer_error(call_of(request), detail, 0);
}

bool rpc_stream_send(struct rpc_request *request, const ProtobufCMessage *message)
{
    struct rpc_call *call = call_of(request);

    CHECK(call->request.streams);
    return rpc_answer_stream_send(call, message);
}

void rpc_stream_end(struct rpc_request *request, const Holdfast__V1__ErrorDetail *detail)
{
    struct rpc_call *call = call_of(request);

    CHECK(call->request.streams);
    if (detail != NULL)
        call->server->http.stats.requests_failed++;
    rpc_answer_stream_end(call, detail);
}
