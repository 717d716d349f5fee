/* Reading entries back: for peers that are behind, for recovery, and for the audit of orphans. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/store/node_log_private.h"
#include "runtime/base/check.h"

#define WINDOW_BYTES   (256u * 1024u)
#define READ_COUNT_MAX 65536u

/* The part of a segment that was read last: entries of one shard stand close together. */
struct window {
    struct log_segment *segment; /* A reference. */
    uint32_t number;             /* Its number when it was acquired. */
    uint8_t *bytes;
    uint32_t capacity;
    uint32_t from;
    uint32_t size;
};

static void window_deinit(struct node_log *log, struct window *window)
{
    if (window->segment != NULL)
        log_segment_release(&log->segments, window->segment);
    free(window->bytes);
}

static err window_segment(struct node_log *log, struct window *window, uint32_t number)
{
    if (window->segment != NULL)
        log_segment_release(&log->segments, window->segment);
    window->size = 0;
    window->number = number;
    window->segment = log_segments_acquire(&log->segments, number);
    return window->segment == NULL ? ERR_NOT_FOUND : ERR_OK;
}

/* Makes bytes [from, to) of the segment available. */
static err window_cover(struct node_log *log, struct window *window, uint32_t from, uint32_t to)
{
    if (window->size > 0 && from >= window->from && to <= window->from + window->size)
        return ERR_OK;

    uint32_t start = from / BLOCK_BYTES * BLOCK_BYTES;
    uint32_t size = (to - start + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
    uint32_t left = log->config.segment_bytes - start;

    if (size < WINDOW_BYTES)
        size = left < WINDOW_BYTES ? left : WINDOW_BYTES;
    if (size > window->capacity) {
        free(window->bytes);
        window->bytes = log_block_alloc(size);
        window->capacity = size;
    }
    window->from = start;
    window->size = 0;
    err e = log_segment_read(window->segment, start, window->bytes, size);
    if (e == ERR_OK)
        window->size = size;
    return e;
}

static err decode_want(const struct node_log *log, const struct window *window,
                       const struct log_want *want, struct entry **ret_entry)
{
    uint32_t size = RECORD_HEADER_BYTES + want->place.bytes;
    size_t from = want->place.offset - window->from;
    size_t to = stream_end(want->place.offset, size) - window->from;
    struct record record;
    size_t record_size;
    err e = ERR_OK;

    for (size_t at = from / SECTOR_BYTES * SECTOR_BYTES; at < to; at += SECTOR_BYTES) {
        struct sector sector = sector_examine(window->bytes + at, log->config.replica_id);

        if (sector.state != SECTOR_VALID)
            return ERR_CORRUPT;
    }
    uint8_t *bytes = mem_alloc(size);
    stream_copy(window->bytes, from, bytes, size);
    e = record_decode((struct slice){ bytes, size }, &record, &record_size);
    if (e == ERR_OK &&
        (record.type != RECORD_ENTRY || record.shard != want->shard || record.index != want->index))
        e = ERR_CORRUPT;
    if (e == ERR_OK)
        e = entry_decode(record.payload, ret_entry);
    if (e == ERR_OK && (*ret_entry)->index != want->index) {
        entry_unref(*ret_entry);
        *ret_entry = NULL;
        e = ERR_CORRUPT;
    }
    free(bytes);
    return e;
}

static err read_want(struct node_log *log, struct window *window, const struct log_want *want,
                     struct entry **ret_entry)
{
    uint32_t from = want->place.offset;
    size_t to = stream_end(from, RECORD_HEADER_BYTES + want->place.bytes);
    bool same = window->segment != NULL && window->number == want->place.segment;
    err e = ERR_OK;

    if (to > log->config.segment_bytes)
        return ERR_CORRUPT;
    if (!same)
        e = window_segment(log, window, want->place.segment);
    if (e == ERR_OK)
        e = window_cover(log, window, from, (uint32_t)to);
    if (e == ERR_OK)
        e = decode_want(log, window, want, ret_entry);
    return e == ERR_IO ? ERR_CORRUPT : e;
}

void log_want_text(const struct node_log *log, const struct log_want *want,
                   char ret_text[NODE_LOG_TEXT_BYTES])
{
    snprintf(ret_text, NODE_LOG_TEXT_BYTES,
             "%s/%010u.seg: offset %u: shard %u: entry %llu cannot be read", log->config.directory,
             want->place.segment, want->place.offset, want->shard, (unsigned long long)want->index);
}

err log_read_wants(struct node_log *log, const struct log_want *wants, uint32_t count,
                   struct entry **ret_entries, char ret_text[NODE_LOG_TEXT_BYTES])
{
    struct window window = { 0 };
    err first = ERR_OK;

    for (uint32_t i = 0; i < count; i++) {
        ret_entries[i] = NULL;
        err e = read_want(log, &window, &wants[i], &ret_entries[i]);
        if (e == ERR_OK || first != ERR_OK)
            continue;
        first = e;
        log_want_text(log, &wants[i], ret_text);
    }
    window_deinit(log, &window);
    return first;
}

/* Places of the range's entries, as many as its limits allow. */
static uint32_t list_wants(struct node_log *log, const struct node_log_range *range,
                           uint32_t count_max, struct log_want **ret_wants)
{
    struct log_shard *shard = &log->shards[range->shard];
    struct log_want *wants = NULL;
    uint32_t count = 0;
    uint32_t capacity = 0;
    uint64_t bytes = 0;

    pthread_mutex_lock(&shard->lock);
    for (uint64_t at = range->from_index; at <= range->to_index && count < count_max; at++) {
        const struct log_place *place = log_index_find(&shard->index, at);

        if (place == NULL || (count > 0 && bytes + place->bytes > range->bytes_max))
            break;
        if (count == capacity) {
            capacity = capacity == 0 ? 64 : capacity * 2;
            wants = mem_realloc(wants, capacity * sizeof *wants);
        }
        wants[count++] = (struct log_want){ .shard = range->shard, .index = at, .place = *place };
        bytes += place->bytes;
    }
    pthread_mutex_unlock(&shard->lock);
    *ret_wants = wants;
    return count;
}

static bool still_there(struct node_log *log, const struct log_want *want)
{
    struct log_shard *shard = &log->shards[want->shard];

    pthread_mutex_lock(&shard->lock);
    const struct log_place *place = log_index_find(&shard->index, want->index);
    bool same = place != NULL && place->segment == want->place.segment &&
                place->offset == want->place.offset;
    pthread_mutex_unlock(&shard->lock);
    return same;
}

/* What failed only because it was cut meanwhile is not damage. */
static err explain_failure(struct node_log *log, const struct log_want *wants,
                           struct entry **entries, uint32_t count, const char *text)
{
    err e = ERR_NOT_FOUND;

    for (uint32_t i = 0; i < count; i++) {
        if (entries[i] == NULL && still_there(log, &wants[i]))
            e = ERR_CORRUPT;
    }
    if (e == ERR_CORRUPT)
        log_shard_damage(log, wants[0].shard, text);
    for (uint32_t i = 0; i < count; i++)
        entry_unref(entries[i]);
    return e;
}

err node_log_read(struct node_log *log, const struct node_log_range *range,
                  struct entry ***ret_entries, uint32_t *ret_count)
{
    CHECK(range->shard < log->config.shard_count);
    char text[NODE_LOG_TEXT_BYTES];
    struct log_want *wants = NULL;
    uint32_t count = list_wants(log, range, READ_COUNT_MAX, &wants);

    if (count == 0) {
        free(wants);
        return ERR_NOT_FOUND;
    }
    struct entry **entries = mem_zalloc(count * sizeof(struct entry *));
    err e = log_read_wants(log, wants, count, entries, text);
    if (e != ERR_OK)
        e = explain_failure(log, wants, entries, count, text);
    free(wants);
    if (e != ERR_OK) {
        free(entries);
        return e;
    }
    *ret_entries = entries;
    *ret_count = count;
    return ERR_OK;
}
