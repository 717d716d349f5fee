#include <string.h>

#include "runtime/base/check.h"
#include "runtime/rest/rest_request.h"

static const void *member_of(const ProtobufCMessage *message, size_t offset)
{
    return (const char *)message + offset;
}

/* Bytes of one value. */
static size_t size_of(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default:
        return 4;
    }
}

static bool is_in_oneof(const ProtobufCFieldDescriptor *field)
{
    return (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
}

static const char *text_of(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *message)
{
    const char *text = *(char *const *)member_of(message, field->offset);

    return text != NULL ? text : "";
}

/* Whether it says more than its default. In a oneof: whether any of its fields is set. */
static bool is_set(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *message)
{
    static const char zeros[sizeof(ProtobufCBinaryData)];
    const void *value = member_of(message, field->offset);

    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return *(const size_t *)member_of(message, field->quantifier_offset) > 0;
    if (is_in_oneof(field))
        return *(const uint32_t *)member_of(message, field->quantifier_offset) != 0;
    if (field->type == PROTOBUF_C_TYPE_STRING)
        return text_of(field, message)[0] != 0;
    if (field->type == PROTOBUF_C_TYPE_BYTES)
        return ((const ProtobufCBinaryData *)value)->len > 0;
    return memcmp(value, zeros, size_of(field)) != 0;
}

/* Single values that are the same. Lists and messages never are. */
static bool is_equal(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *a,
                     const ProtobufCMessage *b)
{
    if (field->label == PROTOBUF_C_LABEL_REPEATED || field->type == PROTOBUF_C_TYPE_MESSAGE ||
        field->type == PROTOBUF_C_TYPE_BYTES)
        return false;
    if (is_in_oneof(field) && *(const uint32_t *)member_of(a, field->quantifier_offset) !=
                                  *(const uint32_t *)member_of(b, field->quantifier_offset))
        return false;
    if (field->type == PROTOBUF_C_TYPE_STRING)
        return strcmp(text_of(field, a), text_of(field, b)) == 0;
    return memcmp(member_of(a, field->offset), member_of(b, field->offset), size_of(field)) == 0;
}

static void copy(ProtobufCMessage *to, const ProtobufCMessage *from, size_t offset, size_t size)
{
    memcpy((char *)to + offset, (const char *)from + offset, size);
}

static void take(const ProtobufCFieldDescriptor *field, ProtobufCMessage *body,
                 const ProtobufCMessage *head)
{
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        copy(body, head, field->offset, sizeof(void *));
        copy(body, head, field->quantifier_offset, sizeof(size_t));
        return;
    }
    copy(body, head, field->offset, size_of(field));
    if (is_in_oneof(field))
        copy(body, head, field->quantifier_offset, sizeof(uint32_t));
}

err rest_request_merge(ProtobufCMessage *body, const ProtobufCMessage *head,
                       struct rest_named named, struct rest_flaw *ret_flaw)
{
    CHECK(body->descriptor == head->descriptor);
    for (unsigned i = 0; i < body->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &body->descriptor->fields[i];
        if ((named.bits & 1ull << i) == 0)
            continue;
        if (!is_set(field, body)) {
            take(field, body, head);
        } else if (!is_equal(field, body, head)) {
            *ret_flaw = (struct rest_flaw){
                .message = "the body says otherwise than the path, the query or If-Match",
                .field = field->name,
                .limit = "the same, or only one of them",
            };
            return ERR_INVALID;
        }
    }
    return ERR_OK;
}
