/*
 * json_canon: JSON with one form per value, so that every replica stores the same bytes: members
 * sorted by their bytes, no spaces, integers as int64, other numbers as the shortest text that
 * reads back alike, no duplicate members, no NUL, nesting of at most JSON_DEPTH_MAX. DESIGN
 * section 4 (Determinism). Nothing depends on the order of jansson's tables.
 */
#ifndef NODE_CORE_CODEC_JSON_CANON_H
#define NODE_CORE_CODEC_JSON_CANON_H

#include <jansson.h>

#include "idl/limit.h"
#include "runtime/base/buf.h"

#define JSON_DEPTH_MAX LIMIT_DOCUMENT_DEPTH

/* NULL: not JSON, or not allowed; *ret_why says why (static text). The caller's to json_decref. */
json_t *json_canon_parse(struct slice text, const char **ret_why);
/* Appends. ERR_TOO_LARGE: nested too deep; `out` then holds a part. */
NODISCARD err json_canon_write(const json_t *value, struct buf *out);
/* The same of a value that stands `depth` deep in a document. */
NODISCARD err json_canon_write_at(const json_t *value, uint32_t depth, struct buf *out);
/* Appends `text` as a string, in quotes. */
void json_canon_write_string(struct slice text, struct buf *out);
/* Both: appends the canonical form of `text`. ERR_INVALID: *ret_why says why. */
NODISCARD err json_canon(struct slice text, struct buf *out, const char **ret_why);

#endif
