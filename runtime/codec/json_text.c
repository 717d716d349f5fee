#include "runtime/codec/json_text.h"

#include <string.h>

#include "runtime/base/hex.h"
#include "runtime/base/utf8.h"
#include "runtime/codec/codec_scope.h"

#define EXPONENT_MAX 100000 /* Larger ones are cut to it: zero or out of range all the same. */

/* ---- strings ---- */

/* Four hex digits; -1 when there are not four. */
static int32_t unit16(const uint8_t *at, const uint8_t *end)
{
    int32_t unit = 0;

    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(at[i]);
        if (digit < 0)
            return -1;
        unit = unit << 4 | digit;
    }
    return unit;
}

/* The character of "\uXXXX" or of a pair of them; `*at` is behind the 'u' and moves past it. NULL,
 * or what is wrong. */
static const char *unescape_unicode(const uint8_t **at, const uint8_t *end, uint32_t *ret_character,
                                    const char **ret_limit)
{
    int32_t unit = unit16(*at, end);

    *ret_limit = "\\uXXXX";
    if (unit < 0)
        return "\\u needs four hex digits";
    *at += 4;
    *ret_limit = CODEC_NUL_LIMIT;
    if (unit == 0)
        return CODEC_NUL_MESSAGE;
    if (unit < 0xD800 || unit > 0xDFFF) {
        *ret_character = (uint32_t)unit;
        return NULL;
    }
    int32_t low = end - *at >= 6 && (*at)[0] == '\\' && (*at)[1] == 'u' ? unit16(*at + 2, end) : -1;
    *ret_limit = "a pair of surrogates";
    if (unit > 0xDBFF || low < 0xDC00 || low > 0xDFFF)
        return "a lone surrogate";
    *at += 6;
    *ret_character = 0x10000u + ((uint32_t)(unit - 0xD800) << 10 | (uint32_t)(low - 0xDC00));
    return NULL;
}

static uint8_t unescape_short(uint8_t c)
{
    switch (c) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    case '"':
    case '\\':
    case '/':
        return c;
    default:
        return 0;
    }
}

static bool fail_at(struct json_flaw *flaw, const char *why, const char *limit, const uint8_t *at)
{
    *flaw = (struct json_flaw){ why, limit, at };
    return false;
}

bool json_text_unescape(struct slice raw, uint8_t *out, size_t *ret_size,
                        struct json_flaw *ret_flaw)
{
    const uint8_t *at = raw.data;
    const uint8_t *end = raw.data + raw.size;
    size_t size = 0;

    while (at < end) {
        if (*at != '\\') {
            out[size++] = *at++;
            continue;
        }
        const uint8_t *from = at;
        uint8_t kind = at[1];
        at += 2;
        if (kind == 'u') {
            uint32_t character = 0;
            const char *limit;
            const char *why = unescape_unicode(&at, end, &character, &limit);
            if (why != NULL)
                return fail_at(ret_flaw, why, limit, from);
            size += utf8_put(out + size, character);
            continue;
        }
        out[size] = unescape_short(kind);
        if (out[size++] == 0)
            return fail_at(ret_flaw, "an unknown escape in a string", "", from);
    }
    *ret_size = size;
    return true;
}

bool json_text_check_escapes(struct slice raw, struct json_flaw *ret_flaw)
{
    const uint8_t *end = raw.data + raw.size;

    for (const uint8_t *at = raw.data; at < end;) {
        if (*at != '\\') {
            at++;
            continue;
        }
        const uint8_t *from = at;
        uint8_t kind = at[1];
        at += 2;
        if (kind == 'u' && unit16(at, end) < 0)
            return fail_at(ret_flaw, "\\u needs four hex digits", "\\uXXXX", from);
        if (kind != 'u' && unescape_short(kind) == 0)
            return fail_at(ret_flaw, "an unknown escape in a string", "", from);
    }
    return true;
}

void json_text_fail_string(const uint8_t *from, const uint8_t *at, const uint8_t *end,
                           struct json_flaw *ret_flaw)
{
    if (at == end)
        (void)fail_at(ret_flaw, "a string without its end", "\"", from);
    else if (*at != '"')
        (void)fail_at(ret_flaw, "a control character in a string", "\\uXXXX", from);
    else
        (void)fail_at(ret_flaw, "a string that is not UTF-8", "UTF-8", from);
}

/* ---- numbers ---- */

static const uint8_t *digits(const uint8_t *at, const uint8_t *end)
{
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return at;
}

const uint8_t *json_number_end(const uint8_t *at, const uint8_t *end)
{
    const uint8_t *from;

    if (at < end && *at == '-')
        at++;
    from = at;
    at = digits(at, end);
    if (at == from || (*from == '0' && at - from > 1))
        return NULL;
    if (at < end && *at == '.') {
        from = at + 1;
        at = digits(from, end);
        if (at == from)
            return NULL;
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < end && (*at == '+' || *at == '-'))
            at++;
        from = at;
        at = digits(from, end);
        if (at == from)
            return NULL;
    }
    return at;
}

/* Significant digits with the zeros at their end left out: value = digits * 10^exponent. */
struct decimal {
    uint64_t digits;
    int64_t exponent;
    int64_t zeros; /* Read, and not yet known to be followed by a digit. */
    bool overflow;
};

static bool scale(uint64_t *value, int64_t exponent)
{
    for (; exponent > 0 && *value != 0; exponent--) {
        if (__builtin_mul_overflow(*value, 10u, value))
            return false;
    }
    return true;
}

static void decimal_add(struct decimal *decimal, uint8_t digit, bool fraction)
{
    decimal->exponent -= fraction;
    decimal->zeros++;
    if (digit == 0)
        return;
    if (!scale(&decimal->digits, decimal->zeros) ||
        __builtin_add_overflow(decimal->digits, digit, &decimal->digits))
        decimal->overflow = true;
    decimal->zeros = 0;
}

static int64_t exponent_parse(const uint8_t *at, const uint8_t *end)
{
    bool negative = *at == '-';
    int64_t value = 0;

    if (*at == '-' || *at == '+')
        at++;
    for (; at < end; at++)
        value = value < EXPONENT_MAX ? value * 10 + (*at - '0') : value;
    return negative ? -value : value;
}

/* The usual number: few enough digits to fit, and nothing else. */
static bool parse_digits(struct slice text, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (text.size == 0 || text.size > 19 || (text.data[0] == '0' && text.size > 1))
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(text.data[i] - '0');
    }
    *ret_value = value;
    return true;
}

enum json_integer_result json_parse_integer(struct slice text, struct json_integer *ret_integer)
{
    const uint8_t *at = text.data;
    const uint8_t *end = text.data + text.size;
    struct decimal decimal = { 0 };
    bool fraction = false;

    if (parse_digits(text, &ret_integer->magnitude)) {
        ret_integer->negative = false;
        return JSON_INTEGER_OK;
    }
    if (text.size == 0 || json_number_end(at, end) != end)
        return JSON_INTEGER_SYNTAX;
    ret_integer->negative = *at == '-';
    at += *at == '-';
    for (; at < end && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.')
            fraction = true;
        else
            decimal_add(&decimal, (uint8_t)(*at - '0'), fraction);
    }
    if (at < end)
        decimal.exponent += exponent_parse(at + 1, end);
    decimal.exponent += decimal.zeros;
    if (decimal.overflow)
        return decimal.exponent < 0 ? JSON_INTEGER_FRACTION : JSON_INTEGER_RANGE;
    if (decimal.digits != 0 && decimal.exponent < 0)
        return JSON_INTEGER_FRACTION;
    if (!scale(&decimal.digits, decimal.exponent))
        return JSON_INTEGER_RANGE;
    ret_integer->magnitude = decimal.digits;
    return JSON_INTEGER_OK;
}
