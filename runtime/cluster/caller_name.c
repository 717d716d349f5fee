#include "runtime/cluster/caller_name.h"

#include <string.h>

#include "runtime/base/check.h"

#define WIRE_BYTES 2u
#define TAG        (CALLER_NAME_FIELD << 3 | WIRE_BYTES)

_Static_assert(TAG >> 7 < 128, "a tag of two bytes");
_Static_assert(CALLER_NAME_BYTES_MAX < 128, "a length of one byte");

static bool is_good_byte(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '_' || c == '-' || c == ':';
}

bool caller_name_is_good(struct slice name)
{
    if (name.size == 0 || name.size > CALLER_NAME_BYTES_MAX)
        return false;
    for (size_t i = 0; i < name.size; i++) {
        if (!is_good_byte(name.data[i]))
            return false;
    }
    return true;
}

size_t caller_name_put(struct slice name, uint8_t out[CALLER_NAME_ENCODED_SIZE])
{
    size_t size = caller_name_is_good(name) ? name.size : 0;

    out[0] = (uint8_t)(TAG & 0x7f) | 0x80;
    out[1] = (uint8_t)(TAG >> 7);
    out[2] = (uint8_t)size;
    if (size > 0)
        memcpy(out + 3, name.data, size);
    return 3 + size;
}

/* An unknown field of that kind holds its length and its bytes. */
static err read_name(const ProtobufCMessageUnknownField *field, struct slice *ret_name)
{
    struct reader reader = reader_from((struct slice){ field->data, field->len });
    struct slice name = { 0 };

    if (field->wire_type == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED) {
        size_t size = (size_t)read_compact(&reader);
        name = read_raw(&reader, size);
        if (reader_finish(&reader) == ERR_OK && (size == 0 || caller_name_is_good(name))) {
            *ret_name = name;
            return ERR_OK;
        }
    }
    *ret_name = (struct slice){ 0 };
    return ERR_INVALID;
}

err caller_name_take(ProtobufCMessage *message, struct slice *ret_name)
{
    unsigned kept = 0;
    err e = ERR_OK;

    *ret_name = (struct slice){ 0 };
    for (unsigned i = 0; i < message->n_unknown_fields; i++) {
        ProtobufCMessageUnknownField *field = &message->unknown_fields[i];
        if (field->tag == CALLER_NAME_FIELD)
            e = read_name(field, ret_name);
        else
            message->unknown_fields[kept++] = *field;
    }
    message->n_unknown_fields = kept;
    return e;
}
