/* Opening and closing the log, and what any thread may ask of it. */
#include "node/store/node_log.h"

#include <stdlib.h>
#include <string.h>

#include "node/store/node_log_private.h"
#include "runtime/base/check.h"

#define SEGMENT_BYTES_MIN (4u * 1024u * 1024u)
#define SEGMENT_BYTES_MAX (1024u * 1024u * 1024u)
#define SHARDS_MAX        4096u

struct node_log_config node_log_config_default(void)
{
    return (struct node_log_config){
        .segment_bytes = 64u * 1024u * 1024u,
        .bytes_max = 4ull * 1024u * 1024u * 1024u,
        .spare_segments = 2,
        .batch_records_max = 256,
        .batch_bytes_max = 1024u * 1024u,
        .direct_io = true,
    };
}

static bool within(const struct log *log, const char *field, uint64_t value, uint64_t min,
                   uint64_t max)
{
    if (value >= min && value <= max)
        return true;
    log_event(log, LOG_ERROR, "log.config_invalid", LOG_S("field", field), LOG_N("value", value),
              LOG_N("min", min), LOG_N("max", max));
    return false;
}

static bool config_valid(const struct node_log_config *config)
{
    const struct log *log = config->log;
    uint64_t segment = config->segment_bytes;

    if (!within(log, "segment_bytes", segment, SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX))
        return false;
    if (!within(log, "segment_bytes % 4096", segment % BLOCK_BYTES, 0, 0))
        return false;
    if (!within(log, "bytes_max", config->bytes_max, segment * 3, UINT64_MAX))
        return false;
    if (!within(log, "spare_segments", config->spare_segments, 1, 16))
        return false;
    if (!within(log, "batch_records_max", config->batch_records_max, 2, BATCH_RECORDS_MAX))
        return false;
    if (!within(log, "batch_bytes_max", config->batch_bytes_max, BLOCK_BYTES, 2u * 1024u * 1024u))
        return false;
    return within(log, "shard_count", config->shard_count, 1, SHARDS_MAX);
}

static void wake(void *user)
{
    struct node_log *log = user;

    CHECK(sem_post(&log->wake) == 0);
}

static void log_free(struct node_log *log)
{
    log_writer_deinit(log);
    log_segments_deinit(&log->segments);
    log_shards_deinit(log);
    sem_destroy(&log->wake);
    pthread_mutex_destroy(&log->stats_lock);
    free((char *)log->config.directory);
    free(log);
}

static struct node_log *log_alloc(const struct node_log_config *config)
{
    struct node_log *log = mem_zalloc(sizeof *log);

    log->config = *config;
    log->config.directory = strdup(config->directory);
    CHECK(log->config.directory != NULL);
    atomic_init(&log->inbox, NULL);
    atomic_init(&log->closing, false);
    atomic_init(&log->retain_changed, true);
    atomic_init(&log->damage_found, false);
    CHECK(sem_init(&log->wake, 0, 0) == 0);
    CHECK(pthread_mutex_init(&log->stats_lock, NULL) == 0);
    log_shards_init(log);
    log->writer.audit.fd = -1;
    return log;
}

static err open_segments(struct node_log *log, struct log_tail *ret_tail)
{
    struct log_segments_config config = {
        .directory = log->config.directory,
        .segment_bytes = log->config.segment_bytes,
        .spare_count = log->config.spare_segments,
        .bytes_max = log->config.bytes_max,
        .direct_io = log->config.direct_io,
        .log = log->config.log,
        .ready = wake,
        .user = log,
    };
    err e = log_segments_init(&log->segments, &config);

    return e == ERR_OK ? log_scan(log, ret_tail) : e;
}

static void mark_lost(struct node_log *log, const bool *lost)
{
    for (uint32_t i = 0; i < log->config.shard_count && lost != NULL; i++) {
        const struct log_shard *shard = &log->shards[i];

        if (lost[i] && (shard->promise.epoch > 0 || shard->last_index > 0))
            log_shard_damage(log, i, "what the database had of it is lost");
    }
}

err node_log_open(const struct node_log_config *config, struct node_log **ret_log)
{
    struct log_tail tail = { 0 };

    if (!config_valid(config))
        return ERR_INVALID;
    struct node_log *log = log_alloc(config);
    err e = open_segments(log, &tail);
    if (e == ERR_OK)
        e = log_segments_settle(&log->segments, tail.segment, &log->writer.active);
    if (e != ERR_OK) {
        log_free(log);
        return e;
    }
    log->config.applied_indexes = NULL; /* The caller's, and used. */
    mark_lost(log, config->lost);
    log->config.lost = NULL;
    log_writer_init(log, &tail);
    if (config->lost != NULL && atomic_load(&log->damage_found)) {
        log_free(log);
        return ERR_FULL;
    }
    log_event(config->log, LOG_INFO, "log.opened", LOG_S("directory", config->directory),
              LOG_N("segments", log->segments.used.count), LOG_N("sequence", tail.last_sequence),
              LOG_N("torn", tail.torn), LOG_N("direct_io", log->segments.direct_io));
    log_segments_start(&log->segments);
    CHECK(pthread_create(&log->thread, NULL, log_writer_run, log) == 0);
    log->started = true;
    *ret_log = log;
    return ERR_OK;
}

err node_log_inspect(const struct node_log_config *config, struct node_log **ret_log,
                     struct log_tail *ret_tail)
{
    struct node_log *log = log_alloc(config);
    err e = open_segments(log, ret_tail);

    if (e != ERR_OK)
        log_free(log);
    else
        *ret_log = log;
    return e;
}

void node_log_close(struct node_log *log)
{
    if (log->started) {
        atomic_store(&log->closing, true);
        wake(log);
        CHECK(pthread_join(log->thread, NULL) == 0);
        log_segments_stop(&log->segments);
    }
    log_free(log);
}

void node_log_submit_list(struct node_log *log, struct node_log_request *newest,
                          struct node_log_request *oldest)
{
    CHECK(oldest->client != NULL && oldest->shard < log->config.shard_count);
    struct node_log_request *before = atomic_load_explicit(&log->inbox, memory_order_relaxed);

    /* No ABA: the writer only ever takes the whole list. */
    do {
        oldest->next = before;
    } while (!atomic_compare_exchange_weak_explicit(&log->inbox, &before, newest,
                                                    memory_order_release, memory_order_relaxed));
    if (before == NULL)
        wake(log);
}

void node_log_retain(struct node_log *log, uint32_t number, uint64_t cut_index)
{
    CHECK(number < log->config.shard_count);
    struct log_shard *shard = &log->shards[number];

    pthread_mutex_lock(&shard->lock);
    bool rose = cut_index > shard->cut_index;
    if (rose) {
        shard->cut_index = cut_index;
        log_index_cut(&shard->index, cut_index);
    }
    pthread_mutex_unlock(&shard->lock);
    if (!rose)
        return;
    atomic_store(&log->retain_changed, true);
    wake(log);
}

bool node_log_space_ok(struct node_log *log)
{
    return !log_segments_low(&log->segments);
}

static void find_pinning(struct node_log *log, uint32_t *ret_shard, uint32_t *ret_segment,
                         uint32_t *ret_next)
{
    *ret_shard = UINT32_MAX;
    *ret_segment = UINT32_MAX;
    *ret_next = UINT32_MAX;
    for (uint32_t i = 0; i < log->config.shard_count; i++) {
        uint32_t segment = log_shard_oldest_segment(&log->shards[i]);

        if (segment < *ret_segment) {
            *ret_next = *ret_segment;
            *ret_segment = segment;
            *ret_shard = i;
        } else if (segment < *ret_next) {
            *ret_next = segment;
        }
    }
}

void node_log_stats_get(struct node_log *log, struct node_log_stats *ret_stats)
{
    struct log_segments *segments = &log->segments;
    uint32_t pinning, oldest, next;
    uint64_t pinned = 0;

    pthread_mutex_lock(&log->stats_lock);
    *ret_stats = log->stats;
    pthread_mutex_unlock(&log->stats_lock);
    find_pinning(log, &pinning, &oldest, &next);
    for (uint32_t i = 0; i < log->config.shard_count; i++) {
        char text[NODE_LOG_TEXT_BYTES];

        ret_stats->damaged_shards += node_log_damage(log, i, text);
    }
    pthread_mutex_lock(&segments->lock);
    for (struct log_segment *s = segments->used.first; s != segments->used.last; s = s->next)
        pinned += s->number >= oldest && s->number < next;
    ret_stats->segments = (uint64_t)segments->used.count + segments->dead.count;
    ret_stats->spare_segments = segments->ready.count;
    ret_stats->recycled = segments->recycled;
    ret_stats->direct_io = segments->direct_io;
    pthread_mutex_unlock(&segments->lock);
    ret_stats->log_bytes =
        (ret_stats->segments + ret_stats->spare_segments) * log->config.segment_bytes;
    ret_stats->bytes_max = log->config.bytes_max;
    ret_stats->pinning_shard = pinned > 0 ? pinning : UINT32_MAX;
    ret_stats->pinned_bytes = pinned * log->config.segment_bytes;
}
