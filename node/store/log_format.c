#include "node/store/log_format.h"

#include <string.h>

#include "runtime/base/check.h"
#include "runtime/base/hash.h"

#define BATCH_MAGIC         0x42464c48u /* "HLFB" */
#define SECTOR_HASHED_BYTES 508u
#define HASH_MULTIPLIER     0x9e3779b97f4a7c15ull

uint32_t stream_to_byte(uint32_t stream_offset)
{
    return stream_offset / SECTOR_STREAM_BYTES * SECTOR_BYTES + stream_offset % SECTOR_STREAM_BYTES;
}

static uint32_t sectors_for(size_t stream_bytes)
{
    size_t sectors = (stream_bytes + SECTOR_STREAM_BYTES - 1) / SECTOR_STREAM_BYTES;

    sectors = (sectors + BLOCK_SECTORS - 1) / BLOCK_SECTORS * BLOCK_SECTORS;
    CHECK(sectors > 0 && sectors <= BATCH_SECTORS_MAX);
    return (uint32_t)sectors;
}

static size_t stream_size(uint32_t record_count, size_t payload_bytes)
{
    return BATCH_HEADER_BYTES + record_count * (2u + RECORD_HEADER_BYTES) + payload_bytes;
}

size_t batch_size(uint32_t record_count, size_t payload_bytes)
{
    return (size_t)sectors_for(stream_size(record_count, payload_bytes)) * SECTOR_BYTES;
}

/* Writes a stream into sectors, leaving room for what stamps each. */
struct stream_writer {
    uint8_t *out;
    size_t offset; /* In the stream. */
};

static void stream_put(struct stream_writer *writer, const void *data, size_t size)
{
    const uint8_t *from = data;

    while (size > 0) {
        size_t inside = writer->offset % SECTOR_STREAM_BYTES;
        size_t room = SECTOR_STREAM_BYTES - inside;
        size_t part = size < room ? size : room;
        size_t at = writer->offset / SECTOR_STREAM_BYTES * SECTOR_BYTES + inside;

        memcpy(writer->out + at, from, part);
        writer->offset += part;
        from += part;
        size -= part;
    }
}

static uint32_t sector_checksum(const uint8_t *bytes, uint64_t replica_id)
{
    uint64_t hash = hash_u64((struct slice){ bytes, SECTOR_HASHED_BYTES });

    hash = (hash ^ replica_id) * HASH_MULTIPLIER;
    return (uint32_t)(hash >> 32);
}

static void sectors_stamp(uint8_t *out, uint32_t count, uint64_t sequence, uint64_t replica_id)
{
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *sector = out + (size_t)i * SECTOR_BYTES;

        store_u64(sector + SECTOR_STREAM_BYTES, sequence);
        store_u16(sector + SECTOR_STREAM_BYTES + 8, (uint16_t)i);
        store_u16(sector + SECTOR_STREAM_BYTES + 10, (uint16_t)count);
        store_u32(sector + SECTOR_HASHED_BYTES, sector_checksum(sector, replica_id));
    }
}

static uint32_t record_checksum(const uint8_t *header, struct slice payload)
{
    uint64_t a = hash_u64((struct slice){ header + 4, RECORD_HEADER_BYTES - 4 });
    uint64_t b = hash_u64(payload);

    return (uint32_t)(((a * HASH_MULTIPLIER) ^ b) >> 32);
}

static void record_put(struct stream_writer *writer, struct record *record)
{
    uint8_t header[RECORD_HEADER_BYTES];

    CHECK(record->payload.size <= RECORD_PAYLOAD_MAX && record->shard <= UINT16_MAX);
    store_u32(header + 4, (uint32_t)record->payload.size);
    header[8] = (uint8_t)record->type;
    header[9] = record->flags;
    store_u16(header + 10, (uint16_t)record->shard);
    store_u64(header + 12, record->index);
    store_u64(header + 20, record->commit_index);
    store_u32(header, record_checksum(header, record->payload));
    record->stream_offset = (uint32_t)writer->offset;
    stream_put(writer, header, sizeof header);
    stream_put(writer, record->payload.data, record->payload.size);
}

size_t batch_encode(const struct batch_header *header, struct record *records,
                    uint32_t record_count, uint64_t replica_id, uint8_t *out)
{
    struct stream_writer writer = { .out = out };
    uint8_t head[BATCH_HEADER_BYTES] = { 0 };
    size_t payload_bytes = 0;

    CHECK(header->sequence > header->prev_sequence && record_count <= BATCH_RECORDS_MAX);
    for (uint32_t i = 0; i < record_count; i++)
        payload_bytes += records[i].payload.size;
    size_t stream_bytes = stream_size(record_count, payload_bytes);
    uint32_t sectors = sectors_for(stream_bytes);

    store_u32(head, BATCH_MAGIC);
    store_u32(head + 4, (uint32_t)stream_bytes);
    store_u64(head + 8, header->prev_sequence);
    store_u64(head + 16, header->durable_sequence);
    store_u32(head + 24, record_count);
    stream_put(&writer, head, sizeof head);
    for (uint32_t i = 0; i < record_count; i++) {
        uint8_t shard[2];

        store_u16(shard, (uint16_t)records[i].shard);
        stream_put(&writer, shard, sizeof shard);
    }
    for (uint32_t i = 0; i < record_count; i++)
        record_put(&writer, &records[i]);
    CHECK(writer.offset == stream_bytes);

    size_t written = stream_to_byte((uint32_t)stream_bytes);
    memset(out + written, 0, (size_t)sectors * SECTOR_BYTES - written);
    sectors_stamp(out, sectors, header->sequence, replica_id);
    return (size_t)sectors * SECTOR_BYTES;
}

static bool sector_is_zero(const uint8_t *bytes)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, SECTOR_BYTES - 1) == 0;
}

struct sector sector_examine(const uint8_t *bytes, uint64_t replica_id)
{
    struct sector sector = { .state = SECTOR_BAD };

    if (sector_is_zero(bytes)) {
        sector.state = SECTOR_ZERO;
        return sector;
    }
    if (load_u32(bytes + SECTOR_HASHED_BYTES) != sector_checksum(bytes, replica_id))
        return sector;
    sector.sequence = load_u64(bytes + SECTOR_STREAM_BYTES);
    sector.number = load_u16(bytes + SECTOR_STREAM_BYTES + 8);
    sector.count = load_u16(bytes + SECTOR_STREAM_BYTES + 10);
    if (sector.number < sector.count && sector.count % BLOCK_SECTORS == 0 && sector.sequence > 0)
        sector.state = SECTOR_VALID;
    return sector;
}

void stream_copy(const uint8_t *bytes, size_t byte_offset, uint8_t *out, size_t size)
{
    while (size > 0) {
        size_t inside = byte_offset % SECTOR_BYTES;

        CHECK(inside < SECTOR_STREAM_BYTES);
        size_t room = SECTOR_STREAM_BYTES - inside;
        size_t part = size < room ? size : room;

        memcpy(out, bytes + byte_offset, part);
        out += part;
        size -= part;
        byte_offset += part == room ? SECTOR_BYTES - inside : part;
    }
}

bool stream_ok(const bool *sector_ok, size_t from, size_t size)
{
    for (size_t i = from / SECTOR_STREAM_BYTES; i * SECTOR_STREAM_BYTES < from + size; i++) {
        if (!sector_ok[i])
            return false;
    }
    return true;
}

size_t stream_end(size_t byte_offset, size_t size)
{
    size_t stream =
        byte_offset / SECTOR_BYTES * SECTOR_STREAM_BYTES + byte_offset % SECTOR_BYTES + size;

    return size == 0 ? byte_offset : (size_t)stream_to_byte((uint32_t)(stream - 1)) + 1;
}

err batch_header_decode(const uint8_t *sector_bytes, struct batch_header *ret_header)
{
    struct batch_header header = {
        .sequence = load_u64(sector_bytes + SECTOR_STREAM_BYTES),
        .prev_sequence = load_u64(sector_bytes + 8),
        .durable_sequence = load_u64(sector_bytes + 16),
        .stream_bytes = load_u32(sector_bytes + 4),
        .record_count = load_u32(sector_bytes + 24),
    };
    uint32_t count = load_u16(sector_bytes + SECTOR_STREAM_BYTES + 10);

    if (load_u32(sector_bytes) != BATCH_MAGIC || header.record_count > BATCH_RECORDS_MAX)
        return ERR_CORRUPT;
    if (header.stream_bytes > count * SECTOR_STREAM_BYTES ||
        header.stream_bytes < stream_size(header.record_count, 0))
        return ERR_CORRUPT;
    if (header.prev_sequence >= header.sequence || header.durable_sequence >= header.sequence)
        return ERR_CORRUPT;
    *ret_header = header;
    return ERR_OK;
}

err record_payload_size(const uint8_t header[RECORD_HEADER_BYTES], uint32_t *ret_size)
{
    uint32_t size = load_u32(header + 4);

    if (size > RECORD_PAYLOAD_MAX)
        return ERR_CORRUPT;
    *ret_size = size;
    return ERR_OK;
}

static bool record_valid(const struct record *record)
{
    switch (record->type) {
    case RECORD_ENTRY:
        return record->payload.size > 0 && record->index > 0;
    case RECORD_PROMISE:
        return record->payload.size == PROMISE_BYTES;
    case RECORD_TRUNCATE:
    case RECORD_COMMIT:
        return record->payload.size == 0;
    }
    return false;
}

err record_decode(struct slice bytes, struct record *ret_record, size_t *ret_size)
{
    uint32_t payload_bytes;

    if (bytes.size < RECORD_HEADER_BYTES)
        return ERR_CORRUPT;
    if (record_payload_size(bytes.data, &payload_bytes) != ERR_OK ||
        bytes.size - RECORD_HEADER_BYTES < payload_bytes)
        return ERR_CORRUPT;

    const uint8_t *p = bytes.data;
    struct record record = {
        .type = (enum record_type)p[8],
        .flags = p[9],
        .shard = load_u16(p + 10),
        .index = load_u64(p + 12),
        .commit_index = load_u64(p + 20),
        .payload = { p + RECORD_HEADER_BYTES, payload_bytes },
    };

    if (load_u32(p) != record_checksum(p, record.payload) || !record_valid(&record))
        return ERR_CORRUPT;
    *ret_record = record;
    *ret_size = RECORD_HEADER_BYTES + payload_bytes;
    return ERR_OK;
}
