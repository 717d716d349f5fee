/*
 * The writer's thread: takes what has gathered while the last sync ran, writes it in batches,
 * syncs once, tells the clients. It is the only one that writes to segments in use.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "node/store/node_log_private.h"
#include "runtime/base/check.h"

#define COPY_BYTES      (1024u * 1024u)
#define ORPHANS_AT_ONCE 64u
#define SPACE_RETRY_S   1

/* ---- requests ----------------------------------------------------------------------------- */

static void requests_push(struct log_requests *list, struct node_log_request *request)
{
    request->next = NULL;
    if (list->last != NULL)
        list->last->next = request;
    else
        list->first = request;
    list->last = request;
}

static struct node_log_request *requests_pop(struct log_requests *list)
{
    struct node_log_request *request = list->first;

    if (request == NULL)
        return NULL;
    list->first = request->next;
    if (list->first == NULL)
        list->last = NULL;
    return request;
}

/* Moves all of `from` behind `to`. */
static void requests_move(struct log_requests *to, struct log_requests *from)
{
    if (from->first == NULL)
        return;
    if (to->last != NULL)
        to->last->next = from->first;
    else
        to->first = from->first;
    to->last = from->last;
    *from = (struct log_requests){ 0 };
}

static void take_inbox(struct node_log *log)
{
    struct node_log_request *newest =
        atomic_exchange_explicit(&log->inbox, NULL, memory_order_acquire);
    struct node_log_request *oldest = NULL;

    while (newest != NULL) {
        struct node_log_request *next = newest->next;

        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    while (oldest != NULL) {
        struct node_log_request *next = oldest->next;

        requests_push(&log->writer.pending, oldest);
        oldest = next;
    }
}

/* One call of `done` per client. */
static void complete(struct log_writer *writer)
{
    struct node_log_client *clients = NULL;

    for (struct node_log_request *r = requests_pop(&writer->written); r != NULL;
         r = requests_pop(&writer->written)) {
        struct node_log_client *client = r->client;
        struct log_requests list = { client->first, client->last };

        if (list.first == NULL) {
            client->next = clients;
            clients = client;
        }
        requests_push(&list, r);
        client->first = list.first;
        client->last = list.last;
    }
    while (clients != NULL) {
        struct node_log_client *client = clients;
        struct node_log_request *first = client->first;

        clients = client->next;
        client->first = NULL;
        client->last = NULL;
        client->done(client, first);
    }
}

/* ---- gathering ---------------------------------------------------------------------------- */

NODISCARD static bool flush(struct node_log *log)
{
    struct log_writer *writer = &log->writer;

    if (writer->batch.count > 0 && !log_batch_write(log, &writer->batch, LOG_ROOM_USUAL))
        return false;
    requests_move(&writer->written, &writer->gathered);
    return true;
}

/* Adds a record, writing out the batch first when it is full. False: no space; not added. */
NODISCARD static bool add(struct node_log *log, const struct record *record)
{
    struct log_batch *batch = &log->writer.batch;

    if (!log_batch_fits(batch, record->payload.size, log->config.batch_bytes_max) && !flush(log))
        return false;
    log_batch_add(batch, record);
    return true;
}

static uint64_t unix_ms_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

/* Entries of the shard above `from`, at most ORPHANS_AT_ONCE. */
static uint32_t list_orphans(struct log_shard *shard, uint32_t number, uint64_t from,
                             struct log_want *ret_wants)
{
    uint32_t count = 0;

    pthread_mutex_lock(&shard->lock);
    if (shard->index.count > 0 && from < shard->index.first)
        from = shard->index.first;
    while (count < ORPHANS_AT_ONCE) {
        const struct log_place *place = log_index_find(&shard->index, from + count);

        if (place == NULL)
            break;
        ret_wants[count] =
            (struct log_want){ .shard = number, .index = from + count, .place = *place };
        count++;
    }
    pthread_mutex_unlock(&shard->lock);
    return count;
}

/* Adds them to the audit file, and drops them. ERR_FULL: not all of them are there. */
static err audit_some(struct node_log *log, const struct log_want *wants, struct entry **entries,
                      uint32_t count, uint64_t keep_index)
{
    err e = ERR_OK;

    for (uint32_t i = 0; i < count; i++) {
        if (e == ERR_OK)
            e = log_audit_add(&log->writer.audit, &(struct log_orphan){ .shard = wants[i].shard,
                                                                        .index = wants[i].index,
                                                                        .keep_index = keep_index,
                                                                        .unix_ms = unix_ms_now(),
                                                                        .entry = entries[i] });
        entry_unref(entries[i]);
    }
    return e;
}

/* What is above keep_index goes to the audit file, durably. Everything gathered is written. False:
 * the disk is full; what went there goes again. */
NODISCARD static bool audit_orphans(struct node_log *log, uint32_t number, uint64_t keep_index)
{
    struct log_want wants[ORPHANS_AT_ONCE];
    struct entry *entries[ORPHANS_AT_ONCE];
    uint64_t from = keep_index + 1;
    uint64_t total = 0;

    for (;;) {
        char text[NODE_LOG_TEXT_BYTES];
        uint32_t count = list_orphans(&log->shards[number], number, from, wants);

        if (count == 0)
            break;
        if (log_read_wants(log, wants, count, entries, text) != ERR_OK)
            log_event(log->config.log, LOG_ERROR, "log.orphan_unreadable", LOG_N("shard", number),
                      LOG_S("damage", text));
        if (audit_some(log, wants, entries, count, keep_index) != ERR_OK)
            return false;
        from = wants[count - 1].index + 1;
        total += count;
    }
    if (total == 0)
        return true;
    log_audit_sync(&log->writer.audit);
    pthread_mutex_lock(&log->stats_lock);
    log->stats.orphans += total;
    pthread_mutex_unlock(&log->stats_lock);
    log_event(log->config.log, LOG_WARN, "log.truncated", LOG_N("shard", number),
              LOG_N("keep_index", keep_index), LOG_N("orphans", total));
    return true;
}

static bool gather_truncate(struct node_log *log, uint32_t shard, uint64_t keep_index)
{
    if (!flush(log))
        return false;
    if (!audit_orphans(log, shard, keep_index))
        return false;
    return add(log,
               &(struct record){ .type = RECORD_TRUNCATE, .shard = shard, .index = keep_index });
}

static bool gather_promise(struct node_log *log, uint32_t shard, const struct rep_write *write)
{
    const struct promise *promise = &write->promise;
    struct log_batch *batch = &log->writer.batch;

    if (!log_batch_fits(batch, PROMISE_BYTES, log->config.batch_bytes_max) && !flush(log))
        return false;
    uint8_t *payload = log_batch_promise(batch);
    store_u64(payload, promise->config);
    store_u64(payload + 8, promise->epoch);
    store_u64(payload + 16, promise->owner);
    uint8_t flags =
        (uint8_t)((write->dropped ? RECORD_DROPPED : 0) | (write->differs ? RECORD_DIFFERS : 0));
    log_batch_add(batch, &(struct record){ .type = RECORD_PROMISE,
                                           .flags = flags,
                                           .shard = shard,
                                           .payload = { payload, PROMISE_BYTES } });
    return true;
}

static bool gather_reset(struct node_log *log, uint32_t shard)
{
    struct log_batch *batch = &log->writer.batch;
    struct node_log_shard known;

    if (!flush(log))
        return false;
    /* What is committed is in the snapshot that comes instead: no orphans, and too many to read. */
    node_log_shard_get(log, shard, &known);
    if (!audit_orphans(log, shard, known.commit_index))
        return false;
    if (!add(log, &(struct record){ .type = RECORD_TRUNCATE, .shard = shard }))
        return false;
    CHECK(batch->count == 1);
    struct record record = log_shard_sticky(log, shard, RECORD_RESET, log_batch_promise(batch));
    record.index = 0;
    record.commit_index = 0;
    if (known.promise.epoch > 0 &&
        known.promise.owner == 0) /* It was removed: no snapshot comes instead. */
        record.flags |= RECORD_DROPPED;
    log_batch_add(batch, &record);
    return true;
}

static bool gather_write(struct node_log *log, uint32_t shard, const struct rep_write *write)
{
    switch (write->type) {
    case REP_WRITE_ENTRY:
        return add(log, &(struct record){ .type = RECORD_ENTRY,
                                          .shard = shard,
                                          .index = write->entry->index,
                                          .commit_index = write->commit_index,
                                          .payload = write->entry->encoded });
    case REP_WRITE_PROMISE:
        return gather_promise(log, shard, write);
    case REP_WRITE_TRUNCATE:
        return gather_truncate(log, shard, write->keep_index);
    }
    check_failed("a write of unknown type", __FILE__, __LINE__);
}

/* False: no space; goes on at pending_at later. */
static bool gather_request(struct node_log *log, const struct node_log_request *request)
{
    struct log_writer *writer = &log->writer;

    switch (request->type) {
    case NODE_LOG_WRITES:
        for (; writer->pending_at < request->write_count; writer->pending_at++) {
            if (!gather_write(log, request->shard, &request->writes[writer->pending_at]))
                return false;
        }
        return true;
    case NODE_LOG_COMMIT:
        return add(log, &(struct record){ .type = RECORD_COMMIT,
                                          .shard = request->shard,
                                          .commit_index = request->commit_index });
    case NODE_LOG_RESET:
        return gather_reset(log, request->shard);
    }
    check_failed("a request of unknown type", __FILE__, __LINE__);
}

/* Writes pending requests until none is left, the round is full, or there is no space. True when
 * anything was written. */
static bool write_pending(struct node_log *log)
{
    struct log_writer *writer = &log->writer;
    bool space = true;

    while (writer->pending.first != NULL && writer->round_bytes < LOG_ROUND_BYTES_MAX) {
        space = gather_request(log, writer->pending.first);
        if (!space)
            break;
        writer->pending_at = 0;
        requests_push(&writer->gathered, requests_pop(&writer->pending));
    }
    space = space && flush(log);
    writer->short_of_space = !space;
    if (!space) {
        pthread_mutex_lock(&log->stats_lock);
        log->stats.space_waits++;
        pthread_mutex_unlock(&log->stats_lock);
    }
    return writer->round_bytes > 0 || writer->written.first != NULL;
}

/* No signal tells that there is room for the audit file again: try. */
static void writer_wait(struct node_log *log)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += SPACE_RETRY_S;
    while (log->writer.short_of_space ? sem_timedwait(&log->wake, &until) != 0
                                      : sem_wait(&log->wake) != 0) {
        if (errno == ETIMEDOUT)
            break;
    }
}

void *log_writer_run(void *context)
{
    struct node_log *log = context;

    for (;;) {
        bool closing = atomic_load(&log->closing);

        take_inbox(log);
        bool worked = write_pending(log);
        log_batch_sync(log);
        complete(&log->writer);
        worked |= log_damage_write(log);
        worked |= log_recycle(log);
        log_batch_sync(log);
        if (worked)
            continue;
        if (closing)
            break;
        writer_wait(log);
    }
    /* Says that everything before it is durable. */
    if (log->writer.batch.count == 0 && log_batch_write(log, &log->writer.sticky, LOG_ROOM_ALL))
        log_batch_sync(log);
    return NULL;
}

/* ---- start -------------------------------------------------------------------------------- */

/* What was read may stand in the page cache only, after a sync that failed: DESIGN section 4. What
 * a later batch calls synced does not. */
static void rewrite_tail(struct node_log *log, uint32_t from)
{
    struct log_writer *writer = &log->writer;
    uint8_t *bytes = log_block_alloc(COPY_BYTES);

    for (uint32_t at = from; at < writer->offset; at += COPY_BYTES) {
        uint32_t left = writer->offset - at;
        uint32_t size = left < COPY_BYTES ? left : COPY_BYTES;

        if (log_segment_read(writer->active, at, bytes, size) == ERR_OK)
            log_segment_write(&log->segments, writer->active, at, bytes, size);
    }
    free(bytes);
}

static void clear_torn(struct node_log *log)
{
    struct log_writer *writer = &log->writer;
    uint8_t *zeros = log_block_alloc(COPY_BYTES);

    memset(zeros, 0, COPY_BYTES);
    for (uint32_t at = writer->offset; at < log->config.segment_bytes; at += COPY_BYTES) {
        uint32_t left = log->config.segment_bytes - at;
        uint32_t size = left < COPY_BYTES ? left : COPY_BYTES;

        log_segment_write(&log->segments, writer->active, at, zeros, size);
    }
    free(zeros);
}

void log_writer_init(struct node_log *log, const struct log_tail *tail)
{
    struct log_writer *writer = &log->writer;
    uint32_t shards = log->config.shard_count;
    uint32_t sticky_batches = shards / log->config.batch_records_max + 1;

    writer->offset = tail->offset;
    writer->last_sequence = tail->last_sequence;
    writer->sequence_floor = tail->sequence_max;
    writer->reserve_bytes =
        (uint32_t)batch_size(0, (size_t)shards * 64u) + (sticky_batches + 2) * 2 * BLOCK_BYTES;
    log_batch_init(&writer->batch, log->config.batch_records_max);
    log_batch_init(&writer->sticky, log->config.batch_records_max);
    log_audit_init(&writer->audit, log->segments.dir_fd, log->config.log);
    rewrite_tail(log, tail->durable_offset);
    if (tail->torn)
        clear_torn(log);
    log_segment_sync(&log->segments, writer->active);
    writer->durable_sequence = writer->last_sequence;
    /* The mark: from here on, what is before it counts as acknowledged. */
    (void)log_damage_write(log);
    if (log_batch_write(log, &writer->sticky, LOG_ROOM_ALL))
        log_batch_sync(log);
}

void log_writer_deinit(struct node_log *log)
{
    log_batch_deinit(&log->writer.batch);
    log_batch_deinit(&log->writer.sticky);
    log_audit_deinit(&log->writer.audit);
    free(log->writer.buffer);
}
