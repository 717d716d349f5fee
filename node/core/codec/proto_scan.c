#include "node/core/codec/proto_scan.h"

enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

static uint64_t read_varint(struct reader *reader)
{
    uint64_t value = 0;

    if (!reader->bad && reader->at < reader->end && *reader->at < 128)
        return *reader->at++; /* Nearly all tags and lengths. */
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = read_u8(reader);
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return value;
    }
    reader->bad = true;
    return 0;
}

bool proto_scan_next(struct reader *message, struct proto_field *ret_field)
{
    if (message->bad || reader_left(message) == 0)
        return false;
    uint64_t tag = read_varint(message);
    struct proto_field field = { .number = (uint32_t)(tag >> 3) };
    switch (tag & 7) {
    case WIRE_VARINT:
        field.is_varint = true;
        field.varint = read_varint(message);
        break;
    case WIRE_FIXED64:
        read_raw(message, 8);
        break;
    case WIRE_FIXED32:
        read_raw(message, 4);
        break;
    case WIRE_BYTES:
        field.is_bytes = true;
        field.bytes = read_raw(message, (size_t)read_varint(message));
        break;
    default:
        message->bad = true;
    }
    message->bad |= tag >> 3 > UINT32_MAX;
    *ret_field = field;
    return !message->bad;
}

bool proto_scan_ended(const struct reader *message)
{
    return !message->bad && reader_left(message) == 0;
}

bool proto_scan_bytes(struct slice message, uint32_t number, struct slice *ret_bytes)
{
    struct reader reader = reader_from(message);
    struct proto_field field;
    struct slice bytes = { 0 };
    bool found = false;

    while (proto_scan_next(&reader, &field)) {
        if (field.number != number || !field.is_bytes)
            continue;
        bytes = field.bytes;
        found = true;
    }
    if (!found || !proto_scan_ended(&reader))
        return false;
    *ret_bytes = bytes;
    return true;
}

bool proto_scan_varint(struct slice message, uint32_t number, uint64_t *ret_number)
{
    struct reader reader = reader_from(message);
    struct proto_field field;
    uint64_t varint = 0;
    bool found = false;

    while (proto_scan_next(&reader, &field)) {
        if (field.number != number || !field.is_varint)
            continue;
        varint = field.varint;
        found = true;
    }
    if (!found || !proto_scan_ended(&reader))
        return false;
    *ret_number = varint;
    return true;
}
