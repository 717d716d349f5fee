#include "runtime/base/hex.h"

void hex_print(const uint8_t *bytes, size_t count, char *ret_text)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < count; i++) {
        ret_text[2 * i] = digits[bytes[i] >> 4];
        ret_text[2 * i + 1] = digits[bytes[i] & 15];
    }
    ret_text[2 * count] = 0;
}

int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int digit_value(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

err hex_parse(struct slice text, size_t count, uint8_t *ret_bytes)
{
    if (text.size != 2 * count)
        return ERR_INVALID;
    for (size_t i = 0; i < text.size; i++) {
        if (digit_value(text.data[i]) < 0)
            return ERR_INVALID;
    }
    for (size_t i = 0; i < count; i++)
        ret_bytes[i] =
            (uint8_t)(digit_value(text.data[2 * i]) << 4 | digit_value(text.data[2 * i + 1]));
    return ERR_OK;
}
