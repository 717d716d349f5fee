/*
 * json_edit: RFC 7396 merges and typed steps on parsed documents. Deterministic; changes values
 * in place. What a request says is checked before the log, what stands in the document at apply.
 */
#ifndef NODE_CORE_CODEC_JSON_EDIT_H
#define NODE_CORE_CODEC_JSON_EDIT_H

#include <jansson.h>

#include "holdfast/v1/profile.pb-c.h"
#include "idl/limit.h"
#include "runtime/base/arena.h"

#define PATCH_STEPS_MAX      LIMIT_PATCH_STEPS
#define PATCH_PATH_BYTES_MAX LIMIT_PATCH_PATH_BYTES

/* Takes over `target` (NULL: absent) and returns what it became. */
json_t *json_merge(json_t *target, const json_t *patch);

/* ERR_INVALID: not a JSON Pointer (RFC 6901) of at most PATCH_PATH_BYTES_MAX bytes and
 * JSON_DEPTH_MAX parts. */
NODISCARD err json_pointer_check(struct slice path);

/* *document may be replaced (a SET at ""). `value` is borrowed; NULL for REMOVE, nested at
 * most JSON_DEPTH_MAX deep.
 * ERR_INVALID: it is no step, or does not fit what stands there; *ret_why says what was expected.
 * ERR_FULL: an integer would overflow. */
NODISCARD err json_patch_step(json_t **document, Holdfast__V1__PatchKind kind, struct slice path,
                              json_t *value, const char **ret_why);

#endif
