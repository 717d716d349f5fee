#include "runtime/codec/json_scan.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/nearest.h"
#include "runtime/base/utf8.h"

#define EXPONENT_MAX 100000 /* Larger ones are cut to it: zero or out of range all the same. */

static void path_print(const struct json_path *path, struct codec_error *error)
{
    const struct json_path *steps[2 * CODEC_DEPTH_MAX + 4];
    size_t count = 0;
    size_t used = 0;

    for (; path != NULL && count < 2 * CODEC_DEPTH_MAX + 4; path = path->up)
        steps[count++] = path;
    while (count > 0 && used < sizeof error->field - 1) {
        const struct json_path *step = steps[--count];
        char name[NEAREST_SHOWN_BYTES];
        nearest_show(step->field != NULL ? slice_from_text(step->field) : step->name, name);
        size_t room = sizeof error->field - used;
        int length = step->is_element
                         ? snprintf(error->field + used, room, "[%zu]", step->index)
                         : snprintf(error->field + used, room, "%s%s", used > 0 ? "." : "", name);
        used += (size_t)length;
    }
}

/* How many bytes the one value has that begins at `from`: what stands behind it may be a secret,
 * and is not shown. Of an object or an array only what opens it. */
static size_t value_size(const uint8_t *from, const uint8_t *end)
{
    const uint8_t *at = from + 1;
    bool is_text = *from == '"';

    if (*from == '{' || *from == '[')
        return 1;
    while (at < end && (is_text ? *at != '"' : strchr(",:]}\" \t\r\n", *at) == NULL))
        at += is_text && *at == '\\' && at + 1 < end ? 2 : 1;
    return (size_t)(at - from) + (is_text && at < end);
}

err json_fail(struct json_in *in, const char *message, const char *limit, const uint8_t *from)
{
    struct codec_error *error = &in->scope->error;

    *error = (struct codec_error){ 0 };
    path_print(in->path, error);
    snprintf(error->message, sizeof error->message, "%s", message);
    snprintf(error->limit, sizeof error->limit, "%s", limit);
    if (from != NULL && from < in->end)
        nearest_show((struct slice){ from, value_size(from, in->end) }, error->value);
    return ERR_INVALID;
}

err json_fail_large(struct json_in *in, const char *message, size_t limit)
{
    char text[32];

    snprintf(text, sizeof text, "%zu", limit);
    (void)json_fail(in, message, text, NULL);
    return ERR_TOO_LARGE;
}

void *json_alloc(struct json_in *in, size_t size_bytes)
{
    if (size_bytes > in->memory_left) {
        (void)json_fail_large(in, "the message needs too much memory", in->memory_max);
        return NULL;
    }
    in->memory_left -= size_bytes;
    return arena_alloc(in->scope->arena, size_bytes);
}

bool json_take_word(struct json_in *in, const char *word)
{
    size_t size = strlen(word);

    if ((size_t)(in->end - in->at) < size || memcmp(in->at, word, size) != 0)
        return false;
    if (in->at + size < in->end && json_is_word_byte(in->at[size]))
        return false;
    in->at += size;
    return true;
}

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

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
    *ret_limit = "";
    if (unit == 0)
        return "a string may not hold U+0000";
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

static err unescape(struct json_in *in, struct slice raw, struct slice *ret_text)
{
    const uint8_t *at = raw.data;
    const uint8_t *end = raw.data + raw.size;
    uint8_t *text = json_alloc(in, raw.size);
    size_t size = 0;

    if (text == NULL)
        return ERR_TOO_LARGE;
    while (at < end) {
        if (*at != '\\') {
            text[size++] = *at++;
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
                return json_fail(in, why, limit, from);
            size += utf8_put(text + size, character);
            continue;
        }
        text[size] = unescape_short(kind);
        if (text[size++] == 0)
            return json_fail(in, "an unknown escape in a string", "", from);
    }
    *ret_text = (struct slice){ text, size };
    return ERR_OK;
}

/* What is in a string besides plain ASCII. */
struct string_shape {
    bool escaped; /* Escapes, which were not looked at. */
    bool wide;    /* Bytes of longer characters.        */
};

/* The quote that ends the string whose text begins at `at`; or the byte that may not stand in it;
 * or the end. */
static inline const uint8_t *string_end(const uint8_t *at, const uint8_t *end,
                                        struct string_shape *ret_shape)
{
    *ret_shape = (struct string_shape){ 0 };
    for (;;) {
        at = json_skip_plain(at, end);
        if (at == end || *at == '"')
            return at;
        if (*at == '\\' && end - at >= 2) {
            ret_shape->escaped = true;
            at += 2;
            continue;
        }
        if (*at < 0x80)
            return at;
        ret_shape->wide = true;
        at++;
    }
}

/* Why string_end() found no quote. */
static const char *string_flaw(const struct json_in *in, const uint8_t *at, const char **ret_limit)
{
    *ret_limit = at == in->end ? "\"" : "\\uXXXX";
    return at == in->end ? "a string without its end" : "a control character in a string";
}

err json_scan_string(struct json_in *in, struct slice *ret_text)
{
    const uint8_t *from = in->at + 1;
    struct string_shape shape;
    const uint8_t *at = string_end(from, in->end, &shape);

    if (at == in->end || *at != '"') {
        const char *limit;
        const char *why = string_flaw(in, at, &limit);
        return json_fail(in, why, limit, from - 1);
    }
    struct slice raw = { from, (size_t)(at - from) };
    in->at = at + 1;
    if (shape.wide && !utf8_valid(raw))
        return json_fail(in, "a string that is not UTF-8", "UTF-8", from - 1);
    if (shape.escaped)
        return unescape(in, raw, ret_text);
    *ret_text = raw;
    return ERR_OK;
}

const char *json_check_string(struct json_in *in, const char **ret_limit, const uint8_t **ret_at)
{
    const uint8_t *from = in->at + 1;
    struct string_shape shape;
    const uint8_t *end = string_end(from, in->end, &shape);

    *ret_at = in->at;
    if (end == in->end || *end != '"')
        return string_flaw(in, end, ret_limit);
    in->at = end + 1;
    *ret_limit = "UTF-8";
    if (shape.wide && !utf8_valid((struct slice){ from, (size_t)(end - from) }))
        return "a string that is not UTF-8";
    for (const uint8_t *at = from; shape.escaped && at < end;) {
        const char *why = NULL;
        uint32_t character;
        if (*at != '\\') {
            at++;
            continue;
        }
        *ret_at = at;
        uint8_t kind = at[1];
        at += 2;
        if (kind == 'u')
            why = unescape_unicode(&at, end, &character, ret_limit);
        else if (unescape_short(kind) == 0) {
            *ret_limit = "";
            why = "an unknown escape in a string";
        }
        if (why != NULL)
            return why;
    }
    return NULL;
}

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

err json_scan_number(struct json_in *in, struct slice *ret_text)
{
    const uint8_t *end = json_number_end(in->at, in->end);

    if (end == NULL || (end < in->end && json_is_word_byte(*end)))
        return json_fail(in, "not a number", "a number", in->at);
    *ret_text = (struct slice){ in->at, (size_t)(end - in->at) };
    in->at = end;
    return ERR_OK;
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
