#include "runtime/etcd/etcd_base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void etcd_base64_encode(struct slice bytes, struct buf *out)
{
    uint8_t *at = buf_reserve(out, (bytes.size + 2) / 3 * 4);
    size_t i = 0;

    for (; i + 3 <= bytes.size; i += 3) {
        uint32_t group =
            (uint32_t)bytes.data[i] << 16 | (uint32_t)bytes.data[i + 1] << 8 | bytes.data[i + 2];
        for (unsigned shift = 18; shift <= 18; shift -= 6)
            *at++ = (uint8_t)alphabet[group >> shift & 63];
    }
    if (i < bytes.size) {
        bool two = i + 2 == bytes.size;
        uint32_t group = (uint32_t)bytes.data[i] << 16;
        if (two)
            group |= (uint32_t)bytes.data[i + 1] << 8;
        *at++ = (uint8_t)alphabet[group >> 18];
        *at++ = (uint8_t)alphabet[group >> 12 & 63];
        *at++ = two ? (uint8_t)alphabet[group >> 6 & 63] : (uint8_t)'=';
        *at++ = (uint8_t)'=';
    }
    out->size += (bytes.size + 2) / 3 * 4;
}

/* 0 to 63, or 64 when this is none of the alphabet. */
static uint32_t digit(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return (uint32_t)(c - 'A');
    if (c >= 'a' && c <= 'z')
        return (uint32_t)(c - 'a') + 26;
    if (c >= '0' && c <= '9')
        return (uint32_t)(c - '0') + 52;
    if (c == '+')
        return 62;
    return c == '/' ? 63 : 64;
}

bool etcd_base64_decode(struct slice text, struct arena *arena, struct slice *ret_bytes)
{
    if (text.size % 4 != 0)
        return false;
    uint8_t *bytes = arena_alloc(arena, text.size / 4 * 3 + 1);
    size_t padding = 0;
    while (padding < 2 && padding < text.size && text.data[text.size - 1 - padding] == '=')
        padding++;
    size_t used = 0;
    for (size_t i = 0; i < text.size; i += 4) {
        uint32_t group = 0;
        for (size_t k = 0; k < 4; k++) {
            bool pad = i + k >= text.size - padding;
            uint32_t d = pad ? 0 : digit(text.data[i + k]);
            if (d == 64)
                return false;
            group = group << 6 | d;
        }
        bytes[used++] = (uint8_t)(group >> 16);
        bytes[used++] = (uint8_t)(group >> 8);
        bytes[used++] = (uint8_t)group;
    }
    *ret_bytes = (struct slice){ bytes, used - padding };
    return true;
}
