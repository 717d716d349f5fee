#include "runtime/base/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(struct slice bytes, bool padded, struct buf *out)
{
    if (bytes.size == 0)
        return;
    uint8_t *to = buf_reserve(out, (bytes.size + 2) / 3 * 4);
    uint8_t *from = to;

    for (size_t i = 0; i < bytes.size; i += 3) {
        size_t left = bytes.size - i;
        uint32_t word = (uint32_t)bytes.data[i] << 16;
        if (left > 1)
            word |= (uint32_t)bytes.data[i + 1] << 8;
        if (left > 2)
            word |= bytes.data[i + 2];
        *to++ = (uint8_t)alphabet[word >> 18];
        *to++ = (uint8_t)alphabet[word >> 12 & 63];
        if (left > 1)
            *to++ = (uint8_t)alphabet[word >> 6 & 63];
        else if (padded)
            *to++ = '=';
        if (left > 2)
            *to++ = (uint8_t)alphabet[word & 63];
        else if (padded)
            *to++ = '=';
    }
    out->size += (size_t)(to - from);
}

void base64_encode_url(struct slice bytes, struct buf *out)
{
    size_t begin = out->size;

    base64_encode(bytes, false, out);
    for (size_t i = begin; i < out->size; i++) {
        if (out->data[i] == '+')
            out->data[i] = '-';
        else if (out->data[i] == '/')
            out->data[i] = '_';
    }
}

size_t base64_size_max(size_t size)
{
    return (size + 3) / 4 * 3;
}

static int digit(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+' || c == '-')
        return 62;
    if (c == '/' || c == '_')
        return 63;
    return -1;
}

bool base64_decode(struct slice text, uint8_t *ret_bytes, size_t *ret_size)
{
    size_t size = text.size;
    size_t made = 0;
    uint32_t word = 0;

    if (size % 4 == 0) {
        for (unsigned i = 0; i < 2 && size > 0 && text.data[size - 1] == '='; i++)
            size--;
    }
    if (size % 4 == 1)
        return false;
    for (size_t i = 0; i < size; i++) {
        int value = digit(text.data[i]);
        if (value < 0)
            return false;
        word = word << 6 | (uint32_t)value;
        if (i % 4 != 0)
            ret_bytes[made++] = (uint8_t)(word >> (6 - 2 * (i % 4)));
    }
    *ret_size = made;
    return true;
}

/* Of the last character, those that belong to no whole byte. */
static bool has_spare_bits(struct slice text)
{
    size_t left = text.size % 4;
    unsigned spare = left == 2 ? 15u : 3u;

    return left != 0 && ((unsigned)digit(text.data[text.size - 1]) & spare) != 0;
}

bool base64_decode_url(struct slice text, uint8_t *ret_bytes, size_t *ret_size)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '=' || text.data[i] == '+' || text.data[i] == '/')
            return false;
    }
    return base64_decode(text, ret_bytes, ret_size) && !has_spare_bits(text);
}
