/*
 * json_document: whether a text is one JSON value, and where it ends. Reads on a value that the
 * codec does not look into: a section, an item's attributes. Allocates nothing and does not
 * recurse. Private to runtime/codec.
 */
#ifndef RUNTIME_CODEC_JSON_DOCUMENT_H
#define RUNTIME_CODEC_JSON_DOCUMENT_H

#include "runtime/codec/json_text.h"

/*
 * Behind the JSON value (RFC 8259) that begins at `at`, or NULL with *ret_flaw: no such value, a
 * string that is not UTF-8, nested deeper than CODEC_DOCUMENT_DEPTH_MAX. What the value may say is
 * not looked at: members that are there twice, escapes of U+0000 or of lone surrogates, and how
 * deep it may nest are judged where the document is stored, with one answer for every form.
 */
const uint8_t *json_document_end(const uint8_t *at, const uint8_t *end, struct json_flaw *ret_flaw);
/* True: all of `text` is one value, without space around it. */
bool json_document_is_whole(struct slice text);

#endif
