#include "node/store/orphan_record.h"

#include "runtime/base/check.h"
#include "runtime/base/hash.h"

#define ORPHAN_MAGIC    0x524f4648u /* "HFOR" */
#define CHECKED_FROM    8u          /* What the checksum is of. */
#define ENTRY_BYTES_MAX (ENTRY_BODY_BYTES_MAX + 1024u)

static uint32_t checksum(struct slice record)
{
    return (uint32_t)hash_u64(
        (struct slice){ record.data + CHECKED_FROM, record.size - CHECKED_FROM });
}

void orphan_encode(const struct log_orphan *orphan, struct buf *out)
{
    size_t from = out->size;
    struct slice encoded = { 0 };

    if (orphan->entry != NULL)
        encoded = orphan->entry->encoded;
    buf_put_u32(out, ORPHAN_MAGIC);
    buf_put_u32(out, 0);
    buf_put_u32(out, (uint32_t)encoded.size);
    buf_put_u32(out, orphan->shard);
    buf_put_u64(out, orphan->index);
    buf_put_u64(out, orphan->keep_index);
    buf_put_u64(out, orphan->unix_ms);
    CHECK(out->size - from == ORPHAN_HEADER_BYTES);
    if (encoded.size > 0)
        buf_append(out, encoded.data, encoded.size);
    store_u32(out->data + from + 4, checksum((struct slice){ out->data + from, out->size - from }));
}

err orphan_decode(struct slice bytes, struct log_orphan *ret_orphan, size_t *ret_size)
{
    struct entry *entry = NULL;

    if (bytes.size < ORPHAN_HEADER_BYTES)
        return ERR_NEED;
    uint32_t entry_bytes = load_u32(bytes.data + 8);
    if (load_u32(bytes.data) != ORPHAN_MAGIC || entry_bytes > ENTRY_BYTES_MAX)
        return ERR_CORRUPT;
    size_t size = ORPHAN_HEADER_BYTES + entry_bytes;
    if (bytes.size < size)
        return ERR_NEED;
    if (load_u32(bytes.data + 4) != checksum((struct slice){ bytes.data, size }))
        return ERR_CORRUPT;
    if (entry_bytes > 0 &&
        entry_decode((struct slice){ bytes.data + ORPHAN_HEADER_BYTES, entry_bytes }, &entry) !=
            ERR_OK)
        return ERR_CORRUPT;
    *ret_orphan = (struct log_orphan){ .shard = load_u32(bytes.data + 12),
                                       .index = load_u64(bytes.data + 16),
                                       .keep_index = load_u64(bytes.data + 24),
                                       .unix_ms = load_u64(bytes.data + 32),
                                       .entry = entry };
    *ret_size = size;
    return ERR_OK;
}
