/*
 * json_text: strings and numbers of JSON as text, without a cursor, a path or memory of its own.
 * RFC 8259. Private to runtime/codec.
 */
#ifndef RUNTIME_CODEC_JSON_TEXT_H
#define RUNTIME_CODEC_JSON_TEXT_H

#include <stdbool.h>
#include <string.h>

#include "runtime/base/buf.h"
#include "runtime/base/utf8.h"

/* What was wrong, what was expected, and where in the text. */
struct json_flaw {
    const char *why;
    const char *limit;
    const uint8_t *at;
};

struct json_string {
    struct slice raw; /* Between the quotes; UTF-8. */
    bool escaped;     /* It has escapes, which were not looked at. */
};

/* Stands in a JSON string as it is, and is a character of its own. */
static inline bool json_is_plain(uint8_t c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* Past the plain characters at `at`. Eight at a time: a byte below 0x20 or, after the exclusive or,
 * of 0 borrows from its highest bit. A byte above such a one may borrow too, and is looked at
 * alone. */
static inline const uint8_t *json_skip_plain(const uint8_t *at, const uint8_t *end)
{
    const uint64_t ones = 0x0101010101010101u;

    for (; end - at >= 8; at += 8) {
        uint64_t bytes;
        memcpy(&bytes, at, sizeof bytes);
        uint64_t found = bytes | (bytes - ones * 0x20) | ((bytes ^ ones * '"') - ones) |
                         ((bytes ^ ones * '\\') - ones);
        if ((found & ones * 0x80) != 0)
            break;
    }
    while (at < end && json_is_plain(*at))
        at++;
    return at;
}

/* Why json_text_string() took no string: it begins at `from`, and was read until `at`. */
void json_text_fail_string(const uint8_t *from, const uint8_t *at, const uint8_t *end,
                           struct json_flaw *ret_flaw);

/* A string that begins at *at, which moves past it. False: *ret_flaw says why. In line, since most
 * of a message is strings. */
static inline bool json_text_string(const uint8_t **at, const uint8_t *end,
                                    struct json_string *ret_string, struct json_flaw *ret_flaw)
{
    const uint8_t *from = *at + 1;
    const uint8_t *stop = from;
    bool escaped = false, wide = false;

    for (;;) {
        stop = json_skip_plain(stop, end);
        if (stop == end || *stop == '"')
            break;
        if (*stop == '\\' && end - stop >= 2) {
            escaped = true;
            stop += 2;
            continue;
        }
        if (*stop < 0x80)
            break;
        wide = true;
        stop++;
    }
    struct slice raw = { from, (size_t)(stop - from) };
    if (stop == end || *stop != '"' || (wide && !utf8_valid(raw))) {
        json_text_fail_string(*at, stop, end, ret_flaw);
        return false;
    }
    *ret_string = (struct json_string){ raw, escaped };
    *at = stop + 1;
    return true;
}

/* What the string says, into `out`, which has room for as much as `raw` has. False: an escape that
 * there is not, U+0000 or a lone surrogate. */
bool json_text_unescape(struct slice raw, uint8_t *out, size_t *ret_size,
                        struct json_flaw *ret_flaw);
/* Only whether its escapes are well-formed, not which characters they make. */
bool json_text_check_escapes(struct slice raw, struct json_flaw *ret_flaw);

/* The end of the JSON number that begins at `at`; NULL when none does. RFC 8259 section 6. */
const uint8_t *json_number_end(const uint8_t *at, const uint8_t *end);
/* A letter or a digit: a number or a word does not end in front of it. */
static inline bool json_is_word_byte(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

struct json_integer {
    uint64_t magnitude;
    bool negative;
};

enum json_integer_result {
    JSON_INTEGER_OK,
    JSON_INTEGER_SYNTAX,
    JSON_INTEGER_FRACTION,
    JSON_INTEGER_RANGE
};

/* Exact: 1e3, 1.0 and 100e-2 are integers, 0.5 and 2^64 are not. The whole text must be one JSON
 * number. */
enum json_integer_result json_parse_integer(struct slice text, struct json_integer *ret_integer);

#endif
