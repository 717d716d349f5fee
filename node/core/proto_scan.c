#include "node/core/proto_scan.h"

enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct found {
    bool any;
    struct slice bytes;
    uint64_t number;
};

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

static bool scan(struct slice message, uint32_t field, enum wire wire, struct found *found)
{
    struct reader reader = reader_from(message);

    while (reader_left(&reader) > 0 && !reader.bad) {
        uint64_t tag = read_varint(&reader);
        uint64_t number = 0;
        struct slice bytes = { 0 };
        switch (tag & 7) {
        case WIRE_VARINT:
            number = read_varint(&reader);
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
        if (tag == ((uint64_t)field << 3 | wire))
            *found = (struct found){ true, bytes, number };
    }
    return found->any && !reader.bad;
}

bool proto_scan_bytes(struct slice message, uint32_t field, struct slice *ret_bytes)
{
    struct found found = { 0 };

    if (!scan(message, field, WIRE_BYTES, &found))
        return false;
    *ret_bytes = found.bytes;
    return true;
}

bool proto_scan_varint(struct slice message, uint32_t field, uint64_t *ret_number)
{
    struct found found = { 0 };

    if (!scan(message, field, WIRE_VARINT, &found))
        return false;
    *ret_number = found.number;
    return true;
}
