/*
 * backup_rows: the documents of a shard as rows of a backup, and back (docs/backup.md). A row says
 * what stands in a record, under the name of its collection: a restored cluster gives other
 * numbers. It has no dots, contexts or folds, which belong to the processes that made them; so it
 * is the same at all members, and a backup writes only what changed.
 *
 * A restore gives the cells new dots, all of one actor that no process is: the n-th cell of the
 * backup gets the n-th dot. To put a part again, at whichever member, changes nothing. Pure.
 *
 *   key    entity, 0, u64 BE number of the collection, key, 0, u16 BE part of the record
 *   value  u8 size, name of the collection (empty: presence), the record as record.h encodes it
 */
#ifndef NODE_CORE_DOCUMENT_BACKUP_ROWS_H
#define NODE_CORE_DOCUMENT_BACKUP_ROWS_H

#include "node/core/document/call.h"

/* Of one message; a row may have as much more as a cell. A record that passes it by half a MiB has
 * a page for itself, however large that is. */
#define BACKUP_ROWS_BYTES_MAX 524288u

struct backup_page {
    struct buf rows; /* Of each the key and the value, with a u32 length before each. */
    bool last;
    uint32_t left_out; /* Records of a collection that no definition names: etcd lost it. */
};
/* The rows behind the key `after` (empty: from the first), about bytes_max of them. Records of a
 * collection that was deleted are left out, as nothing shows them, and so are those of one that is
 * not defined once all definitions were read. Refused: `after` is no key, or a collection is not
 * known here yet. The caller's buf_deinit. */
NODISCARD err backup_rows_read(struct document_context *context, struct slice after,
                               uint32_t bytes_max, struct backup_page *ret_page);

/* A backup would have a row of it. */
bool backup_rows_any(const struct document_rules *rules, const struct merge_store *store);

struct backup_part {
    uint64_t actor; /* Of the restored cells. */
    uint64_t first; /* Cells of the parts before this one. */
    struct slice rows;
};
/* Takes the rows in and logs them. *ret_next: cells up to the end of the part. Refused: rows are
 * malformed; a collection is not defined, or has another policy; this member lacks cells of an
 * earlier part, or cannot take in more. The rows before the refused one may be taken in. */
NODISCARD err backup_rows_put(struct document_context *context, const struct backup_part *part,
                              uint64_t *ret_next);

/* The first `cells` of that actor are on the disks of a majority of the members, of both in a joint
 * configuration. */
bool backup_cells_are_whole(const struct merge_replica *replica, uint64_t actor, uint64_t cells);

#endif
