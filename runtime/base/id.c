#include "runtime/base/id.h"

#include <string.h>

static int hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static bool is_dash_position(size_t i)
{
    return i == 8 || i == 13 || i == 18 || i == 23;
}

err uuid_parse(struct slice text, struct uuid *ret_uuid)
{
    struct uuid uuid;
    size_t nibble = 0;

    if (text.size != UUID_TEXT_SIZE - 1)
        return ERR_INVALID;
    memset(&uuid, 0, sizeof uuid);
    for (size_t i = 0; i < text.size; i++) {
        if (is_dash_position(i)) {
            if (text.data[i] != '-')
                return ERR_INVALID;
            continue;
        }
        int value = hex_value(text.data[i]);
        if (value < 0)
            return ERR_INVALID;
        uuid.bytes[nibble / 2] = (uint8_t)(uuid.bytes[nibble / 2] << 4 | value);
        nibble++;
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
