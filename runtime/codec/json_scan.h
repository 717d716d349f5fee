/*
 * json_scan: the lexical half of json_decode: a cursor over the text, strings, numbers, and the
 * path that an error names. RFC 8259. Private to runtime/codec.
 */
#ifndef RUNTIME_CODEC_JSON_SCAN_H
#define RUNTIME_CODEC_JSON_SCAN_H

#include <string.h>

#include "runtime/codec/json_type.h"

/* Where the decoder is, innermost first; lives on its stack. */
struct json_path {
    const struct json_path *up;
    struct slice name; /* As the request spells it. */
    const char *field; /* The schema's name of it, which errors tell; NULL: `name` is no field's. */
    bool is_element;
    size_t index; /* Of the element, when is_element. */
};

struct json_in {
    const uint8_t *at;
    const uint8_t *end;
    struct json_codec *codec;
    struct codec_scope *scope;
    const struct json_path *path;
    size_t memory_max;
    size_t memory_left;
    unsigned depth;
};

/* Fills scope->error with the path and returns ERR_INVALID. `limit` is what was expected. The value
 * shown is the text from `from` on. */
err json_fail(struct json_in *in, const char *message, const char *limit, const uint8_t *from);
/* The same, ERR_TOO_LARGE. */
err json_fail_large(struct json_in *in, const char *message, size_t limit);

/* From the scope's arena, within its limit; NULL past it, with scope->error filled. */
void *json_alloc(struct json_in *in, size_t size_bytes);

static inline void json_skip_space(struct json_in *in)
{
    while (in->at < in->end &&
           (*in->at == ' ' || *in->at == '\n' || *in->at == '\r' || *in->at == '\t'))
        in->at++;
}

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

/* The byte at the cursor, 0 at the end. (A NUL byte is never part of correct JSON.) */
static inline uint8_t json_peek(const struct json_in *in)
{
    return in->at < in->end ? *in->at : 0;
}

/* Takes `word` if it stands at the cursor and ends there. */
bool json_take_word(struct json_in *in, const char *word);
/* A string at the cursor. The result lies in the input or, if it had escapes, in the arena; it is
 * UTF-8 without U+0000. */
NODISCARD err json_scan_string(struct json_in *in, struct slice *ret_text);
/* Moves past a string at the cursor. NULL, or what is wrong with it, what was expected, and where.
 */
const char *json_check_string(struct json_in *in, const char **ret_limit, const uint8_t **ret_at);
/* A number at the cursor, as text; its grammar is checked. */
NODISCARD err json_scan_number(struct json_in *in, struct slice *ret_text);

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
