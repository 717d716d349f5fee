#include "runtime/codec/json_number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_TEXT_MAX 64u          /* Longest floating-point number taken. */
#define EXACT_MAX       (1ull << 53) /* Every client reads a number up to this as it was written. */

/* A string or a number; both hold a number's text. */
static err scan_number_text(struct json_in *in, struct slice *ret_text)
{
    if (json_peek(in) == '"')
        return json_scan_string(in, ret_text);
    return json_scan_number(in, ret_text);
}

static err decode_integer(struct json_in *in, struct json_integer *ret_integer)
{
    const uint8_t *from = in->at;
    struct slice text;
    err e = scan_number_text(in, &text);

    if (e != ERR_OK)
        return e;
    switch (json_parse_integer(text, ret_integer)) {
    case JSON_INTEGER_OK:
        return ERR_OK;
    case JSON_INTEGER_SYNTAX:
        return json_fail(in, "not a number", "an integer", from);
    case JSON_INTEGER_FRACTION:
        return json_fail(in, "not a whole number", "an integer", from);
    case JSON_INTEGER_RANGE:
        break;
    }
    return json_fail(in, "a number out of range", "64 bits", from);
}

/* Plain JSON: a number that other programs may have rounded on its way here. */
static bool is_rounded(const struct json_in *in, const uint8_t *from, uint64_t magnitude)
{
    return in->scope->form == JSON_PLAIN && magnitude > EXACT_MAX && *from != '"';
}

static err fail_rounded(struct json_in *in, const uint8_t *from)
{
    return json_fail(in, "a number beyond 2^53 may have been rounded on its way: put it in quotes",
                     "-9007199254740992 to 9007199254740992", from);
}

err json_decode_signed(struct json_in *in, int64_t min, int64_t max, int64_t *ret_value)
{
    const uint8_t *from = in->at;
    struct json_integer integer;
    err e = decode_integer(in, &integer);

    if (e != ERR_OK)
        return e;
    uint64_t magnitude_max = integer.negative ? (uint64_t)max + 1 : (uint64_t)max;
    if (integer.magnitude > magnitude_max)
        return json_fail(in, "a number out of range",
                         min == INT32_MIN ? "-2147483648 to 2147483647"
                                          : "-9223372036854775808 to 9223372036854775807",
                         from);
    if (is_rounded(in, from, integer.magnitude))
        return fail_rounded(in, from);
    *ret_value = integer.negative ? (int64_t)(0 - integer.magnitude) : (int64_t)integer.magnitude;
    return ERR_OK;
}

err json_decode_unsigned(struct json_in *in, uint64_t max, uint64_t *ret_value)
{
    const uint8_t *from = in->at;
    struct json_integer integer;
    err e = decode_integer(in, &integer);

    if (e != ERR_OK)
        return e;
    if (integer.magnitude > max || (integer.negative && integer.magnitude != 0))
        return json_fail(in, "a number out of range",
                         max == UINT32_MAX ? "0 to 4294967295" : "0 to 18446744073709551615", from);
    if (is_rounded(in, from, integer.magnitude))
        return fail_rounded(in, from);
    *ret_value = integer.magnitude;
    return ERR_OK;
}

err json_decode_floating(struct json_in *in, double max, double *ret_value)
{
    const uint8_t *from = in->at;
    char number[NUMBER_TEXT_MAX + 1];
    bool quoted = json_peek(in) == '"';
    struct slice text;
    struct json_integer unused;
    err e = scan_number_text(in, &text);

    if (e != ERR_OK)
        return e;
    if (quoted && slice_equal(text, SLICE_LITERAL("NaN")))
        return *ret_value = (double)NAN, ERR_OK;
    if (quoted && slice_equal(text, SLICE_LITERAL("Infinity")))
        return *ret_value = (double)INFINITY, ERR_OK;
    if (quoted && slice_equal(text, SLICE_LITERAL("-Infinity")))
        return *ret_value = -(double)INFINITY, ERR_OK;
    if (text.size > NUMBER_TEXT_MAX)
        return json_fail(in, "a number with too many digits", "64 characters", from);
    if (json_parse_integer(text, &unused) == JSON_INTEGER_SYNTAX)
        return json_fail(in, "not a number", "a number", from);
    memcpy(number, text.data, text.size);
    number[text.size] = 0;
    *ret_value = strtod(number, NULL);
    if (*ret_value > max || *ret_value < -max)
        return json_fail(in, "a number out of range", max < 1e39 ? "a float" : "a double", from);
    return ERR_OK;
}
