/*
 * orphan_record: one record of the audit file of orphans (log_audit.h): an entry of a deposed owner
 * that was never acknowledged, as TRUNCATE removed it. Read by `holdfast orphans` alone.
 *
 * u32 magic "HFOR", u32 XXH3-64 (low half) of all that follows the checksum, u32 entry bytes, u32
 * shard, u64 index, u64 keep_index of the TRUNCATE, u64 unix_ms of the truncation; then the encoded
 * entry (node/core/entry/entry.h), or none if it could not be read. Little-endian.
 */
#ifndef NODE_STORE_ORPHAN_RECORD_H
#define NODE_STORE_ORPHAN_RECORD_H

#include "node/core/entry/entry.h"

#define ORPHAN_HEADER_BYTES 40u

struct log_orphan {
    uint32_t shard;
    uint64_t index;
    uint64_t keep_index;
    uint64_t unix_ms;
    const struct entry *entry; /* NULL: it could not be read. */
};

/* Appends the record to `out`. */
void orphan_encode(const struct log_orphan *orphan, struct buf *out);
/*
 * The record at the beginning of `bytes`. *ret_size is how long it is; ret_orphan->entry is a
 * reference of the caller's to drop (as a struct entry), or NULL.
 * ERR_NEED      `bytes` ends inside of it: a crash may leave half a record at a file's end
 * ERR_CORRUPT   no record, or its checksum or entry is wrong
 */
NODISCARD err orphan_decode(struct slice bytes, struct log_orphan *ret_orphan, size_t *ret_size);

#endif
