/*
 * metadata_row: what the game says of a target of a collection (TABLE_METADATA), in the shard of
 * the entity "target:<id>". Values that are no such row are ERR_CORRUPT.
 */
#ifndef NODE_CORE_FAVORITE_METADATA_ROW_H
#define NODE_CORE_FAVORITE_METADATA_ROW_H

#include "idl/limit.h"
#include "node/core/rows/row_key.h"
#include "runtime/base/hash.h"

#define METADATA_DAMAGE "the row of a target's metadata cannot be read"

struct metadata_row {
    uint64_t version; /* Not 0, and rising along the log. */
    uint64_t changed_at_ms;
    struct slice title, thumbnail_url;
    struct slice attributes; /* A canonical JSON object. */
    struct slice by;         /* The API key that wrote it; empty: none was asked for. */
    struct slice op_id;
    struct hash128 payload; /* Of that operation. */
};

void metadata_row_encode(const struct metadata_row *row, struct buf *out);
/* Slices point into `value`. ERR_CORRUPT. */
NODISCARD err metadata_row_decode(struct slice value, struct metadata_row *ret_row);
/* ERR_CORRUPT; *ret_target points into the key. */
NODISCARD err metadata_key_parse(struct slice key, uint64_t *ret_collection,
                                 struct slice *ret_target);
/* Whether key and value can be read. */
bool metadata_row_is_sound(struct slice key, struct slice value);

#endif
