#include "node/core/handler/answer.h"

#include <string.h>

#include "holdfast/v1/operation.pb-c.h"
#include "idl/method.h"
#include "runtime/base/check.h"

#define WIRE_BYTES 2u

void answer_put_message(struct buf *out, uint32_t field, const ProtobufCMessage *message)
{
    size_t size = protobuf_c_message_get_packed_size(message);

    buf_put_compact(out, field << 3 | WIRE_BYTES);
    buf_put_compact(out, size);
    protobuf_c_message_pack(message, buf_reserve(out, size));
    out->size += size;
}

static bool has_write_info(const struct method_info *method)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(method_answer(method), 1);
    return field != NULL && strcmp(field->name, "write") == 0;
}

void answer_encode(const struct answer *answer, struct buf *out)
{
    const struct method_info *method = method_find(answer->method);
    Holdfast__V1__WriteInfo write = HOLDFAST__V1__WRITE_INFO__INIT;
    Holdfast__V1__Dot dot = HOLDFAST__V1__DOT__INIT;

    CHECK(method != NULL);
    if (has_write_info(method)) {
        dot.epoch = answer->dot.epoch;
        dot.owner = answer->dot.owner;
        dot.counter = answer->dot.counter;
        write.version = answer->version;
        write.dot = &dot;
        write.replicas_fsynced = answer->replicas_fsynced;
        write.duplicate = answer->duplicate;
        answer_put_message(out, 1, &write.base);
    }
    buf_append(out, answer->body.data, answer->body.size);
}
