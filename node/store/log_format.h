/*
 * log_format: the bytes of the node's log. Pure: no files here.
 *
 * A segment is a run of batches from offset 0; a batch is written by one pwrite and is a multiple
 * of 4096 bytes. It consists of 512-byte sectors, the unit that a disk writes whole or not at all:
 *
 *   sector   496 bytes of the batch's stream
 *            u64 sequence       of the batch; rises over all segments, never used twice
 *            u16 number         of this sector in the batch, from 0
 *            u16 count          sectors in the batch, a multiple of 8
 *            u32 checksum       XXH3-64 of the 508 bytes before it, mixed with the replica id
 *   stream   u32 magic, u32 stream bytes, u64 prev_sequence, u64 durable_sequence,
 *            u32 record count, u32 zero;  u16 shard of each record;  the records;  zeros
 *   record   u32 checksum, u32 payload bytes, u8 type, u8 flags, u16 shard, u64 index,
 *            u64 commit_index;  payload
 *
 * Why per sector: after a crash, a batch that did not become durable has sectors that still hold
 * what was there before (zeros, or a lower sequence), while damage leaves sectors that are neither
 * old nor valid. So a torn tail is told from a flipped byte, even in the last batch. For older
 * batches `durable_sequence`, the last one synced when a batch was built, settles it. DESIGN
 * section 4; compare Alagappan et al., "Protocol-Aware Recovery" (FAST 2018).
 */
#ifndef NODE_STORE_LOG_FORMAT_H
#define NODE_STORE_LOG_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/buf.h"

#define SECTOR_BYTES        512u
#define SECTOR_STREAM_BYTES 496u
#define BLOCK_BYTES         4096u
#define BLOCK_SECTORS       (BLOCK_BYTES / SECTOR_BYTES)
#define BATCH_HEADER_BYTES  32u
#define RECORD_HEADER_BYTES 28u
#define RECORD_PAYLOAD_MAX  (1024u * 1024u + 4096u)
#define BATCH_RECORDS_MAX   1024u
#define BATCH_SECTORS_MAX   65528u

/* Explicit values: they are on disk. */
enum record_type {
    RECORD_ENTRY = 1,    /* index, commit_index; payload: the encoded entry.                */
    RECORD_PROMISE = 2,  /* payload: config, epoch, owner; index and commit_index: the shard's
                            last ones, so that they outlive recycled segments.             */
    RECORD_TRUNCATE = 3, /* index: the last entry kept.                                      */
    RECORD_COMMIT = 4    /* commit_index.                                                   */
};

enum record_flag {
    RECORD_DAMAGED = 1, /* PROMISE: the shard lost records.                                   */
    RECORD_RESET = 2,   /* PROMISE: ... and was emptied to be filled again: no more damage.  */
    RECORD_DROPPED = 4, /* PROMISE: rep_image.dropped.                                       */
    RECORD_DIFFERS = 8  /* PROMISE: rep_image.differs.                                       */
};

#define PROMISE_BYTES 24u

struct record {
    enum record_type type;
    uint8_t flags;
    uint32_t shard;
    uint64_t index;
    uint64_t commit_index;
    struct slice payload;
    uint32_t stream_offset; /* Of the record's header in its batch's stream. */
};

struct batch_header {
    uint64_t sequence;
    uint64_t prev_sequence;
    uint64_t durable_sequence;
    uint32_t stream_bytes;
    uint32_t record_count;
};

/* Offset in the batch's bytes of a place in its stream. */
uint32_t stream_to_byte(uint32_t stream_offset);
/* Bytes of a batch with so many records and payload bytes. */
size_t batch_size(uint32_t record_count, size_t payload_bytes);

/* Writes batch_size() bytes to `out` and sets every record's stream_offset. header->stream_bytes
 * and record_count need not be set. Returns the bytes written. */
size_t batch_encode(const struct batch_header *header, struct record *records,
                    uint32_t record_count, uint64_t replica_id, uint8_t *out);

/* What a 512-byte sector says of itself. */
enum sector_state {
    SECTOR_VALID, /* Checksum matches; sequence, number and count are filled. */
    SECTOR_ZERO,  /* All zero: never written.                                 */
    SECTOR_BAD
};
struct sector {
    enum sector_state state;
    uint64_t sequence;
    uint16_t number;
    uint16_t count;
};
struct sector sector_examine(const uint8_t *bytes, uint64_t replica_id);

/* Copies `size` stream bytes that begin at offset `byte_offset` of `bytes` (which starts at a
 * sector's start). The caller has verified the sectors. */
void stream_copy(const uint8_t *bytes, size_t byte_offset, uint8_t *out, size_t size);
/* First byte after `size` stream bytes that begin at `byte_offset`. */
size_t stream_end(size_t byte_offset, size_t size);
/* Whether all sectors of `size` bytes of the stream from `from` on are among the good ones. */
bool stream_ok(const bool *sector_ok, size_t from, size_t size);

/* Reads the header out of a valid sector 0. ERR_CORRUPT: not a batch's beginning. */
NODISCARD err batch_header_decode(const uint8_t *sector_bytes, struct batch_header *ret_header);

/* Reads one record at the start of `bytes` (a plain stream); *ret_size: bytes it takes. Verifies
 * its checksum. ERR_CORRUPT: malformed. */
NODISCARD err record_decode(struct slice bytes, struct record *ret_record, size_t *ret_size);
/* Payload bytes that a record's header announces; ERR_CORRUPT when over the limit. */
NODISCARD err record_payload_size(const uint8_t header[RECORD_HEADER_BYTES], uint32_t *ret_size);

#endif
