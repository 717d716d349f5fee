#include "runtime/rpc/rpc_message.h"

#include <stdio.h>

#include "idl/error_code.h"
#include "runtime/codec/proto_codec.h"
#include "runtime/http/http_budget.h"
#include "runtime/rpc/rpc_answer.h"
#include "runtime/rpc/rpc_header.h"
#include "runtime/rpc/rpc_refusal.h"

#define DECODED_BYTES_FREE 16384u   /* Not counted: requests_max limits small ones. */
#define KEPT_BYTES_MAX     1048576u /* A larger buffer is given back once it is empty. */

static const char whole_body[] = "content-encoding";

/* ---- encodings ---- */

static bool refuse_encoding(struct rpc_call *call, const char *name, struct slice value)
{
    Holdfast__V1__ErrorDetail detail = HOLDFAST__V1__ERROR_DETAIL__INIT;

    if (value.size > 64)
        value.size = 64;
    call->unknown_encoding = true;
    detail.code = CODE(UNIMPLEMENTED);
    detail.value = (char *)(uintptr_t)arena_copy(&call->arena, value).data;
    detail.message = arena_printf(&call->arena, "%s \"%s\" is not supported; send gzip or identity",
                                  name, detail.value);
    detail.field = text_lend(name);
    detail.limit = text_lend("gzip, identity");
    rpc_answer_error(call, &detail, 0);
    return false;
}

/* False: answered with an error. */
static bool read_encoding(struct rpc_call *call, const char *name, bool *ret_gzip)
{
    struct slice value = { 0 };
    bool sole = http_header_find_sole(call->exchange, name, &value);

    *ret_gzip = sole && rpc_encoding_is_gzip(value);
    if (value.size == 0 || *ret_gzip || (sole && http_text_equal(value, "identity")))
        return true;
    return refuse_encoding(call, name, value);
}

bool rpc_message_check_encoding(struct rpc_call *call)
{
    enum rpc_protocol protocol = call->request.protocol;
    bool whole = false;

    if (!read_encoding(call, rpc_encoding_header(protocol), &call->packed))
        return false;
    if (protocol == RPC_CONNECT)
        return true;
    if (!read_encoding(call, whole_body, &whole))
        return false;
    if (whole && protocol != RPC_GRPC_WEB)
        return refuse_encoding(call, whole_body, SLICE_LITERAL("gzip"));
    call->packed_whole = whole;
    return true;
}

/* ---- unpacking ---- */

static bool refuse_packed(struct rpc_call *call, const char *why)
{
    Holdfast__V1__ErrorDetail detail = HOLDFAST__V1__ERROR_DETAIL__INIT;

    call->server->http.stats.bad_messages++;
    detail.code = CODE(INVALID_ARGUMENT);
    detail.message = arena_printf(&call->arena, "the compressed body cannot be read: %s", why);
    detail.field = text_lend("body");
    detail.limit = text_lend("one whole gzip stream");
    rpc_answer_error(call, &detail, 0);
    return false;
}

/* What `packed` holds, at most `limit` bytes, which takes the body's place. */
static bool unpack(struct rpc_call *call, struct slice packed, size_t limit,
                   struct slice *ret_plain)
{
    struct rpc_server *server = call->server;
    const char *why = "";
    err e;

    buf_clear(&server->unpacked);
    e = gzip_decode(&server->tools.gzip, packed, limit, &server->unpacked, &why);
    enum http_refused over = HTTP_REFUSED_BODIES_FULL;
    bool fits =
        e == ERR_OK && http_body_replace(call->exchange, buf_slice(&server->unpacked), &over);
    if (server->unpacked.capacity > KEPT_BYTES_MAX)
        buf_deinit(&server->unpacked);
    if (e == ERR_TOO_LARGE) {
        rpc_refuse_large(call, "the body is too long once it is unpacked", "body", limit);
        return false;
    }
    if (e != ERR_OK)
        return refuse_packed(call, why);
    if (!fits) {
        rpc_refuse_busy(call, over);
        return false;
    }
    *ret_plain = buf_slice(&call->exchange->body);
    return true;
}

/* ---- envelopes ---- */

static size_t size_in(struct slice envelope)
{
    return (size_t)envelope.data[1] << 24 | (size_t)envelope.data[2] << 16 |
           (size_t)envelope.data[3] << 8 | envelope.data[4];
}

/* Whether a whole message in its envelope is there. */
static bool is_whole(struct slice bytes)
{
    return bytes.size >= RPC_ENVELOPE_BYTES && size_in(bytes) <= bytes.size - RPC_ENVELOPE_BYTES;
}

static bool refuse_malformed(struct rpc_call *call, const char *message)
{
    Holdfast__V1__ErrorDetail detail = HOLDFAST__V1__ERROR_DETAIL__INIT;

    call->server->http.stats.bad_messages++;
    detail.code = CODE(INVALID_ARGUMENT);
    detail.message = text_lend(message);
    detail.field = text_lend("body");
    detail.limit = text_lend("one message in its envelope");
    rpc_answer_error(call, &detail, 0);
    return false;
}

static bool refuse_count(struct rpc_call *call, const char *message)
{
    rpc_refuse(call, CODE(UNIMPLEMENTED), message, 0);
    return false;
}

static bool check_flags(struct rpc_call *call, unsigned flags)
{
    const char *message = NULL;

    if ((flags & ~RPC_FLAG_PACKED) != 0)
        message =
            arena_printf(&call->arena, "envelope flags 0x%02x: only bit 0x01 has a meaning", flags);
    else if (flags != 0 && !call->packed)
        message = arena_printf(&call->arena,
                               "a message is flagged as compressed, but %s names no "
                               "compression",
                               rpc_encoding_header(call->request.protocol));
    if (message == NULL)
        return true;
    call->server->http.stats.bad_messages++;
    rpc_refuse(call, CODE(INTERNAL), message, 0);
    return false;
}

/* The message in the only envelope of `body`. */
static bool open_envelope(struct rpc_call *call, struct slice body, struct slice *ret_message)
{
    size_t limit = call->body_max;

    if (body.size == 0)
        return refuse_count(call, "the request has no message; the method takes one");
    if (body.size < RPC_ENVELOPE_BYTES)
        return refuse_malformed(call, "the body ends within an envelope");
    if (!check_flags(call, body.data[0]))
        return false;
    size_t size = size_in(body);
    if (size > limit) {
        rpc_refuse_large(call, "the message is too long", "body", limit);
        return false;
    }
    if (!is_whole(body))
        return refuse_malformed(call, "the body ends within a message");
    struct slice rest = { body.data + RPC_ENVELOPE_BYTES + size,
                          body.size - RPC_ENVELOPE_BYTES - size };
    if (is_whole(rest))
        return refuse_count(call, "the request has several messages; the method takes one");
    if (rest.size > 0)
        return refuse_malformed(call, "there are more bytes behind the message");
    *ret_message = (struct slice){ body.data + RPC_ENVELOPE_BYTES, size };
    return true;
}

bool rpc_message_open(struct rpc_call *call, size_t unpacked_max, struct slice *ret_message)
{
    struct slice body = buf_slice(&call->exchange->body);
    bool packed = call->packed;

    if (call->request.protocol == RPC_CONNECT) {
        *ret_message = body;
    } else {
        if (call->packed_whole && body.size > 0 && !unpack(call, body, unpacked_max, &body))
            return false;
        if (!open_envelope(call, body, ret_message))
            return false;
        packed = body.data[0] != 0;
    }
    /* What is empty was not compressed, whatever the flag (Connect, "Unary-Request"). */
    return !packed || ret_message->size == 0 ||
           unpack(call, *ret_message, unpacked_max, ret_message);
}

/* ---- decoding ---- */

void rpc_message_fail(struct rpc_call *call, const struct codec_error *error, err e)
{
    Holdfast__V1__ErrorDetail detail = HOLDFAST__V1__ERROR_DETAIL__INIT;
    char message[sizeof *error + 16];

    call->server->http.stats.bad_messages++;
    detail.code = e == ERR_TOO_LARGE ? CODE(TOO_LARGE) : CODE(INVALID_ARGUMENT);
    (void)snprintf(message, sizeof message, "%s%s%s", error->field,
                   error->field[0] != 0 ? ": " : "", error->message);
    detail.message = message;
    detail.field = text_lend(error->field);
    detail.limit = text_lend(error->limit);
    detail.value = text_lend(error->value);
    rpc_answer_error(call, &detail, 0);
}

/* The message is a copy: its bytes go, but for those that may be passed on as they are. What was
 * decoded of a large one counts against the same budgets. */
static bool release_body(struct rpc_call *call)
{
    size_t decoded = call->arena.total_bytes;
    enum http_refused over;

    if (call->request.encoded.size == 0)
        http_body_drop(call->exchange);
    if (decoded <= DECODED_BYTES_FREE || http_body_charge_more(call->exchange, decoded, &over))
        return true;
    rpc_refuse_busy(call, over);
    return false;
}

bool rpc_message_decode(struct rpc_call *call)
{
    struct rpc_server *server = call->server;
    struct rpc_request *request = &call->request;
    struct codec_scope scope;
    struct slice bytes;
    err e;

    scope.arena = &call->arena;
    scope.size_bytes_max = call->body_max;
    if (!rpc_message_open(call, scope.size_bytes_max, &bytes))
        return false;
    scope.memory_bytes_max = 0;
    scope.form = rpc_call_json_form(call);
    if (request->form != RPC_FORM_PROTO)
        e = json_decode(&server->tools.codec, request->method->request, bytes, &scope,
                        &request->message);
    else
        e = proto_decode(request->method->request, bytes, &scope, &request->message);
    if (e != ERR_OK) {
        rpc_message_fail(call, &scope.error, e);
        return false;
    }
    if (request->form == RPC_FORM_PROTO && !call->request.streams)
        request->encoded = bytes;
    return release_body(call);
}
