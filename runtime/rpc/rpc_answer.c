#include "runtime/rpc/rpc_answer.h"

#include <stdio.h>
#include <string.h>

#include "idl/error_code.h"
#include "idl/method_errors.h"
#include "idl/error_rule.h"
#include "runtime/base/check.h"
#include "runtime/base/base64.h"
#include "runtime/codec/proto_codec.h"
#include "runtime/http/http_answer.h"
#include "runtime/http/http_waiting.h"
#include "runtime/rpc/rpc_error.h"
#include "runtime/rpc/rpc_header.h"
#include "runtime/rpc/rpc_status.h"
#include "runtime/rpc/rpc_work.h"
#include "runtime/rest/rest_tag.h"

#define FIELDS_MAX 15u
#define ENCODINGS  "gzip, identity"

struct fields {
    struct http_field list[FIELDS_MAX];
    size_t count;
    char retry_after[12];
    char etag[REST_TAG_BYTES];
    char keep[32];
    char allow[REST_ALLOW_BYTES];
    struct error_words words;
};

/* What a call found out about its route goes with the call's memory, before the answer does. */
static const char *keep_allow(struct fields *fields, const char *verbs)
{
    snprintf(fields->allow, sizeof fields->allow, "%s", verbs);
    return fields->allow;
}

static void add(struct fields *fields, const char *name, struct slice value)
{
    CHECK(fields->count < FIELDS_MAX);
    fields->list[fields->count++] = (struct http_field){ slice_from_text(name), value };
}

static void add_text(struct fields *fields, const char *name, const char *value)
{
    add(fields, name, slice_from_text(value));
}

static void add_cors(struct fields *fields, const struct rpc_call *call)
{
    const char *origins = call->server->cors_origins;
    struct slice origin = { 0 };

    if (origins == NULL)
        return;
    add_text(fields, "vary", "Origin");
    origin = http_header_find(call->exchange, "origin");
    if (!rpc_origin_allowed(origins, origin))
        return;
    add(fields, "access-control-allow-origin", origin);
    add_text(fields, "access-control-expose-headers",
             "grpc-status, grpc-message, grpc-status-details-bin, retry-after, content-encoding, "
             "grpc-encoding, connect-content-encoding, etag, holdfast-error, holdfast-action, "
             "allow, www-authenticate");
}

/* A GET may be answered by any cache on the way, unless the answer forbids it: a read would be as
 * old as that cache. */
static void add_no_store(struct fields *fields, const struct rpc_call *call)
{
    if (call->is_rest)
        add_text(fields, "cache-control", "no-store");
}

/* Of an answer that its caller may keep for a while; no other cache may, since a key or a token
 * asked for it. */
static void add_cache_control(struct fields *fields, const struct rpc_call *call,
                              const ProtobufCMessage *message)
{
    uint32_t keep_s = call->is_rest && message != NULL && call->found != NULL &&
                              call->found->route->verb == REST_GET
                          ? rest_keep_s(call->request.method->id, call->request.message, message)
                          : 0;

    if (keep_s == 0) {
        add_no_store(fields, call);
        return;
    }
    snprintf(fields->keep, sizeof fields->keep, "private, max-age=%u", keep_s);
    add_text(fields, "cache-control", fields->keep);
}

/* The call's memory goes before the answer does, since the exchange may be freed by it: no header
 * may point into that memory. */
static void end(struct rpc_call *call, const struct http_answer *answer)
{
    struct http_exchange *exchange = call->exchange;

    rpc_call_release(call);
    http_answer(exchange, answer);
}

/* ---- payloads in the scratch buffer ---- */

static void put_web_trailers(struct buf *scratch, const Holdfast__V1__ErrorDetail *detail)
{
    size_t from = rpc_envelope_start(scratch);

    if (detail == NULL) {
        buf_printf(scratch, "grpc-status: 0\r\n");
    } else {
        struct buf status = { 0 };
        buf_printf(scratch,
                   "grpc-status: %u\r\ngrpc-message: ", rpc_status_get(detail->code)->grpc);
        rpc_percent_encode(detail->message, scratch);
        buf_printf(scratch, "\r\ngrpc-status-details-bin: ");
        rpc_error_status(detail, &status);
        base64_encode(buf_slice(&status), false, scratch);
        const struct error_words words = error_words_of(detail);
        buf_printf(scratch, "\r\nholdfast-error: %s\r\nholdfast-action: %s\r\n", words.code,
                   words.action);
        buf_deinit(&status);
    }
    rpc_envelope_finish(scratch, from, RPC_FLAG_WEB_TRAILERS);
}

static void put_connect_end(struct rpc_call *call, struct buf *scratch,
                            const Holdfast__V1__ErrorDetail *detail)
{
    size_t from = rpc_envelope_start(scratch);

    if (detail == NULL) {
        buf_printf(scratch, "{}");
    } else {
        buf_printf(scratch, "{\"error\":");
        rpc_error_json(call, rpc_status_get(detail->code)->connect, detail, scratch);
        buf_printf(scratch, "}");
    }
    rpc_envelope_finish(scratch, from, RPC_FLAG_CONNECT_END);
}

/* ---- success ---- */

static void add_head(struct fields *fields, const struct rpc_call *call,
                     const ProtobufCMessage *message)
{
    add_text(fields, "content-type", rpc_content_type(call->request.protocol, call->request.form));
    add_cache_control(fields, call, message);
    add_cors(fields, call);
}

static void add_packed(struct fields *fields, const struct rpc_call *call)
{
    add_text(fields, rpc_encoding_header(call->request.protocol), "gzip");
}

static bool has_tag(const struct rpc_call *call, const ProtobufCMessage *message,
                    char ret_tag[REST_TAG_BYTES])
{
    return (call->request.message == NULL || rest_tag_is_told(call->request.message)) &&
           rest_tag_of(message, ret_tag);
}

/* For If-Match and If-None-Match, of those who do not look into bodies. */
static void add_etag(struct fields *fields, const struct rpc_call *call,
                     const ProtobufCMessage *message)
{
    if (call->is_rest && message != NULL && has_tag(call, message, fields->etag))
        add_text(fields, "etag", fields->etag);
}

/* The caller has what it would be sent. Of a GET alone: rpc_rest.c refuses the header with other
 * verbs. */
static bool is_known(const struct rpc_call *call, const ProtobufCMessage *message)
{
    char tag[REST_TAG_BYTES];

    return call->if_none_match.size > 0 && has_tag(call, message, tag) &&
           rest_tags_have(call->if_none_match, tag);
}

/* RFC 9110, section 15.4.5. */
static void send_not_modified(struct rpc_call *call, const ProtobufCMessage *message)
{
    struct fields fields = { .count = 0 };
    struct http_answer answer = { .status = 304 };

    add_cache_control(&fields, call, message);
    add_cors(&fields, call);
    add_etag(&fields, call, message);
    answer.headers = fields.list;
    answer.header_count = fields.count;
    end(call, &answer);
}

/* The message is in the scratch buffer, finished; NULL: it is there in bytes alone. */
static void send_unary(struct rpc_call *call, const ProtobufCMessage *message, bool packed)
{
    static const struct http_field ok = { .name = { (const uint8_t *)"grpc-status", 11 },
                                          .value = { (const uint8_t *)"0", 1 } };
    struct buf *scratch = &call->server->scratch;
    struct fields fields = { .count = 0 };
    struct http_answer answer = { .status = 200 };

    add_head(&fields, call, message);
    add_etag(&fields, call, message);
    if (packed)
        add_packed(&fields, call);
    if (call->request.protocol == RPC_GRPC) {
        answer.trailers = &ok;
        answer.trailer_count = 1;
    } else if (call->request.protocol == RPC_GRPC_WEB) {
        put_web_trailers(scratch, NULL);
    } else if (call->request.protocol == RPC_CONNECT_STREAM) {
        put_connect_end(call, scratch, NULL);
    }
    answer.headers = fields.list;
    answer.header_count = fields.count;
    answer.body = buf_slice(scratch);
    answer.given = scratch;
    end(call, &answer);
}

static void answer_undecoded(struct rpc_call *call)
{
    bool carried_out = error_is_given(call->request.method->id, CODE(OUTCOME_UNKNOWN), false);
    Holdfast__V1__ErrorDetail detail = HOLDFAST__V1__ERROR_DETAIL__INIT;

    detail.code = carried_out ? CODE(OUTCOME_UNKNOWN) : CODE(INTERNAL);
    detail.message = carried_out ? "a node's answer could not be decoded; the call was probably "
                                   "carried out"
                                 : "a node's answer could not be decoded";
    rpc_answer_error(call, &detail, 0);
}

/* What rpc_work made. */
static void answer_worked(struct rpc_call *call, const struct rpc_worked *worked)
{
    struct buf *scratch = &call->server->scratch;
    struct buf before = *scratch;

    if (worked->e != ERR_OK) {
        answer_undecoded(call);
    } else if (worked->message != NULL && is_known(call, worked->message)) {
        send_not_modified(call, worked->message);
    } else {
        *scratch = *worked->body;
        *worked->body = before;
        send_unary(call, worked->message, worked->packed);
        before = *scratch;
        *scratch = *worked->body;
        *worked->body = before;
    }
}

void rpc_answer_message(struct rpc_call *call, const ProtobufCMessage *message)
{
    struct rpc_server *server = call->server;
    struct rpc_payload payload = rpc_payload_of(call, rpc_call_may_pack(call));
    struct buf encoded = { 0 };

    if (is_known(call, message)) {
        send_not_modified(call, message);
        return;
    }
    rpc_payload_start(&payload, &server->scratch);
    rpc_payload_put(&payload, &server->tools, message, &server->scratch);
    if (!payload.may_pack || server->scratch.size <= RPC_WORK_BYTES_MIN) {
        send_unary(call, message, rpc_payload_finish(&payload, &server->tools, &server->scratch));
        return;
    }
    proto_encode(message, &encoded);
    rpc_work_start(call, &encoded, true, answer_worked);
}

static void answer_bytes(struct rpc_call *call, struct slice bytes, bool may_pack)
{
    struct rpc_server *server = call->server;
    struct rpc_payload payload = rpc_payload_of(call, may_pack);

    rpc_payload_start(&payload, &server->scratch);
    buf_append(&server->scratch, bytes.data, bytes.size);
    send_unary(call, NULL, rpc_payload_finish(&payload, &server->tools, &server->scratch));
}

void rpc_answer_bytes(struct rpc_call *call, struct slice bytes)
{
    answer_bytes(call, bytes, rpc_call_may_pack(call));
}

void rpc_answer_encoded(struct rpc_call *call, struct slice response)
{
    struct codec_scope scope = { .arena = &call->arena,
                                 .size_bytes_max = RPC_REPLY_MEMORY_MAX,
                                 .memory_bytes_max = RPC_REPLY_MEMORY_MAX };
    ProtobufCMessage *message;
    bool is_proto = call->request.form == RPC_FORM_PROTO, may_pack = rpc_call_may_pack(call);

    if (response.size > RPC_WORK_BYTES_MIN && (may_pack || !is_proto)) {
        struct buf copy = { 0 };
        buf_append(&copy, response.data, response.size);
        rpc_work_start(call, &copy, may_pack, answer_worked);
    } else if (is_proto) {
        answer_bytes(call, response, may_pack);
    } else if (proto_decode(call->request.method->response, response, &scope, &message) == ERR_OK) {
        rpc_answer_message(call, message);
    } else {
        answer_undecoded(call);
    }
}

void rpc_answer_from(struct rpc_call *call, const struct buf_source *source)
{
    struct buf response = { 0 };

    if (source->size > RPC_WORK_BYTES_MIN) {
        rpc_work_start_from(call, source, rpc_call_may_pack(call), answer_worked);
        return;
    }
    source->put(source->user, &response);
    rpc_answer_encoded(call, buf_slice(&response));
    buf_deinit(&response);
}

/* ---- errors ---- */

static void add_retry_after(struct fields *fields, uint32_t after_ms)
{
    if (after_ms == 0)
        return;
    snprintf(fields->retry_after, sizeof fields->retry_after, "%u",
             after_ms / 1000 + (after_ms % 1000 != 0));
    add_text(fields, "retry-after", fields->retry_after);
}

/* After a request in an encoding that is not ours. */
static void add_accepted(struct fields *fields, const struct rpc_call *call)
{
    if (call->unknown_encoding)
        add_text(fields, rpc_accept_header(call->request.protocol), ENCODINGS);
}

/* What HTTP's own statuses say, they say alone: any code would read as ours. Clients infer
 * "unknown" from them (Connect, "HTTP to Error Code"). */
static void add_allowed(struct fields *fields, const struct rpc_call *call, unsigned status)
{
    if (status == 401) /* RFC 6750 section 3: without anything brought there is no error to name. */
        add_text(fields, "www-authenticate",
                 call->request.api_key.size > 0 ? "Bearer error=\"invalid_token\"" : "Bearer");
    if (status == 405)
        add_text(fields, "allow", keep_allow(fields, call->allow != NULL ? call->allow : "POST"));
    if (status == 415 && call->is_rest)
        add_text(fields, "accept", "application/json");
    else if (status == 415)
        add_text(fields, "accept-post", RPC_CONTENT_TYPES);
}

/* What a client decides by, without a look at the body. */
static void add_words(struct fields *fields, const Holdfast__V1__ErrorDetail *detail)
{
    fields->words = error_words_of(detail);
    add_text(fields, "holdfast-error", fields->words.code);
    add_text(fields, "holdfast-action", fields->words.action);
}

/* REST promises one with each of these two. */
static uint32_t retry_after_ms(const struct rpc_call *call, const Holdfast__V1__ErrorDetail *detail,
                               unsigned status)
{
    bool is_needed = call->is_rest && (status == 429 || status == 503);

    return is_needed && detail->retry_after_ms == 0 ? RPC_THROTTLE_RETRY_MS
                                                    : detail->retry_after_ms;
}

static void fail_connect(struct rpc_call *call, const Holdfast__V1__ErrorDetail *detail,
                         unsigned http_status)
{
    struct buf *scratch = &call->server->scratch;
    struct fields fields = { .count = 0 };
    struct http_answer answer = { .status = http_status };

    if (http_status == 0)
        answer.status = call->is_rest ? rpc_status_rest(detail->code, call->if_match.size > 0)
                                      : rpc_status_get(detail->code)->http;
    const char *code = !call->is_rest && (answer.status == 405 || answer.status == 415)
                           ? "unknown"
                           : rpc_status_get(detail->code)->connect;
    buf_clear(scratch);
    rpc_error_json(call, code, detail, scratch);
    add_text(&fields, "content-type", "application/json");
    add_no_store(&fields, call);
    add_retry_after(&fields, retry_after_ms(call, detail, answer.status));
    add_words(&fields, detail);
    add_allowed(&fields, call, answer.status);
    add_accepted(&fields, call);
    add_cors(&fields, call);
    answer.headers = fields.list;
    answer.header_count = fields.count;
    answer.body = buf_slice(scratch);
    end(call, &answer);
}

/* The error's fields, for headers of a gRPC answer or for its trailers. */
static void add_grpc_status(struct fields *fields, struct rpc_server *server,
                            const Holdfast__V1__ErrorDetail *detail, char ret_status[4])
{
    struct buf *scratch = &server->scratch;
    size_t message_size;

    buf_clear(&server->details);
    rpc_error_status(detail, &server->details);
    buf_clear(scratch);
    rpc_percent_encode(detail->message, scratch);
    message_size = scratch->size;
    base64_encode(buf_slice(&server->details), false, scratch);
    snprintf(ret_status, 4, "%u", rpc_status_get(detail->code)->grpc);
    add_text(fields, "grpc-status", ret_status);
    add_words(fields, detail);
    add(fields, "grpc-message", (struct slice){ scratch->data, message_size });
    add(fields, "grpc-status-details-bin",
        (struct slice){ scratch->data + message_size, scratch->size - message_size });
}

/* Trailers only: all is in the head. */
static void fail_grpc(struct rpc_call *call, const Holdfast__V1__ErrorDetail *detail,
                      unsigned http_status)
{
    struct fields fields = { .count = 0 };
    char status[4];

    add_head(&fields, call, NULL);
    add_grpc_status(&fields, call->server, detail, status);
    add_accepted(&fields, call);
    struct http_answer answer = { .status = http_status,
                                  .headers = fields.list,
                                  .header_count = fields.count };
    end(call, &answer);
}

static void tell_refused(struct rpc_call *call, Holdfast__V1__ErrorCode code)
{
    const struct rpc_handlers *handlers = &call->server->handlers;

    if (call->admitted || call->refused_there || handlers->on_refused == NULL)
        return;
    call->request.peer = http_peer(call->exchange);
    handlers->on_refused(handlers->user, &call->request, code);
}

void rpc_answer_bare(struct rpc_call *call, unsigned status,
                     const Holdfast__V1__ErrorDetail *detail)
{
    struct fields fields = { .count = 0 };

    call->server->http.stats.requests_failed++;
    tell_refused(call, detail != NULL ? detail->code : CODE(INVALID_ARGUMENT));
    if (detail != NULL) {
        Holdfast__V1__ErrorDetail whole = error_complete(detail);
        rpc_error_clean(call, &whole);
        fail_grpc(call, &whole, status);
        return;
    }
    add_allowed(&fields, call, status);
    add_cors(&fields, call);
    struct http_answer answer = { .status = status,
                                  .headers = fields.list,
                                  .header_count = fields.count };
    end(call, &answer);
}

/* gRPC-Web and Connect streams carry the error in the body. */
static void fail_in_body(struct rpc_call *call, const Holdfast__V1__ErrorDetail *detail)
{
    struct buf *scratch = &call->server->scratch;
    struct fields fields = { .count = 0 };

    buf_clear(scratch);
    if (call->request.protocol == RPC_GRPC_WEB)
        put_web_trailers(scratch, detail);
    else
        put_connect_end(call, scratch, detail);
    add_head(&fields, call, NULL);
    add_accepted(&fields, call);
    struct http_answer answer = { .status = 200,
                                  .headers = fields.list,
                                  .header_count = fields.count,
                                  .body = buf_slice(scratch) };
    end(call, &answer);
}

void rpc_answer_error(struct rpc_call *call, const Holdfast__V1__ErrorDetail *given,
                      unsigned http_status)
{
    Holdfast__V1__ErrorDetail whole = error_complete(given);
    const Holdfast__V1__ErrorDetail *detail = &whole;

    rpc_error_clean(call, &whole);
    call->server->http.stats.requests_failed++;
    tell_refused(call, whole.code);
    if (call->begun) {
        rpc_answer_stream_end(call, detail);
        return;
    }
    switch (call->request.protocol) {
    case RPC_CONNECT:
        fail_connect(call, detail, http_status);
        return;
    case RPC_GRPC:
        fail_grpc(call, detail, 200);
        return;
    case RPC_CONNECT_STREAM:
    case RPC_GRPC_WEB:
        fail_in_body(call, detail);
        return;
    }
}

/* ---- streams ---- */

static void stream_begin(struct rpc_call *call)
{
    struct fields fields = { .count = 0 };

    add_head(&fields, call, NULL);
    call->packs = rpc_call_may_pack(call);
    if (call->packs)
        add_packed(&fields, call);
    struct http_answer answer = { .status = 200,
                                  .headers = fields.list,
                                  .header_count = fields.count };
    call->begun = true;
    http_answer_begin(call->exchange, &answer);
}

bool rpc_answer_stream_send(struct rpc_call *call, const ProtobufCMessage *message)
{
    struct rpc_server *server = call->server;
    struct buf *scratch = &server->scratch;

    if (!call->begun)
        stream_begin(call);
    struct rpc_payload payload = rpc_payload_of(call, call->packs);
    rpc_payload_start(&payload, scratch);
    rpc_payload_put(&payload, &server->tools, message, scratch);
    payload.may_pack &= scratch->size <= RPC_STREAM_PACK_BYTES_MAX;
    (void)rpc_payload_finish(&payload, &server->tools, scratch);
    return http_answer_send(call->exchange, buf_slice(scratch));
}

void rpc_answer_stream_end(struct rpc_call *call, const Holdfast__V1__ErrorDetail *given)
{
    Holdfast__V1__ErrorDetail whole =
        given != NULL ? error_complete(given) : (Holdfast__V1__ErrorDetail){ 0 };
    const Holdfast__V1__ErrorDetail *detail = given != NULL ? &whole : NULL;
    struct http_exchange *exchange = call->exchange;
    struct buf *scratch = &call->server->scratch;
    struct fields trailers = { .count = 0 };
    char status[4] = "0";

    if (detail != NULL)
        rpc_error_clean(call, &whole);
    if (!call->begun)
        stream_begin(call);
    buf_clear(scratch);
    if (call->request.protocol == RPC_GRPC_WEB)
        put_web_trailers(scratch, detail);
    else if (call->request.protocol == RPC_CONNECT_STREAM)
        put_connect_end(call, scratch, detail);
    else if (detail != NULL)
        add_grpc_status(&trailers, call->server, detail, status);
    else
        add_text(&trailers, "grpc-status", status);
    if (call->request.protocol != RPC_GRPC)
        (void)http_answer_send(exchange, buf_slice(scratch));
    rpc_call_release(call);
    http_answer_end(exchange, trailers.list, trailers.count);
}

/* ---- plain HTTP ---- */

void rpc_answer_plain(struct rpc_call *call, unsigned status, const char *content_type,
                      const char *body)
{
    struct fields fields = { .count = 0 };

    add_text(&fields, "content-type", content_type);
    add_allowed(&fields, call, status);
    add_cors(&fields, call);
    struct http_answer answer = { .status = status,
                                  .headers = fields.list,
                                  .header_count = fields.count,
                                  .body = slice_from_text(body) };
    end(call, &answer);
}

bool rpc_answer_document(struct rpc_call *call, struct slice plain, struct slice packed)
{
    struct fields fields = { .count = 0 };
    bool packs = rpc_call_may_pack(call);

    if (!http_waiting_fits(call->exchange, packs ? packed.size : plain.size))
        return false;
    add_head(&fields, call, NULL);
    if (packs)
        add_packed(&fields, call);
    struct http_answer answer = { .status = 200,
                                  .headers = fields.list,
                                  .header_count = fields.count,
                                  .body = packs ? packed : plain };
    end(call, &answer);
    return true;
}

void rpc_answer_preflight(struct rpc_call *call, const char *verbs)
{
    struct fields fields = { .count = 0 };
    struct slice origin = http_header_find(call->exchange, "origin");

    add_cors(&fields, call);
    if (rpc_origin_allowed(call->server->cors_origins, origin)) {
        add_text(&fields, "access-control-allow-methods", keep_allow(&fields, verbs));
        add_text(&fields, "access-control-allow-headers",
                 "authorization, content-type, content-encoding, connect-protocol-version, "
                 "connect-timeout-ms, connect-content-encoding, connect-accept-encoding, "
                 "grpc-timeout, grpc-encoding, grpc-accept-encoding, holdfast-authority, "
                 "holdfast-device, idempotency-key, if-match, if-none-match, traceparent, "
                 "x-grpc-web, x-user-agent");
        add_text(&fields, "access-control-max-age", "7200");
    }
    struct http_answer answer = { .status = 204,
                                  .headers = fields.list,
                                  .header_count = fields.count };
    end(call, &answer);
}
