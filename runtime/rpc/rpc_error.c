#include "runtime/rpc/rpc_error.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/base64.h"
#include "runtime/base/check.h"
#include "runtime/base/utf8.h"
#include "runtime/codec/proto_codec.h"
#include "runtime/rpc/rpc_status.h"

#define ESCAPE_BYTES 4u /* "\\xff" */
#define MESSAGE_BYTES_MAX                                                                          \
    768u /* The bytes of all texts are in base64, and the message once more. */
#define TEXT_BYTES_MAX 256u
#define DETAIL_TYPE    "holdfast.v1.ErrorDetail"

/* A JSON string, by way of a message that has only this one: the codec escapes it. */
static void put_json_message(struct rpc_server *server, const char *text, struct buf *out)
{
    Holdfast__V1__ErrorDetail only = HOLDFAST__V1__ERROR_DETAIL__INIT;
    size_t from = out->size;

    only.message = text_lend(text);
    json_encode(&server->tools.codec, JSON_CANONICAL, &only.base, out);
    /* {"message":"..."} -> "message":"..." */
    CHECK(out->data[from] == '{' && out->data[out->size - 1] == '}');
    memmove(out->data + from, out->data + from + 1, out->size - from - 2);
    out->size -= 2;
}

/* For Connect's clients: protobuf in base64, and once more for people. */
static void put_details(struct rpc_server *server, const Holdfast__V1__ErrorDetail *detail,
                        struct buf *out)
{
    struct buf *bytes = &server->details;

    buf_put_text(out, ",\"details\":[{\"type\":\"" DETAIL_TYPE "\",\"value\":\"");
    buf_clear(bytes);
    proto_encode(&detail->base, bytes);
    base64_encode(buf_slice(bytes), false, out);
    buf_put_text(out, "\",\"debug\":");
    json_encode(&server->tools.codec, JSON_CANONICAL, &detail->base, out);
    buf_put_text(out, "}]");
}

static char *escaped(struct rpc_call *call, struct slice left)
{
    char *out = arena_alloc(&call->arena, left.size * ESCAPE_BYTES + 1);
    char *at = out;

    while (left.size > 0) {
        size_t size = utf8_char_size(left);
        if (size > 0) {
            memcpy(at, left.data, size);
            at += size;
        } else {
            size = 1;
            at += snprintf(at, ESCAPE_BYTES + 1, "\\x%02x", (unsigned)left.data[0]);
        }
        left = (struct slice){ left.data + size, left.size - size };
    }
    *at = 0;
    return out;
}

void rpc_error_clean(struct rpc_call *call, Holdfast__V1__ErrorDetail *detail)
{
    const ProtobufCMessageDescriptor *type = detail->base.descriptor;

    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        if (field->type != PROTOBUF_C_TYPE_STRING || field->label == PROTOBUF_C_LABEL_REPEATED)
            continue;
        char **text = (char **)(void *)((uint8_t *)detail + field->offset);
        if (*text == NULL)
            continue;
        size_t max = text == &detail->message ? MESSAGE_BYTES_MAX : TEXT_BYTES_MAX;
        struct slice whole = slice_from_text(*text), cut = utf8_cut(whole, max);
        if (!utf8_valid(cut))
            cut = utf8_cut(slice_from_text(escaped(call, cut)), max);
        if (cut.data != whole.data || cut.size < whole.size)
            *text = text_lend((const char *)arena_copy(&call->arena, cut).data);
    }
}

void rpc_error_json(struct rpc_call *call, const char *code,
                    const Holdfast__V1__ErrorDetail *detail, struct buf *out)
{
    struct rpc_server *server = call->server;

    buf_put_text(out, "{\"code\":\"");
    buf_put_text(out, code);
    buf_put_text(out, "\"");
    if (detail->message != NULL && detail->message[0] != 0) {
        buf_put_text(out, ",");
        put_json_message(server, detail->message, out);
    }
    if (call->request.form == RPC_FORM_PLAIN_JSON) {
        buf_put_text(out, ",\"error\":");
        json_encode(&server->tools.codec, JSON_PLAIN, &detail->base, out);
    } else {
        put_details(server, detail, out);
    }
    buf_put_text(out, "}");
}

static void put_field(struct buf *out, unsigned number, struct slice bytes)
{
    buf_put_compact(out, number << 3 | 2);
    buf_put_compact(out, bytes.size);
    buf_append(out, bytes.data, bytes.size);
}

/* Status { int32 code = 1; string message = 2; repeated Any details = 3; }
 * Any { string type_url = 1; bytes value = 2; } */
void rpc_error_status(const Holdfast__V1__ErrorDetail *detail, struct buf *out)
{
    struct buf value = { 0 };
    struct buf any = { 0 };

    proto_encode(&detail->base, &value);
    put_field(&any, 1, SLICE_LITERAL("type.googleapis.com/" DETAIL_TYPE));
    put_field(&any, 2, buf_slice(&value));
    buf_put_compact(out, 1 << 3);
    buf_put_compact(out, rpc_status_get(detail->code)->grpc);
    put_field(out, 2, slice_from_text(detail->message != NULL ? detail->message : ""));
    put_field(out, 3, buf_slice(&any));
    buf_deinit(&value);
    buf_deinit(&any);
}
