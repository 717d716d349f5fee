#include "node/core/handler/answer.h"

#include <string.h>

#include "holdfast/v1/operation.pb-c.h"
#include "idl/as_of.h"
#include "idl/method.h"
#include "node/core/handler/handler.h"
#include "runtime/base/check.h"

#define WIRE_BYTES      2u
#define FIELD_WRITE     1u
#define FIELD_WRITE_DOT 2u /* Of the WriteInfo that programs up to apply version 3 made. */

char *as_of_text(const struct read_context *context)
{
    char *text = arena_alloc(context->arena, AS_OF_TEXT_SIZE);

    as_of_print(&(struct as_of){ context->shard, context->as_of.epoch, context->as_of.owner,
                                 context->as_of.counter },
                text);
    return text;
}

static void put_packed(struct buf *out, const ProtobufCMessage *message)
{
    size_t size = protobuf_c_message_get_packed_size(message);

    protobuf_c_message_pack(message, buf_reserve(out, size));
    out->size += size;
}

void answer_put_message(struct buf *out, uint32_t field, const ProtobufCMessage *message)
{
    buf_put_compact(out, field << 3 | WIRE_BYTES);
    buf_put_compact(out, protobuf_c_message_get_packed_size(message));
    put_packed(out, message);
}

static bool has_write_info(const struct method_info *method)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(method_answer(method), 1);
    return field != NULL && strcmp(field->name, "write") == 0;
}

/* What stands in `dot`'s place among the fields of the message, by their numbers. */
static void put_write_with_dot(struct buf *out, const struct answer *answer,
                               Holdfast__V1__WriteInfo *write)
{
    Holdfast__V1__WriteInfo head = HOLDFAST__V1__WRITE_INFO__INIT;
    Holdfast__V1__Dot dot = HOLDFAST__V1__DOT__INIT;
    struct buf bytes = { 0 };

    dot.epoch = answer->dot.epoch;
    dot.owner = answer->dot.owner;
    dot.counter = answer->dot.counter;
    head.version = write->version;
    write->version = 0;
    put_packed(&bytes, &head.base);
    answer_put_message(&bytes, FIELD_WRITE_DOT, &dot.base);
    put_packed(&bytes, &write->base);
    buf_put_compact(out, FIELD_WRITE << 3 | WIRE_BYTES);
    buf_put_compact(out, bytes.size);
    buf_append(out, bytes.data, bytes.size);
    buf_deinit(&bytes);
}

void answer_encode(const struct answer *answer, struct buf *out)
{
    const struct method_info *method = method_find(answer->method);
    Holdfast__V1__WriteInfo write = HOLDFAST__V1__WRITE_INFO__INIT;
    char as_of[AS_OF_TEXT_SIZE];

    CHECK(method != NULL);
    if (has_write_info(method)) {
        write.version = answer->version;
        write.replicas_fsynced = answer->replicas_fsynced;
        write.duplicate = answer->duplicate;
        if (answer->tells_dot) {
            put_write_with_dot(out, answer, &write);
        } else {
            as_of_print(&(struct as_of){ answer->shard, answer->dot.epoch, answer->dot.owner,
                                         answer->dot.counter },
                        as_of);
            write.as_of = as_of;
            answer_put_message(out, FIELD_WRITE, &write.base);
        }
    }
    buf_append(out, answer->body.data, answer->body.size);
}
