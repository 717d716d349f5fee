#include "runtime/rpc/rpc_refusal.h"

#include <stdio.h>

#include "idl/error_code.h"
#include "runtime/http/http_budget.h"
#include "runtime/rpc/rpc_answer.h"
#include "runtime/rpc/rpc_header.h"

#define VALUE_SHOWN_MAX 64u

/* At the start of a call's error. */
static Holdfast__V1__ErrorDetail detail_of(Holdfast__V1__ErrorCode code, const char *message)
{
    Holdfast__V1__ErrorDetail detail = HOLDFAST__V1__ERROR_DETAIL__INIT;

    detail.code = code;
    detail.message = text_lend(message);
    return detail;
}

static char *shown(struct rpc_call *call, struct slice value)
{
    if (value.size > VALUE_SHOWN_MAX)
        value.size = VALUE_SHOWN_MAX;
    return text_lend((const char *)arena_copy(&call->arena, value).data);
}

void rpc_refuse(struct rpc_call *call, Holdfast__V1__ErrorCode code, const char *message,
                unsigned http_status)
{
    Holdfast__V1__ErrorDetail detail = detail_of(code, message);

    rpc_answer_error(call, &detail, http_status);
}

void rpc_refuse_field(struct rpc_call *call, const char *field, const char *limit,
                      struct slice value)
{
    const char *message = arena_printf(&call->arena, "malformed %s", field);
    Holdfast__V1__ErrorDetail detail = detail_of(CODE(INVALID_ARGUMENT), message);

    detail.field = text_lend(field);
    detail.limit = text_lend(limit);
    detail.value = shown(call, value);
    rpc_answer_error(call, &detail, 0);
}

void rpc_refuse_large(struct rpc_call *call, const char *message, const char *field,
                      uint64_t limit_bytes)
{
    Holdfast__V1__ErrorDetail detail = detail_of(CODE(TOO_LARGE), message);

    call->server->http.stats.bad_messages++;
    detail.field = text_lend(field);
    detail.limit = arena_printf(&call->arena, "%llu", (unsigned long long)limit_bytes);
    rpc_answer_error(call, &detail, 0);
}

void rpc_refuse_busy(struct rpc_call *call, enum http_refused why)
{
    const struct http_refusal refusal = http_refusal_of(&call->server->http, why);
    Holdfast__V1__ErrorDetail detail = detail_of(CODE(THROTTLED), refusal.message);

    call->server->http.stats.requests_throttled++;
    http_refusal_count(&call->server->http, why, http_peer(call->exchange));
    detail.field = text_lend(refusal.field);
    detail.limit = arena_printf(&call->arena, "%llu", (unsigned long long)refusal.limit);
    detail.retry_after_ms = RPC_THROTTLE_RETRY_MS;
    rpc_answer_error(call, &detail, refusal.status);
}

/* An error that HTTP itself has a status for, which stays: gRPC has the rest in headers. */
static void refuse_head(struct rpc_call *call, const Holdfast__V1__ErrorDetail *detail,
                        unsigned http_status)
{
    if (call->request.protocol == RPC_GRPC || call->request.protocol == RPC_GRPC_WEB) {
        rpc_answer_bare(call, http_status, detail);
        return;
    }
    /* A stream's status would be 200, which clients that know nothing of Connect take for success.
     */
    call->request.protocol = RPC_CONNECT;
    rpc_answer_error(call, detail, http_status);
}

/* gRPC has no code for these two: its clients infer one from the status, if there is no body. */
static void refuse_bare(struct rpc_call *call, const Holdfast__V1__ErrorDetail *detail,
                        unsigned http_status)
{
    if (rpc_is_connect(call->request.protocol))
        refuse_head(call, detail, http_status);
    else
        rpc_answer_bare(call, http_status, NULL);
}

void rpc_refuse_throttled(struct rpc_call *call, const char *message)
{
    Holdfast__V1__ErrorDetail detail = detail_of(CODE(THROTTLED), message);

    detail.retry_after_ms = RPC_THROTTLE_RETRY_MS;
    rpc_answer_error(call, &detail, 0);
}

void rpc_refuse_host(struct rpc_call *call, const char *names, struct slice host)
{
    Holdfast__V1__ErrorDetail detail =
        detail_of(CODE(PERMISSION_DENIED),
                  "Host is not a name that this endpoint answers to; the router's option "
                  "--hosts-allowed (HOLDFAST_HOSTS_ALLOWED for holdfast dev) adds names");

    detail.field = text_lend("host");
    detail.limit = text_lend(names);
    detail.value = shown(call, host);
    refuse_head(call, &detail, 403);
}

void rpc_refuse_version(struct rpc_call *call)
{
    Holdfast__V1__ErrorDetail detail = detail_of(CODE(UNIMPLEMENTED), "gRPC needs HTTP/2");

    refuse_head(call, &detail, 505);
}

void rpc_refuse_method(struct rpc_call *call)
{
    Holdfast__V1__ErrorDetail detail = detail_of(CODE(UNIMPLEMENTED), "methods are called by POST");

    detail.field = text_lend(":method");
    detail.limit = text_lend("POST");
    detail.value = shown(call, call->exchange->method);
    refuse_bare(call, &detail, 405);
}

/* Its caller may speak anything, and gRPC's clients take JSON for Connect's. */
static void refuse_stranger(struct rpc_call *call)
{
    call->server->http.stats.requests_failed++;
    rpc_answer_plain(call, 415, "text/plain", "unknown Content-Type; send " RPC_CONTENT_TYPES "\n");
}

void rpc_refuse_type(struct rpc_call *call, const char *message)
{
    struct slice type = http_header_find(call->exchange, "content-type");

    if (!rpc_content_type_is_ours(type)) {
        refuse_stranger(call);
        return;
    }
    Holdfast__V1__ErrorDetail detail = detail_of(CODE(INVALID_ARGUMENT), message);

    detail.field = text_lend("content-type");
    detail.limit = text_lend(RPC_CONTENT_TYPES);
    detail.value = shown(call, type);
    refuse_bare(call, &detail, 415);
}

static Holdfast__V1__ErrorCode refusal_code(unsigned status)
{
    switch (status) {
    case 408:
        return CODE(DEADLINE_EXCEEDED);
    case 413:
    case 431:
        return CODE(TOO_LARGE);
    case 429:
    case 503:
        return CODE(THROTTLED);
    case 505:
        return CODE(UNIMPLEMENTED);
    default:
        return CODE(INVALID_ARGUMENT);
    }
}

void rpc_refuse_http(void *user, struct http_exchange *exchange, const struct http_refusal *refusal)
{
    struct rpc_call *call = exchange->user;
    bool is_new = call == NULL;
    Holdfast__V1__ErrorDetail detail = detail_of(refusal_code(refusal->status), refusal->message);
    struct slice type = http_header_find(exchange, "content-type");
    char limit[24];

    if (is_new)
        call = rpc_call_new(user, exchange);
    if (is_new && !rpc_call_read_form(call))
        call->request.protocol = rpc_content_type_family(type);
    snprintf(limit, sizeof limit, "%llu", (unsigned long long)refusal->limit);
    detail.field = text_lend(refusal->field);
    if (refusal->limit > 0)
        detail.limit = limit;
    if (detail.code == CODE(THROTTLED))
        detail.retry_after_ms = RPC_THROTTLE_RETRY_MS;
    /* RFC 9112 wants 400 for what is no HTTP. */
    if (refusal->status == 400 || refusal->status == 505)
        refuse_head(call, &detail, refusal->status);
    else
        rpc_answer_error(call, &detail, refusal->status);
}
