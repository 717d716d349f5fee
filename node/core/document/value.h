/*
 * value: JSON documents as cells of a record, and records as documents. Paths of `merge` are JSON
 * Pointers without their first slash, names escaped alike; the elements of a set and the names of
 * counters are paths as they are.
 */
#ifndef NODE_CORE_DOCUMENT_VALUE_H
#define NODE_CORE_DOCUMENT_VALUE_H

#include <jansson.h>

#include "holdfast/v1/document.pb-c.h"
#include "node/core/mergeable/policy.h"
#include "runtime/base/arena.h"

/* Edits being made up, in an arena. */
struct value_edits {
    struct arena *arena;
    uint64_t expires_ms; /* Of what is written; 0: never. */
    uint32_t count;
    struct merge_edit list[MERGE_EDITS_MAX];
    const char *why;    /* What is wrong, if something is: what was expected. Static. */
    struct slice given; /* What stands there instead; empty: not told. Borrowed. */
};

/* The whole value at the empty path. ERR_INVALID: `why`. */
NODISCARD err value_whole(struct value_edits *edits, const json_t *value);
/* Each leaf of an object by itself; `path` empty: from the top. With `patch` (RFC 7396) null
 * removes and an empty object says nothing; else both are leaves. ERR_INVALID: `why`. Recurses as
 * deep as the value nests, which json_canon bounds. */
NODISCARD err value_leaves(struct value_edits *edits, struct slice path, const json_t *value,
                           bool patch);
/* One more edit; its slices are the arena's. ERR_INVALID: there are MERGE_EDITS_MAX, or `path` has
 * a form or a size that no path has. */
NODISCARD err value_add(struct value_edits *edits, const struct merge_edit *edit);

/* The record's JSON at `now_ms`; NULL: nothing is there. The caller's to json_decref. */
json_t *value_json(const struct merge_record *record, uint64_t now_ms);
/* The same with all that a caller is told; in the arena, but for its names. `some`: the record has
 * some of the siblings that there are (shown.h). */
Holdfast__V1__Document *value_document(const struct merge_record *record, bool some,
                                       uint64_t now_ms, struct arena *arena);

#endif
