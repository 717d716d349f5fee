#include "node/core/read_options.h"

#include <string.h>

#include "holdfast/v1/operation.pb-c.h"
#include "idl/method.h"

#define FIELD_READ 2u
#define WIRE_VARINT 0u
#define WIRE_FIXED64 1u
#define WIRE_BYTES 2u
#define WIRE_FIXED32 5u

static bool has_read_options(uint32_t method)
{
    const struct method_info *info = method_find(method);

    if (info == NULL)
        return false;
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(info->request, FIELD_READ);
    return field != NULL && strcmp(field->name, "read") == 0;
}

static uint64_t read_varint(struct reader *reader)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = read_u8(reader);
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return value;
    }
    reader->bad = true;
    return 0;
}

/* The last value of a length-delimited field; empty when there is none or on malformed bytes. */
static struct slice find_bytes_field(struct slice message, uint32_t number)
{
    struct reader reader = reader_from(message);
    struct slice found = { 0 };

    while (reader_left(&reader) > 0 && !reader.bad) {
        uint64_t tag = read_varint(&reader);
        struct slice bytes = { 0 };
        switch (tag & 7) {
        case WIRE_VARINT:
            read_varint(&reader);
            break;
        case WIRE_FIXED64:
            read_raw(&reader, 8);
            break;
        case WIRE_FIXED32:
            read_raw(&reader, 4);
            break;
        case WIRE_BYTES:
            bytes = read_raw(&reader, (size_t)read_varint(&reader));
            break;
        default:
            reader.bad = true;
        }
        if (tag == ((uint64_t)number << 3 | WIRE_BYTES))
            found = bytes;
    }
    return reader.bad ? (struct slice){ 0 } : found;
}

void read_options_scan(uint32_t method, struct slice request, struct read_options *ret_options)
{
    *ret_options = (struct read_options){ .kind = READ_STRICT };
    if (!has_read_options(method))
        return;
    struct slice bytes = find_bytes_field(request, FIELD_READ);
    if (bytes.size == 0)
        return;
    Holdfast__V1__ReadOptions *options =
        holdfast__v1__read_options__unpack(NULL, bytes.size, bytes.data);
    if (options == NULL)
        return;
    if (options->consistency == HOLDFAST__V1__READ_CONSISTENCY__READ_CONSISTENCY_STALE) {
        ret_options->kind = READ_STALE;
    } else if (options->consistency == HOLDFAST__V1__READ_CONSISTENCY__READ_CONSISTENCY_AT_LEAST &&
               options->at_least != NULL && options->at_least->epoch != 0) {
        ret_options->kind = READ_AT_LEAST;
        ret_options->at_least = (struct dot){ options->at_least->epoch, options->at_least->owner,
                                              options->at_least->counter };
    }
    holdfast__v1__read_options__free_unpacked(options, NULL);
}
