#include "runtime/rpc/rpc_payload.h"

#include <string.h>

#include "runtime/base/check.h"
#include "runtime/codec/proto_codec.h"

#define PACK_BYTES_MIN 1024u /* A shorter message is not worth the work. */

struct rpc_payload rpc_payload_of(const struct rpc_call *call, bool may_pack)
{
    return (struct rpc_payload){ .form = call->request.form,
                                 .json_form = rpc_call_json_form(call),
                                 .envelopes = call->request.protocol != RPC_CONNECT,
                                 .may_pack = may_pack };
}

size_t rpc_envelope_start(struct buf *out)
{
    size_t from = out->size;

    memset(buf_reserve(out, RPC_ENVELOPE_BYTES), 0, RPC_ENVELOPE_BYTES);
    out->size += RPC_ENVELOPE_BYTES;
    return from;
}

void rpc_envelope_finish(struct buf *out, size_t from, uint8_t flags)
{
    CHECK(from + RPC_ENVELOPE_BYTES <= out->size);
    size_t size = out->size - from - RPC_ENVELOPE_BYTES;
    uint8_t *at = out->data + from;

    at[0] = flags;
    at[1] = (uint8_t)(size >> 24);
    at[2] = (uint8_t)(size >> 16);
    at[3] = (uint8_t)(size >> 8);
    at[4] = (uint8_t)size;
}

static size_t head_bytes(const struct rpc_payload *payload)
{
    return payload->envelopes ? RPC_ENVELOPE_BYTES : 0;
}

void rpc_payload_start(const struct rpc_payload *payload, struct buf *out)
{
    buf_clear(out);
    if (payload->envelopes)
        (void)rpc_envelope_start(out);
}

void rpc_payload_put(const struct rpc_payload *payload, struct rpc_tools *tools,
                     const ProtobufCMessage *message, struct buf *out)
{
    if (payload->form == RPC_FORM_PROTO)
        proto_encode(message, out);
    else
        json_encode(&tools->codec, payload->json_form, message, out);
}

static bool pack(const struct rpc_payload *payload, struct rpc_tools *tools, struct buf *out)
{
    size_t from = head_bytes(payload);
    struct slice plain = { out->data + from, out->size - from };

    if (!payload->may_pack || plain.size <= PACK_BYTES_MIN)
        return false;
    buf_clear(&tools->packed);
    if (!gzip_encode(&tools->gzip, plain, &tools->packed))
        return false;
    memcpy(out->data + from, tools->packed.data, tools->packed.size);
    out->size = from + tools->packed.size;
    if (tools->packed.capacity > RPC_KEPT_BYTES_MAX)
        buf_deinit(&tools->packed);
    return true;
}

bool rpc_payload_finish(const struct rpc_payload *payload, struct rpc_tools *tools, struct buf *out)
{
    CHECK(out->size >= head_bytes(payload));
    bool packed = pack(payload, tools, out);

    if (payload->envelopes)
        rpc_envelope_finish(out, 0, packed ? RPC_FLAG_PACKED : 0);
    return packed;
}
