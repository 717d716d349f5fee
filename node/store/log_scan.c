/*
 * The scan at start: reads every segment once, in order, and rebuilds what is known of each
 * shard. Where a batch is not whole it decides between three things (log_format.h says how they
 * are told apart): the log ends here; its last batch was torn by a crash, and never acknowledged;
 * or the disk lost something that had been acknowledged. Only the first two go without a report.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/store/node_log_private.h"
#include "runtime/base/check.h"

#define CHUNK_BYTES (1024u * 1024u)

struct scan {
    struct node_log *log;
    uint8_t *bytes; /* The whole segment that is being read. */
    uint8_t *chunk; /* For looking ahead. */
    uint8_t *stream;
    bool *sector_ok;
    struct log_segment *segment;
    uint64_t last_sequence; /* Of the last batch taken in; 0: none yet. */
    uint64_t sequence_max;
    uint64_t durable_max; /* The last batch that one after it says was synced. */
    uint32_t torn_batches;
};

enum look_kind {
    LOOK_WHOLE,
    LOOK_NOTHING, /* What was there before the batch would have been written. */
    LOOK_TORN,    /* Partly so. */
    LOOK_DAMAGED  /* Not what any crash leaves. */
};

struct look {
    enum look_kind kind;
    uint32_t sectors;
    uint64_t sequence; /* 0 when no sector of the batch could be read. */
};

/* The first batch after a place, and what the later ones say was synced. */
struct later {
    bool found;
    struct log_segment *segment;
    uint32_t offset;
    uint64_t prev_sequence;
    uint64_t durable_max;
};

/* ---- damage ------------------------------------------------------------------------------- */

static void describe(const struct scan *scan, uint32_t offset, const char *what,
                     char ret_text[NODE_LOG_TEXT_BYTES])
{
    snprintf(ret_text, NODE_LOG_TEXT_BYTES, "%s/%010u.seg: offset %u: %s",
             scan->log->config.directory, scan->segment->number, offset, what);
}

static void damage_all(const struct scan *scan, uint32_t offset, const char *what)
{
    char text[NODE_LOG_TEXT_BYTES];

    describe(scan, offset, what, text);
    for (uint32_t shard = 0; shard < scan->log->config.shard_count; shard++)
        log_shard_damage(scan->log, shard, text);
}

static void damage_one(const struct scan *scan, uint32_t shard, uint32_t offset, const char *what)
{
    char text[NODE_LOG_TEXT_BYTES];

    if (shard >= scan->log->config.shard_count) {
        damage_all(scan, offset, "a record of a shard that does not exist");
        return;
    }
    describe(scan, offset, what, text);
    log_shard_damage(scan->log, shard, text);
}

/* ---- reading ------------------------------------------------------------------------------ */

/* A part that the disk refuses to read counts as damaged, like one that it changed. */
static void read_or_spoil(const struct scan *scan, const struct log_segment *segment,
                          uint32_t offset, uint8_t *out, uint32_t size)
{
    if (log_segment_read(segment, offset, out, size) == ERR_OK)
        return;
    log_event(scan->log->config.log, LOG_ERROR, "log.read_failed",
              LOG_S("directory", scan->log->config.directory), LOG_N("segment", segment->number),
              LOG_N("offset", offset));
    memset(out, 0xa5, size);
}

static uint32_t chunk_size(const struct scan *scan, uint32_t offset)
{
    uint32_t left = scan->log->config.segment_bytes - offset;

    return left < CHUNK_BYTES ? left : CHUNK_BYTES;
}

static void load(struct scan *scan, struct log_segment *segment)
{
    scan->segment = segment;
    for (uint32_t at = 0; at < scan->log->config.segment_bytes; at += CHUNK_BYTES)
        read_or_spoil(scan, segment, at, scan->bytes + at, chunk_size(scan, at));
}

static struct sector examine(struct scan *scan, const uint8_t *bytes)
{
    struct sector sector = sector_examine(bytes, scan->log->config.replica_id);

    if (sector.state == SECTOR_VALID && sector.sequence > scan->sequence_max)
        scan->sequence_max = sector.sequence;
    return sector;
}

static bool sector_of(const struct sector *sector, const struct look *look, uint32_t number)
{
    return sector->state == SECTOR_VALID && sector->sequence == look->sequence &&
           sector->number == number && sector->count == look->sectors;
}

/* Finds a sector of the batch that should begin at `offset`, to learn its size. */
static struct look look_first_block(struct scan *scan, uint32_t offset)
{
    struct look look = { .kind = LOOK_DAMAGED, .sectors = BLOCK_SECTORS };

    for (uint32_t i = 0; i < BLOCK_SECTORS; i++) {
        struct sector sector = examine(scan, scan->bytes + offset + i * SECTOR_BYTES);

        if (sector.state == SECTOR_BAD)
            continue;
        if (sector.state == SECTOR_VALID && sector.sequence > scan->last_sequence &&
            sector.number == i) {
            look.sequence = sector.sequence;
            look.sectors = sector.count;
            return look;
        }
        look.kind = LOOK_NOTHING;
    }
    return look;
}

static struct look look_at(struct scan *scan, uint32_t offset)
{
    struct look look = look_first_block(scan, offset);
    uint32_t bad = 0;
    uint32_t old = 0;

    if (look.sequence == 0)
        return look;
    if (look.sectors > (scan->log->config.segment_bytes - offset) / SECTOR_BYTES) {
        return (struct look){ .kind = LOOK_DAMAGED, .sectors = BLOCK_SECTORS };
    }
    for (uint32_t i = 0; i < look.sectors; i++) {
        struct sector sector = examine(scan, scan->bytes + offset + i * SECTOR_BYTES);

        scan->sector_ok[i] = sector_of(&sector, &look, i);
        bad += sector.state == SECTOR_BAD;
        old += sector.state != SECTOR_BAD && !scan->sector_ok[i];
    }
    if (bad == 0 && old == 0)
        look.kind = LOOK_WHOLE;
    else
        look.kind = old > 0 ? LOOK_TORN : LOOK_DAMAGED;
    return look;
}

/* ---- records ------------------------------------------------------------------------------ */

/* For recovery, which otherwise reads it again. */
static void keep_record(const struct scan *scan, const struct record *record)
{
    const uint64_t *applied = scan->log->config.applied_indexes;
    struct entry *entry;

    if (record->type == RECORD_ENTRY && applied != NULL && record->index > applied[record->shard] &&
        entry_decode(record->payload, &entry) == ERR_OK)
        log_shard_keep(scan->log, record->shard, entry);
}

static void take_record(struct scan *scan, uint32_t batch_offset, const struct record *record)
{
    struct node_log *log = scan->log;
    struct log_place place = {
        .segment = scan->segment->number,
        .offset = batch_offset + stream_to_byte(record->stream_offset),
        .bytes = (uint32_t)record->payload.size,
    };
    struct node_log_shard known;

    if (record->shard >= log->config.shard_count) {
        damage_all(scan, place.offset, "a record of a shard that does not exist");
        return;
    }
    node_log_shard_get(log, record->shard, &known);
    if (record->type == RECORD_ENTRY && record->index <= known.last_index) {
        struct record truncate = { .type = RECORD_TRUNCATE,
                                   .shard = record->shard,
                                   .index = record->index - 1 };

        damage_one(scan, record->shard, place.offset, "an entry again, its TRUNCATE is missing");
        log_shard_record(log, &truncate, place);
    }
    log_shard_record(log, record, place);
    keep_record(scan, record);
}

static uint32_t table_shard(const struct scan *scan, uint32_t ordinal)
{
    const uint8_t *at = scan->stream + BATCH_HEADER_BYTES + 2u * (size_t)ordinal;

    return (uint32_t)(at[0] | at[1] << 8);
}

/* One record at *at; false when where the next one begins is not known any more. */
static bool take_at(struct scan *scan, uint32_t offset, const struct batch_header *header,
                    size_t *at, uint32_t ordinal)
{
    struct slice left = { scan->stream + *at, header->stream_bytes - *at };
    struct record record;
    uint32_t payload_bytes;
    size_t size;

    if (left.size < RECORD_HEADER_BYTES || !stream_ok(scan->sector_ok, *at, RECORD_HEADER_BYTES))
        return false;
    if (record_payload_size(left.data, &payload_bytes) != ERR_OK ||
        payload_bytes > left.size - RECORD_HEADER_BYTES)
        return false;
    if (!stream_ok(scan->sector_ok, *at, RECORD_HEADER_BYTES + payload_bytes) ||
        record_decode(left, &record, &size) != ERR_OK ||
        record.shard != table_shard(scan, ordinal)) {
        damage_one(scan, table_shard(scan, ordinal), offset + stream_to_byte((uint32_t)*at),
                   "a record's checksum does not match");
    } else {
        record.stream_offset = (uint32_t)*at;
        take_record(scan, offset, &record);
    }
    *at += RECORD_HEADER_BYTES + payload_bytes;
    return true;
}

/* Takes in the records whose sectors are sound, and marks the shards of the others. */
static void take_batch(struct scan *scan, uint32_t offset, const struct look *look)
{
    const uint8_t *bytes = scan->bytes + offset;
    struct batch_header header;

    if (!scan->sector_ok[0] || batch_header_decode(bytes, &header) != ERR_OK) {
        damage_all(scan, offset, "a batch's header is lost, so its shards are not known");
        return;
    }
    stream_copy(bytes, 0, scan->stream, (size_t)look->sectors * SECTOR_STREAM_BYTES);
    size_t at = BATCH_HEADER_BYTES + 2u * (size_t)header.record_count;
    if (!stream_ok(scan->sector_ok, 0, at)) {
        damage_all(scan, offset, "a batch's shard table is lost");
        return;
    }
    for (uint32_t i = 0; i < header.record_count; i++) {
        if (take_at(scan, offset, &header, &at, i))
            continue;
        for (uint32_t rest = i; rest < header.record_count; rest++)
            damage_one(scan, table_shard(scan, rest), offset, "records of a batch are lost");
        return;
    }
}

/* ---- what stands behind ------------------------------------------------------------------- */

/* Part of a segment, which was read. */
struct piece {
    struct log_segment *segment;
    uint32_t offset, size;
    const uint8_t *bytes;
};

static void look_later_in(struct scan *scan, const struct piece *piece, uint64_t except,
                          struct later *later)
{
    for (uint32_t at = 0; at < piece->size; at += SECTOR_BYTES) {
        struct sector sector = examine(scan, piece->bytes + at);
        struct batch_header header;

        if (sector.state != SECTOR_VALID || sector.number != 0 || at % BLOCK_BYTES != 0)
            continue;
        if (sector.sequence <= scan->last_sequence || sector.sequence == except)
            continue;
        if (batch_header_decode(piece->bytes + at, &header) != ERR_OK)
            continue;
        if (!later->found) {
            later->found = true;
            later->segment = piece->segment;
            later->offset = piece->offset + at;
            later->prev_sequence = header.prev_sequence;
        }
        if (header.durable_sequence > later->durable_max)
            later->durable_max = header.durable_sequence;
    }
}

/* Looks through everything behind `offset` of the segment that is loaded. */
static struct later look_later(struct scan *scan, uint32_t offset, uint64_t except)
{
    uint32_t size = scan->log->config.segment_bytes;
    struct later later = { 0 };
    uint32_t from = offset + BLOCK_BYTES;

    if (from < size) {
        const struct piece rest = { scan->segment, from, size - from, scan->bytes + from };
        look_later_in(scan, &rest, except, &later);
    }
    for (struct log_segment *s = scan->segment->next; s != NULL; s = s->next) {
        for (uint32_t at = 0; at < size; at += CHUNK_BYTES) {
            if (later.found && (later.durable_max > scan->last_sequence ||
                                later.prev_sequence == scan->last_sequence))
                return later;
            read_or_spoil(scan, s, at, scan->chunk, chunk_size(scan, at));
            const struct piece chunk = { s, at, chunk_size(scan, at), scan->chunk };
            look_later_in(scan, &chunk, except, &later);
        }
    }
    return later;
}

/* The usual end of a full segment: the next one goes on where this one stopped. */
static bool next_goes_on(struct scan *scan)
{
    struct log_segment *next = scan->segment->next;
    struct batch_header header;

    if (next == NULL || scan->last_sequence == 0)
        return false;
    read_or_spoil(scan, next, 0, scan->chunk, BLOCK_BYTES);
    struct sector sector = examine(scan, scan->chunk);
    return sector.state == SECTOR_VALID && sector.number == 0 &&
           batch_header_decode(scan->chunk, &header) == ERR_OK &&
           header.prev_sequence == scan->last_sequence;
}

static void take_whole(struct scan *scan, uint32_t offset, const struct look *look)
{
    struct batch_header header = { .prev_sequence = scan->last_sequence };

    (void)!batch_header_decode(scan->bytes + offset, &header); /* take_batch reports it. */
    if (scan->last_sequence != 0 && header.prev_sequence != scan->last_sequence)
        damage_all(scan, offset, "the batches before this one are missing");
    if (header.durable_sequence > scan->durable_max)
        scan->durable_max = header.durable_sequence;
    take_batch(scan, offset, look);
    scan->last_sequence = look->sequence;
}

/* Damage at `offset`; `later` is the batch to go on with, if there is one. */
static void take_damaged(struct scan *scan, uint32_t offset, const struct look *look,
                         const struct later *later)
{
    uint32_t end = offset + look->sectors * SECTOR_BYTES;
    bool next_follows = later->segment == scan->segment && later->offset == end &&
                        later->prev_sequence == look->sequence;

    if (look->sequence != 0 && scan->last_sequence != 0 && (!later->found || next_follows))
        take_batch(scan, offset, look);
    else
        damage_all(scan, offset, "batches are missing or unreadable");
    if (later->found)
        scan->last_sequence = later->prev_sequence;
}

/* ---- the walk ----------------------------------------------------------------------------- */

/* Where the walk stands after something that is not a whole batch. */
struct step {
    struct log_segment *segment; /* NULL: the log ends at tail. */
    uint32_t offset;
};

static struct step step_over(struct scan *scan, uint32_t offset, const struct look *look,
                             struct log_tail *tail)
{
    if (look->kind == LOOK_NOTHING && next_goes_on(scan))
        return (struct step){ scan->segment->next, 0 };

    struct later later = look_later(scan, offset, look->sequence);
    bool lost = later.found && later.durable_max > scan->last_sequence;

    if (later.found && later.prev_sequence == scan->last_sequence && scan->last_sequence != 0)
        return (struct step){ later.segment, later.offset };
    if (lost) {
        take_damaged(scan, offset, look, &later);
        return (struct step){ later.segment, later.offset };
    }
    tail->segment = scan->segment;
    tail->offset = offset;
    if (look->kind == LOOK_DAMAGED) {
        later.found = false;
        take_damaged(scan, offset, look, &later);
        tail->offset += look->sectors * SECTOR_BYTES;
    } else {
        tail->torn = look->kind == LOOK_TORN || scan->sequence_max > scan->last_sequence;
    }
    return (struct step){ 0 };
}

/* Takes in whole batches from `offset` on; returns where that ends. */
static uint32_t walk_segment(struct scan *scan, uint32_t offset, struct look *ret_look)
{
    while (offset < scan->log->config.segment_bytes) {
        *ret_look = look_at(scan, offset);
        if (ret_look->kind != LOOK_WHOLE)
            return offset;
        take_whole(scan, offset, ret_look);
        offset += ret_look->sectors * SECTOR_BYTES;
    }
    *ret_look = (struct look){ .kind = LOOK_NOTHING };
    return offset;
}

static void walk(struct scan *scan, struct log_tail *ret_tail)
{
    struct step at = { scan->log->segments.used.first, 0 };

    while (at.segment != NULL) {
        struct look look;

        if (scan->segment != at.segment)
            load(scan, at.segment);
        uint32_t offset = walk_segment(scan, at.offset, &look);
        at = step_over(scan, offset, &look, ret_tail);
    }
}

/* Where the first batch begins, of the segment that was loaded last, that no later one calls
 * synced. */
static uint32_t durable_offset(struct scan *scan, const struct log_tail *tail)
{
    uint32_t offset = 0;

    if (scan->segment != tail->segment)
        return 0;
    while (offset < tail->offset) {
        struct sector first = examine(scan, scan->bytes + offset);

        if (first.state != SECTOR_VALID || first.number != 0 || first.sequence > scan->durable_max)
            break;
        offset += first.count * SECTOR_BYTES;
    }
    return offset;
}

err log_scan(struct node_log *log, struct log_tail *ret_tail)
{
    uint32_t bytes = log->config.segment_bytes;
    struct scan scan = { .log = log };

    *ret_tail = (struct log_tail){ 0 };
    if (log->segments.used.first == NULL)
        return ERR_OK;
    scan.bytes = log_block_alloc(bytes);
    scan.chunk = log_block_alloc(bytes < CHUNK_BYTES ? bytes : CHUNK_BYTES);
    scan.stream = mem_alloc(bytes);
    scan.sector_ok = mem_zalloc(bytes / SECTOR_BYTES * sizeof *scan.sector_ok);
    walk(&scan, ret_tail);
    ret_tail->durable_offset = durable_offset(&scan, ret_tail);
    ret_tail->last_sequence = scan.last_sequence;
    ret_tail->sequence_max = scan.sequence_max;
    log->stats.torn_batches = ret_tail->torn;
    free(scan.bytes);
    free(scan.chunk);
    free(scan.stream);
    free(scan.sector_ok);
    return ERR_OK;
}
