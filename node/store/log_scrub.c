/*
 * The scrub of sealed segments: batch by batch, the checks of the scan at start (log_scan.c), but
 * of a log in use. What the scan has to find out is known here: all of a sealed segment was synced
 * before the next one was begun, so a batch that is not whole in it is damage, never torn.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/store/node_log_private.h"
#include "runtime/base/check.h"

#define SPOILT_BYTE 0xa5

/* Part of one segment. */
struct part {
    struct node_log *log;
    struct log_segment *segment;
    uint32_t number; /* Of the segment when it was acquired. */
    uint32_t from;   /* In the segment: where `bytes` begin. */
    uint32_t size;
    uint8_t *bytes;
    bool found;     /* Damage that was not known, */
    uint32_t shard; /* of this shard. */
};

/* A batch, or what is left of it. */
struct batch {
    const uint8_t *bytes;
    uint32_t offset; /* In the segment. */
    uint32_t sectors;
    uint64_t sequence; /* 0: no sector of its first block is one of a later batch. */
    bool *sector_ok;
    uint8_t *stream;
    struct batch_header header;
};

/* ---- damage ------------------------------------------------------------------------------- */

static void damage_one(struct part *part, uint32_t shard, uint32_t offset, const char *what)
{
    struct log_place place = { .segment = part->number, .offset = offset };
    char text[NODE_LOG_TEXT_BYTES];

    if (!log_shard_is_hit(part->log, shard, place))
        return;
    snprintf(text, sizeof text, "%s/%010u.seg: offset %u: %s", part->log->config.directory,
             part->number, offset, what);
    log_shard_damage(part->log, shard, text);
    part->shard = shard;
    part->found = true;
}

static void damage_all(struct part *part, uint32_t offset, const char *what)
{
    for (uint32_t shard = 0; shard < part->log->config.shard_count; shard++)
        damage_one(part, shard, offset, what);
}

/* ---- batches ------------------------------------------------------------------------------ */

static uint32_t table_shard(const struct batch *batch, uint32_t ordinal)
{
    struct reader reader =
        reader_from((struct slice){ batch->stream + BATCH_HEADER_BYTES + 2u * (size_t)ordinal, 2 });

    return read_u16(&reader);
}

static void damage_record(struct part *part, const struct batch *batch, uint32_t ordinal,
                          uint32_t offset, const char *what)
{
    uint32_t shard = table_shard(batch, ordinal);

    if (shard < part->log->config.shard_count)
        damage_one(part, shard, offset, what);
    else
        damage_all(part, offset, "a record of a shard that does not exist");
}

/* One record at *at; false when where the next one begins is not known. */
static bool check_record(struct part *part, const struct batch *batch, size_t *at, uint32_t ordinal)
{
    struct slice left = { batch->stream + *at, batch->header.stream_bytes - *at };
    struct record record;
    uint32_t payload_bytes;
    size_t size;

    if (left.size < RECORD_HEADER_BYTES || !stream_ok(batch->sector_ok, *at, RECORD_HEADER_BYTES))
        return false;
    if (record_payload_size(left.data, &payload_bytes) != ERR_OK ||
        payload_bytes > left.size - RECORD_HEADER_BYTES)
        return false;
    if (!stream_ok(batch->sector_ok, *at, RECORD_HEADER_BYTES + payload_bytes) ||
        record_decode(left, &record, &size) != ERR_OK ||
        record.shard != table_shard(batch, ordinal))
        damage_record(part, batch, ordinal, batch->offset + stream_to_byte((uint32_t)*at),
                      "a record's checksum does not match");
    *at += RECORD_HEADER_BYTES + payload_bytes;
    return true;
}

/* Marks the shards of the records that are not sound. */
static void check_records(struct part *part, const struct batch *batch)
{
    size_t at = BATCH_HEADER_BYTES + 2u * (size_t)batch->header.record_count;

    if (!stream_ok(batch->sector_ok, 0, at)) {
        damage_all(part, batch->offset, "a batch's shard table is lost");
        return;
    }
    for (uint32_t i = 0; i < batch->header.record_count; i++) {
        if (check_record(part, batch, &at, i))
            continue;
        for (uint32_t rest = i; rest < batch->header.record_count; rest++)
            damage_record(part, batch, rest, batch->offset, "records of a batch are lost");
        return;
    }
}

/* Whether every sector is the batch's; fills sector_ok. */
static bool sectors_whole(const struct part *part, struct batch *batch)
{
    bool whole = true;

    for (uint32_t i = 0; i < batch->sectors; i++) {
        struct sector sector =
            sector_examine(batch->bytes + i * SECTOR_BYTES, part->log->config.replica_id);

        batch->sector_ok[i] = sector.state == SECTOR_VALID && sector.sequence == batch->sequence &&
                              sector.number == i && sector.count == batch->sectors;
        whole = whole && batch->sector_ok[i];
    }
    return whole;
}

static void check_chain(struct part *part, struct node_log_scrub *scrub, const struct batch *batch)
{
    uint64_t previous = batch->header.prev_sequence;

    if (scrub->last_sequence != 0 && previous != scrub->last_sequence &&
        (scrub->accepted_sequence == 0 || previous != scrub->accepted_sequence))
        damage_all(part, batch->offset, "the batches before this one are missing");
}

/* A batch that an earlier start found damaged may stand outside the chain: the one after it names
 * the one before it. */
static void check_batch(struct part *part, struct node_log_scrub *scrub, struct batch *batch)
{
    batch->sector_ok = mem_alloc(batch->sectors * sizeof *batch->sector_ok);
    batch->stream = mem_alloc((size_t)batch->sectors * SECTOR_STREAM_BYTES);
    bool whole = sectors_whole(part, batch);
    bool known = batch->sector_ok[0] && batch_header_decode(batch->bytes, &batch->header) == ERR_OK;

    stream_copy(batch->bytes, 0, batch->stream, (size_t)batch->sectors * SECTOR_STREAM_BYTES);
    if (!known) {
        damage_all(part, batch->offset, "a batch's header is lost, so its shards are not known");
    } else {
        check_chain(part, scrub, batch);
        check_records(part, batch);
    }
    scrub->accepted_sequence = whole && known ? 0 : scrub->last_sequence;
    scrub->last_sequence = batch->sequence;
    free(batch->sector_ok);
    free(batch->stream);
}

/* ---- the walk ----------------------------------------------------------------------------- */

/* Finds a sector of a batch that begins at `offset`, to learn its size. */
static struct batch find_batch(const struct part *part, uint32_t offset, uint64_t last_sequence)
{
    struct batch batch = { .bytes = part->bytes + (offset - part->from),
                           .offset = offset,
                           .sectors = BLOCK_SECTORS };

    for (uint32_t i = 0; i < BLOCK_SECTORS; i++) {
        struct sector sector =
            sector_examine(batch.bytes + i * SECTOR_BYTES, part->log->config.replica_id);

        if (sector.state != SECTOR_VALID || sector.sequence <= last_sequence || sector.number != i)
            continue;
        if (sector.count > (part->log->config.segment_bytes - offset) / SECTOR_BYTES)
            continue;
        batch.sequence = sector.sequence;
        batch.sectors = sector.count;
        return batch;
    }
    return batch;
}

/* Goes through the batches that are whole in the part. Returns how many bytes from its beginning
 * the first one that is not needs; 0: there is none. */
static uint32_t walk(struct part *part, struct node_log_scrub *scrub)
{
    while (scrub->offset < part->from + part->size) {
        struct batch batch = find_batch(part, scrub->offset, scrub->last_sequence);
        uint32_t bytes = batch.sectors * SECTOR_BYTES;

        if (scrub->offset - part->from + bytes > part->size)
            return bytes;
        if (batch.sequence != 0)
            check_batch(part, scrub, &batch);
        else if (scrub->offset == 0)
            damage_all(part, 0, "a segment does not begin with a batch");
        scrub->offset += bytes; /* Behind the last batch: what was there before, to the end. */
    }
    return 0;
}

/* A part that the disk refuses to read counts as damaged, like one that it changed. */
static void read_or_spoil(const struct part *part)
{
    /* Where there is no O_DIRECT, the system's pages would hide what the disk has. */
    (void)posix_fadvise(part->segment->fd, part->from, part->size, POSIX_FADV_DONTNEED);
    if (log_segment_read(part->segment, part->from, part->bytes, part->size) == ERR_OK)
        return;
    log_event(part->log->config.log, LOG_ERROR, "log.read_failed",
              LOG_S("directory", part->log->config.directory), LOG_N("segment", part->number),
              LOG_N("offset", part->from));
    memset(part->bytes, SPOILT_BYTE, part->size);
}

static bool in_use(struct node_log *log, uint32_t number)
{
    struct log_segment *segment = log_segments_acquire(&log->segments, number);

    if (segment == NULL)
        return false;
    log_segment_release(&log->segments, segment);
    return true;
}

static void next_segment(struct node_log_scrub *scrub)
{
    scrub->segment++;
    scrub->offset = 0;
}

/* Reads from scrub->offset on and looks at it. Returns what walk does. */
static uint32_t read_part(struct part *part, struct node_log_scrub *scrub, uint32_t bytes)
{
    uint32_t left = part->log->config.segment_bytes - scrub->offset;
    uint32_t need = 0;

    part->from = scrub->offset;
    part->size = bytes < left ? bytes : left;
    part->bytes = log_block_alloc(part->size);
    read_or_spoil(part);
    scrub->read_bytes += part->size;
    /* Segments die in order, and are used again only then: so far these bytes are the sealed ones.
     */
    if (in_use(part->log, part->number))
        need = walk(part, scrub);
    else
        next_segment(scrub);
    free(part->bytes);
    return need;
}

/* Batches in between went with segments that were cut: nothing is known of the one before. */
static void enter_segment(struct node_log *log, struct node_log_scrub *scrub, uint32_t number,
                          uint32_t before)
{
    if (scrub->segment == number && scrub->offset > 0)
        return;
    if (before == 0 || !in_use(log, before)) {
        scrub->last_sequence = 0;
        scrub->accepted_sequence = 0;
    }
    scrub->segment = number;
    scrub->offset = 0;
}

err node_log_scrub_step(struct node_log *log, struct node_log_scrub *scrub, uint32_t bytes_max,
                        uint32_t *ret_shard)
{
    struct part part = { .log = log };
    uint32_t bytes = bytes_max / BLOCK_BYTES * BLOCK_BYTES;

    part.segment = log_segments_acquire_sealed(&log->segments, scrub->segment, &part.number);
    if (part.segment == NULL) {
        scrub->complete = true;
        return ERR_OK;
    }
    enter_segment(log, scrub, part.number, scrub->segment > 0 ? scrub->segment - 1 : 0);
    uint32_t from = scrub->offset;
    uint32_t need = read_part(&part, scrub, bytes < BLOCK_BYTES ? BLOCK_BYTES : bytes);
    if (need > 0 && scrub->offset == from)
        (void)read_part(&part, scrub, need);
    if (scrub->offset >= log->config.segment_bytes)
        next_segment(scrub);
    log_segment_release(&log->segments, part.segment);
    if (!part.found)
        return ERR_OK;
    *ret_shard = part.shard;
    return ERR_CORRUPT;
}
