#include "runtime/base/id.h"

#include <string.h>

/* Value plus one; 0: no hex digit. */
static const uint8_t hex_values[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
    ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

/* Where the two digits of each byte stand. */
static const uint8_t uuid_places[16] = {
    0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34
};

static bool is_dash_position(size_t i)
{
    return i == 8 || i == 13 || i == 18 || i == 23;
}

err uuid_parse(struct slice text, struct uuid *ret_uuid)
{
    const uint8_t *t = text.data;
    struct uuid uuid;

    if (text.size != UUID_TEXT_SIZE - 1)
        return ERR_INVALID;
    if (t[8] != '-' || t[13] != '-' || t[18] != '-' || t[23] != '-')
        return ERR_INVALID;
    for (size_t i = 0; i < sizeof uuid.bytes; i++) {
        unsigned high = hex_values[t[uuid_places[i]]];
        unsigned low = hex_values[t[uuid_places[i] + 1]];
        if (high == 0 || low == 0)
            return ERR_INVALID;
        uuid.bytes[i] = (uint8_t)((high - 1) << 4 | (low - 1));
    }
    *ret_uuid = uuid;
    return ERR_OK;
}

void uuid_print(const struct uuid *uuid, char ret_text[UUID_TEXT_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    size_t nibble = 0;

    for (size_t i = 0; i < UUID_TEXT_SIZE - 1; i++) {
        if (is_dash_position(i)) {
            ret_text[i] = '-';
            continue;
        }
        uint8_t byte = uuid->bytes[nibble / 2];
        ret_text[i] = digits[nibble % 2 == 0 ? byte >> 4 : byte & 15];
        nibble++;
    }
    ret_text[UUID_TEXT_SIZE - 1] = 0;
}

bool uuid_is_v7(const struct uuid *uuid)
{
    return uuid->bytes[6] >> 4 == 7 && uuid->bytes[8] >> 6 == 2;
}

uint64_t uuid_v7_ms(const struct uuid *uuid)
{
    uint64_t ms = 0;
    for (size_t i = 0; i < 6; i++)
        ms = ms << 8 | uuid->bytes[i];
    return ms;
}

struct uuid uuid_v7_make(uint64_t unix_ms, const uint8_t random[10])
{
    struct uuid uuid;
    for (size_t i = 0; i < 6; i++)
        uuid.bytes[i] = (uint8_t)(unix_ms >> (8 * (5 - i)));
    memcpy(uuid.bytes + 6, random, 10);
    uuid.bytes[6] = (uint8_t)(0x70 | (uuid.bytes[6] & 15));
    uuid.bytes[8] = (uint8_t)(0x80 | (uuid.bytes[8] & 63));
    return uuid;
}
