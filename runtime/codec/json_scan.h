/*
 * json_scan: the lexical half of json_decode: a cursor over the text, strings and numbers. RFC
 * 8259. Private to runtime/codec.
 */
#ifndef RUNTIME_CODEC_JSON_SCAN_H
#define RUNTIME_CODEC_JSON_SCAN_H

#include "runtime/codec/json_path.h"
#include "runtime/codec/json_text.h"
#include "runtime/codec/json_type.h"

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

/* The byte at the cursor, 0 at the end. (A NUL byte is never part of correct JSON.) */
static inline uint8_t json_peek(const struct json_in *in)
{
    return in->at < in->end ? *in->at : 0;
}

/* Takes `word` if it stands at the cursor and ends there. */
bool json_take_word(struct json_in *in, const char *word);
/* A string at the cursor. The result lies in the input or, if it had escapes, in the arena; it is
 * UTF-8 without U+0000. Untouched on error. */
NODISCARD err json_scan_string(struct json_in *in, struct slice *ret_text);
/* A number at the cursor, as text; its grammar is checked. */
NODISCARD err json_scan_number(struct json_in *in, struct slice *ret_text);

#endif
