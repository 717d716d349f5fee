#include "runtime/rpc/rpc_rest.h"

#include "idl/error_code.h"
#include "runtime/base/nearest.h"
#include "runtime/rpc/rpc_answer.h"
#include "runtime/rpc/rpc_header.h"
#include "runtime/rpc/rpc_message.h"
#include "runtime/rpc/rpc_refusal.h"
#include "runtime/rest/rest_openapi.h"
#include "runtime/rest/rest_request.h"
#include "runtime/rest/rest_tag.h"

static char *shown(struct rpc_call *call, struct slice value)
{
    char out[NEAREST_SHOWN_BYTES];

    return text_lend(
        (const char *)arena_copy(&call->arena, slice_from_text(nearest_show(value, out))).data);
}

static void refuse(struct rpc_call *call, Holdfast__V1__ErrorCode code,
                   const struct rest_flaw *flaw, unsigned http_status)
{
    Holdfast__V1__ErrorDetail detail = HOLDFAST__V1__ERROR_DETAIL__INIT;

    detail.code = code;
    detail.message = text_lend(flaw->message);
    detail.field = text_lend(flaw->field);
    detail.limit = text_lend(flaw->limit);
    detail.value = shown(call, flaw->value);
    rpc_answer_error(call, &detail, http_status);
}

/* A field of the request. */
static void refuse_field(struct rpc_call *call, struct rest_flaw flaw)
{
    call->server->http.stats.bad_messages++;
    flaw.message = arena_printf(&call->arena, "%s: %s", flaw.field, flaw.message);
    refuse(call, CODE(INVALID_ARGUMENT), &flaw, 0);
}

static void refuse_path(struct rpc_call *call, const struct rest_found *found)
{
    char hint[NEAREST_HINT_BYTES];
    struct rest_flaw flaw = { .field = ":path", .value = call->exchange->path };

    flaw.limit = "a path of " REST_OPENAPI_PATH;
    flaw.message = arena_printf(&call->arena, "no such path%s",
                                nearest_hint(slice_from_text(found->meant), hint));
    refuse(call, CODE(UNIMPLEMENTED), &flaw, 404);
}

/* A preflight brings no key and asks for nothing else. */
static void refuse_verb(struct rpc_call *call, const char *allow)
{
    if (call->server->cors_origins != NULL &&
        slice_equal(call->exchange->method, SLICE_LITERAL("OPTIONS"))) {
        rpc_answer_preflight(call, allow);
        return;
    }
    struct rest_flaw flaw = { .message = "this path does not have this verb",
                              .field = ":method",
                              .limit = allow,
                              .value = call->exchange->method };

    call->allow = allow;
    refuse(call, CODE(UNIMPLEMENTED), &flaw, 405);
}

/* ---- the body ---- */

static bool takes_body(const struct rest_route *route)
{
    return route->verb != REST_GET && route->verb != REST_DELETE;
}

/* False: answered with an error. */
static bool check_body(struct rpc_call *call, const struct rest_route *route)
{
    struct slice type = http_header_find(call->exchange, "content-type");
    struct rest_flaw flaw = { .field = "content-type", .limit = "application/json" };
    enum rpc_protocol protocol;
    enum rpc_form form;

    if (call->exchange->body.size == 0)
        return true;
    if (!takes_body(route)) {
        flaw = (struct rest_flaw){ .message = "this verb takes no body; its fields are the query's",
                                   .field = "body",
                                   .limit = "none" };
        refuse_field(call, flaw);
        return false;
    }
    if (rpc_content_type_parse(type, &protocol, &form) && form == RPC_FORM_PLAIN_JSON)
        return true;
    flaw.message = "the body is not said to be JSON";
    flaw.value = type;
    refuse(call, CODE(INVALID_ARGUMENT), &flaw, 415);
    return false;
}

/* ---- the way of a call ---- */

static bool find_route(struct rpc_call *call, struct rest_found *found)
{
    const struct http_exchange *exchange = call->exchange;
    struct rest_flaw flaw;

    switch (rest_route_find(exchange->method, exchange->path, &call->arena, found, &flaw)) {
    case REST_NO_PATH:
        refuse_path(call, found);
        return false;
    case REST_NO_VERB:
        refuse_verb(call, found->allow);
        return false;
    case REST_MALFORMED:
        refuse_field(call, flaw);
        return false;
    case REST_FOUND:
        break;
    }
    return true;
}

/* Without a key: it says no more than the sources do. */
static void answer_document(struct rpc_call *call)
{
    const struct slice method = call->exchange->method;

    if (!slice_equal(method, SLICE_LITERAL("GET")) && !slice_equal(method, SLICE_LITERAL("HEAD")))
        refuse_verb(call, "GET, HEAD");
    else if (!rpc_answer_document(call, rest_openapi(), rest_openapi_packed()))
        rpc_refuse_busy(call, HTTP_REFUSED_STRANGERS);
}

bool rpc_rest_open(struct rpc_call *call)
{
    struct rest_found *found = arena_alloc(&call->arena, sizeof *found);

    if (slice_equal(call->exchange->path, SLICE_LITERAL(REST_OPENAPI_PATH))) {
        answer_document(call);
        return false;
    }
    if (!find_route(call, found))
        return false;
    call->found = found;
    call->request.method = method_find(found->route->method);
    return true;
}

/* What the head says. NULL: answered with an error. */
static ProtobufCMessage *decode_head(struct rpc_call *call, struct rest_named *ret_named)
{
    const struct rest_head head = { call->found, call->exchange->query, call->if_match };
    struct codec_scope scope = { .arena = &call->arena, .form = JSON_PLAIN };
    struct buf *json = &call->server->scratch;
    ProtobufCMessage *message;
    struct rest_flaw flaw;

    buf_clear(json);
    if (rest_request_head(&head, &call->arena, json, ret_named, &flaw) != ERR_OK) {
        refuse_field(call, flaw);
        return NULL;
    }
    err e = json_decode(&call->server->tools.codec, call->request.method->request, buf_slice(json),
                        &scope, &message);
    if (e == ERR_OK)
        return message;
    rpc_message_fail(call, &scope.error, e);
    return NULL;
}

/* RFC 9110, section 13.1.2. False: answered with an error. */
static bool check_if_none_match(struct rpc_call *call, const struct rest_route *route)
{
    struct rest_flaw flaw = { .field = "if-none-match", .value = call->if_none_match };

    if (call->if_none_match.size == 0)
        return true;
    if (route->verb != REST_GET) {
        flaw.message = "only a GET takes If-None-Match";
        flaw.limit = "none; If-Match: \"0\" wants that what the request changes does not exist";
    } else if (!rest_tags_are_sound(call->if_none_match)) {
        flaw.message = "If-None-Match is no list of entity tags";
        flaw.limit = "* or entity tags in quotes, as an ETag has them, with commas between";
    } else {
        return true;
    }
    refuse_field(call, flaw);
    return false;
}

bool rpc_rest_decode(struct rpc_call *call)
{
    struct rest_named named;
    struct rest_flaw flaw;

    if (!check_body(call, call->found->route) || !check_if_none_match(call, call->found->route))
        return false;
    ProtobufCMessage *head = decode_head(call, &named);
    if (head == NULL)
        return false;
    if (call->exchange->body.size == 0) {
        call->request.message = head;
        return true;
    }
    if (!rpc_message_decode(call))
        return false;
    if (rest_request_merge(call->request.message, head, named, &flaw) == ERR_OK)
        return true;
    refuse_field(call, flaw);
    return false;
}
