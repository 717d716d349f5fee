/*
 * json_document: whether a text is one JSON value, and where it ends. Reads on a value that the
 * codec does not look into: a section, an item's attributes. Allocates nothing and does not
 * recurse. Private to runtime/codec.
 */
#ifndef RUNTIME_CODEC_JSON_DOCUMENT_H
#define RUNTIME_CODEC_JSON_DOCUMENT_H

#include <stdbool.h>

#include "runtime/base/buf.h"

/* What was wrong, and where in the text. */
struct json_flaw {
    const char *why;
    const char *limit;
    const uint8_t *at;
};

/*
 * Behind the JSON value (RFC 8259) that begins at `at`, or NULL with *ret_flaw: no such value, a
 * string that is not UTF-8, U+0000 or a lone surrogate in a string, nested deeper than
 * CODEC_DOCUMENT_DEPTH_MAX. Members that are there twice are not looked for.
 */
const uint8_t *json_document_end(const uint8_t *at, const uint8_t *end, struct json_flaw *ret_flaw);
/* True: all of `text` is one value, without space around it. */
bool json_document_is_whole(struct slice text);

#endif
