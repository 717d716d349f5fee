/* What the log knows of each shard: its index, promise, commit mark and damage. */
#include <stdlib.h>
#include <string.h>

#include "node/store/node_log_private.h"
#include "runtime/base/check.h"

void log_shards_init(struct node_log *log)
{
    log->shards = mem_zalloc(log->config.shard_count * sizeof *log->shards);
    for (uint32_t i = 0; i < log->config.shard_count; i++)
        CHECK(pthread_mutex_init(&log->shards[i].lock, NULL) == 0);
}

void log_shards_deinit(struct node_log *log)
{
    for (uint32_t i = 0; i < log->config.shard_count; i++) {
        log_index_deinit(&log->shards[i].index);
        log_kept_deinit(&log->shards[i].kept);
        free(log->shards[i].damage_text);
        pthread_mutex_destroy(&log->shards[i].lock);
    }
    free(log->shards);
}

/* In the functions below the shard's lock is held. */

static void take_entry(struct log_shard *shard, const struct record *record, struct log_place place)
{
    /* One at or below the last must come after a TRUNCATE, or orphans would go unaudited. */
    CHECK(record->index > shard->last_index);
    if (record->index > shard->cut_index)
        log_index_put(&shard->index, record->index, place);
    shard->last_index = record->index;
    if (record->commit_index > shard->commit_index)
        shard->commit_index = record->commit_index;
}

static void take_truncate(struct log_shard *shard, uint64_t keep_index)
{
    log_index_truncate(&shard->index, keep_index);
    log_kept_truncate(&shard->kept, keep_index);
    if (shard->last_index > keep_index)
        shard->last_index = keep_index;
    if (shard->commit_index > keep_index)
        shard->commit_index = keep_index;
    if (shard->cut_index > keep_index)
        shard->cut_index = keep_index;
}

static void clear_damage(struct log_shard *shard)
{
    shard->damaged = false;
    shard->damage_unwritten = false;
    free(shard->damage_text);
    shard->damage_text = NULL;
}

static void take_promise(struct log_shard *shard, const struct record *record)
{
    struct reader reader = reader_from(record->payload);

    shard->promise.config = read_u64(&reader);
    shard->promise.epoch = read_u64(&reader);
    shard->promise.owner = read_u64(&reader);
    CHECK(reader_finish(&reader) == ERR_OK);
    shard->dropped = (record->flags & RECORD_DROPPED) != 0;
    shard->differs = (record->flags & RECORD_DIFFERS) != 0;
    if (record->index > shard->last_index)
        shard->last_index = record->index;
    if (record->commit_index > shard->commit_index)
        shard->commit_index = record->commit_index;
    if (record->flags & RECORD_RESET)
        clear_damage(shard);
}

void log_shard_record(struct node_log *log, const struct record *record, struct log_place place)
{
    struct log_shard *shard = &log->shards[record->shard];
    bool damaged = false;

    pthread_mutex_lock(&shard->lock);
    switch (record->type) {
    case RECORD_ENTRY:
        take_entry(shard, record, place);
        break;
    case RECORD_PROMISE:
        take_promise(shard, record);
        shard->sticky_segment = place.segment;
        if (record->flags & RECORD_RESET)
            shard->reset = place;
        damaged = (record->flags & RECORD_DAMAGED) != 0;
        break;
    case RECORD_TRUNCATE:
        take_truncate(shard, record->index);
        break;
    case RECORD_COMMIT:
        if (record->commit_index > shard->commit_index)
            shard->commit_index = record->commit_index;
        break;
    }
    if (shard->sticky_segment == 0)
        shard->sticky_segment = place.segment;
    bool known = shard->damaged;
    pthread_mutex_unlock(&shard->lock);
    if (damaged && !known)
        log_shard_damage(log, record->shard, "damage found at an earlier start, not repaired yet");
}

void log_shard_keep(struct node_log *log, uint32_t number, struct entry *entry)
{
    struct log_shard *shard = &log->shards[number];

    pthread_mutex_lock(&shard->lock);
    log_kept_put(&shard->kept, entry);
    pthread_mutex_unlock(&shard->lock);
}

void log_shard_damage(struct node_log *log, uint32_t number, const char *text)
{
    struct log_shard *shard = &log->shards[number];

    pthread_mutex_lock(&shard->lock);
    bool known = shard->damaged;
    if (!known) {
        shard->damaged = true;
        shard->damage_unwritten = true;
        shard->damage_text = strdup(text);
        CHECK(shard->damage_text != NULL);
    }
    pthread_mutex_unlock(&shard->lock);
    if (known)
        return;
    atomic_store(&log->damage_found, true);
    log_event(log->config.log, LOG_ERROR, "log.shard_damaged", LOG_N("shard", number),
              LOG_S("damage", text));
}

bool log_shard_is_hit(struct node_log *log, uint32_t number, struct log_place place)
{
    struct log_shard *shard = &log->shards[number];

    pthread_mutex_lock(&shard->lock);
    bool emptied = place.segment < shard->reset.segment ||
                   (place.segment == shard->reset.segment && place.offset < shard->reset.offset);
    bool hit = shard->sticky_segment != 0 && !shard->damaged && !emptied;
    pthread_mutex_unlock(&shard->lock);
    return hit;
}

uint32_t log_shard_oldest_segment(struct log_shard *shard)
{
    pthread_mutex_lock(&shard->lock);
    const struct log_place *place = log_index_find(&shard->index, shard->index.first);
    uint32_t segment = place == NULL ? UINT32_MAX : place->segment;
    pthread_mutex_unlock(&shard->lock);
    return segment;
}

struct record log_shard_sticky(struct node_log *log, uint32_t number, uint8_t flags,
                               uint8_t payload[PROMISE_BYTES])
{
    struct log_shard *shard = &log->shards[number];

    pthread_mutex_lock(&shard->lock);
    struct record record = {
        .type = RECORD_PROMISE,
        .flags = flags,
        .shard = number,
        .index = shard->last_index,
        .commit_index = shard->commit_index,
        .payload = { payload, PROMISE_BYTES },
    };
    if (shard->damaged && (flags & RECORD_RESET) == 0)
        record.flags |= RECORD_DAMAGED;
    if (shard->dropped)
        record.flags |= RECORD_DROPPED;
    if (shard->differs && (flags & RECORD_RESET) == 0)
        record.flags |= RECORD_DIFFERS;
    store_u64(payload, shard->promise.config);
    store_u64(payload + 8, shard->promise.epoch);
    store_u64(payload + 16, shard->promise.owner);
    pthread_mutex_unlock(&shard->lock);
    return record;
}

bool node_log_damage(struct node_log *log, uint32_t number, char ret_text[NODE_LOG_TEXT_BYTES])
{
    CHECK(number < log->config.shard_count);
    struct log_shard *shard = &log->shards[number];

    pthread_mutex_lock(&shard->lock);
    bool damaged = shard->damaged;
    ret_text[0] = '\0';
    if (damaged) {
        strncpy(ret_text, shard->damage_text, NODE_LOG_TEXT_BYTES - 1);
        ret_text[NODE_LOG_TEXT_BYTES - 1] = '\0';
    }
    pthread_mutex_unlock(&shard->lock);
    return damaged;
}

void node_log_shard_get(struct node_log *log, uint32_t number, struct node_log_shard *ret_shard)
{
    CHECK(number < log->config.shard_count);
    struct log_shard *shard = &log->shards[number];

    pthread_mutex_lock(&shard->lock);
    *ret_shard = (struct node_log_shard){
        .promise = shard->promise,
        .dropped = shard->dropped,
        .differs = shard->differs,
        .first_index = shard->index.count > 0 ? shard->index.first : shard->last_index + 1,
        .last_index = shard->last_index,
        .commit_index = shard->commit_index,
        .damaged = shard->damaged,
    };
    pthread_mutex_unlock(&shard->lock);
}
