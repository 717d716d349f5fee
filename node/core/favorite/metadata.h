/*
 * metadata: what the game says of targets: titles, thumbnails and the like, which lists of
 * favourites show (docs/favorites.md#metadata). One row a target and collection, in the shard of
 * the entity "target:<id>". A change names the version that it follows, if it must; versions never
 * come again, so a late request for one that is gone changes nothing.
 */
#ifndef NODE_CORE_FAVORITE_METADATA_H
#define NODE_CORE_FAVORITE_METADATA_H

#include "holdfast/v1/favorites.pb-c.h"
#include "node/core/definition/collection.h"
#include "node/core/favorite/metadata_row.h"

/* Since when shards keep it. */
#define METADATA_APPLY_VERSION 10u

/* What is said of a target, as its row has it. */
struct metadata {
    uint64_t collection; /* The definition's number. */
    struct slice target;
    bool exists;
    struct metadata_row row;
};

/* ---- before the log: ERR_INVALID, `context->refusal` names the field ---- */

/* That the shard keeps metadata, and is the one of that target; and that the collection could be
 * one. */
NODISCARD err metadata_check(struct check_context *context, const char *collection,
                             const char *target);
/* Title, thumbnail and attributes, which become canonical; and the op_id. */
NODISCARD err metadata_check_put(struct check_context *context,
                                 Holdfast__V1__PutTargetMetadataRequest *request);

/* ---- applied ---- */

/* The row as it stands. ERR_NEED. ERR_CONFLICT, NOT_FOUND: there is no such collection; or
 * QUARANTINED: the row cannot be read. No entry of a log meets a CHECK: bad targets are refused
 * once more. */
NODISCARD err metadata_find_applied(struct apply_context *context, const char *collection,
                                    const char *target, struct metadata *ret_metadata);
/* ERR_CONFLICT, VERSION_CONFLICT: another one stands. `expected` NULL: any may. */
NODISCARD err metadata_check_version(struct apply_context *context, const struct metadata *metadata,
                                     const uint64_t *expected);
/* Whether this operation wrote what stands. ERR_CONFLICT, OPERATION_ID_MISMATCH: another request
 * did, under its op_id. */
NODISCARD err metadata_repeats(struct apply_context *context, const struct metadata *metadata,
                               const char *op_id, bool *ret_repeats);
/* Writes the row of what the request says, under a version of its own. */
NODISCARD err metadata_store(struct apply_context *context,
                             const Holdfast__V1__PutTargetMetadataRequest *request,
                             struct metadata *metadata);
void metadata_remove(struct apply_context *context, const struct metadata *metadata);

/* ---- told ---- */

/* ERR_NEED. ERR_CORRUPT: the row cannot be read. Texts are in the arena. */
NODISCARD err metadata_find(struct state *state, struct arena *arena, struct need *need,
                            struct metadata *metadata);
/* As the API has it, in the arena. */
Holdfast__V1__TargetMetadata *metadata_tell(struct arena *arena, const struct metadata *metadata);

#endif
