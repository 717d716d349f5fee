/*
 * chunk_list: the rows of one shard as of one backup: what the shard knows besides rows, then its
 * chunks in the order of their keys, each in the pack of this backup or of an earlier one. All
 * integers little-endian; a file of its own, covered by the manifest's checksum.
 */
#ifndef CLIENT_BACKUP_CHUNK_LIST_H
#define CLIENT_BACKUP_CHUNK_LIST_H

#include "client/backup/manifest.h"

#define CHUNK_META_BYTES_MAX (4u * 1024u * 1024u)
#define CHUNK_RAW_BYTES_MAX  (2u * 1024u * 1024u)
#define CHUNK_LIST_BYTES_MAX (1024u * 1024u * 1024u)
#define CHUNKS_MAX           (16u * 1024u * 1024u)

struct chunk {
    struct hash128 hash;  /* Of its rows, not compressed. */
    uint64_t number;      /* Of the backup that has it. */
    uint64_t offset;      /* In that backup's pack of this shard. */
    uint32_t packed_size; /* One zstd frame. */
    uint32_t raw_size;
};

struct chunk_list {
    struct buf meta;
    struct chunk *chunks;
    uint32_t count, capacity;
};

void chunk_list_deinit(struct chunk_list *list);
void chunk_list_add(struct chunk_list *list, const struct chunk *chunk);
void chunk_list_encode(const struct chunk_list *list, struct buf *out);
/* ERR_CORRUPT: malformed, or a chunk of a backup above `number`. *ret_list is set on ERR_OK. */
NODISCARD err chunk_list_decode(struct slice bytes, uint64_t number, struct chunk_list *ret_list);

#endif
