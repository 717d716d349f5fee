/* A worker from its beginning to its end, and what it does at every tick. */
#include "node/io/worker/worker.h"

#include <stdlib.h>

#include "node/io/worker/worker_internal.h"
#include "runtime/base/check.h"

#define EVICT_TICKS 8u
/* However large the cache is: what is dirty is replayed at the next start. */
#define DIRTY_BYTES_MAX (72u * 1024u * 1024u)

/* Log entries in memory are part of the cache. A quarter is for what comes with rows: gaps in the
 * heap between those of all sizes (an eighth here), and copies on their way to the database. */
static uint64_t rows_bytes_max(const struct worker *worker)
{
    uint64_t bytes_max = worker->options.cache_bytes - worker->options.cache_bytes / 4;
    uint64_t log_bytes = 0;

    for (uint32_t i = 0; i < worker->options.shard_count; i++) {
        if (worker->slots[i].shard != NULL)
            log_bytes += rep_memory_bytes(shard_rep(worker->slots[i].shard));
    }
    return log_bytes < bytes_max / 2 ? bytes_max - log_bytes : bytes_max / 2;
}

static void evict(struct worker *worker)
{
    uint64_t bytes_max = rows_bytes_max(worker);
    uint64_t share = bytes_max / (worker->held > 0 ? worker->held : 1);
    uint64_t dirty_bytes = 0;

    for (uint32_t i = 0; i < worker->options.shard_count; i++) {
        struct shard_stats stats;
        if (worker->slots[i].shard == NULL)
            continue;
        shard_evict(worker->slots[i].shard, share);
        shard_stats_get(worker->slots[i].shard, &stats);
        dirty_bytes += stats.state.dirty_bytes;
    }
    /* Only a checkpoint makes rows evictable: do not wait for its turn when they fill the cache. */
    worker->checkpoint_pressed = dirty_bytes > bytes_max * 3 / 8 || dirty_bytes > DIRTY_BYTES_MAX;
}

static void publish_all(struct worker *worker)
{
    uint64_t now_ms = loop_now_ms(worker->options.loop);

    if (now_ms < worker->views_due_ms)
        return;
    worker->views_due_ms = now_ms + SHARD_VIEW_PERIOD_MS;
    for (uint32_t i = 0; i < worker->options.shard_count; i++) {
        if (worker->slots[i].shard != NULL)
            worker_publish(worker, i);
    }
}

/* Why it is full may change while it lasts. */
static void follow_space(struct worker *worker)
{
    bool full = space_state(worker->options.space) == SPACE_FULL;

    if (!full && !worker->full)
        return;
    worker->full = full;
    for (uint32_t i = 0; i < worker->options.shard_count; i++) {
        if (worker->slots[i].shard != NULL)
            worker_tell_space(worker, worker->slots[i].shard);
    }
}

static void on_tick(void *user)
{
    struct worker *worker = user;

    worker_slow_tick(worker);
    follow_space(worker);
    for (uint32_t i = 0; i < worker->options.shard_count; i++) {
        struct shard_event tick = { .type = SHARD_TICK,
                                    .pulled_ms = shard_views_pulled(worker->options.views, i) };
        if (worker->slots[i].shard != NULL)
            worker_step(worker, i, &tick);
    }
    if (++worker->ticks % EVICT_TICKS == 0)
        evict(worker);
    worker_checkpoint_tick(worker);
    worker_snapshot_tick(worker);
    worker_backup_tick(worker);
    publish_all(worker);
}

err worker_new(const struct worker_options *options, struct worker **ret_worker)
{
    struct worker *worker = mem_zalloc(sizeof *worker);

    worker->options = *options;
    worker->slots = mem_zalloc(sizeof *worker->slots * options->shard_count);
    worker->spans = spans_new(options->shard_count);
    worker->slow.slow_ns = options->slow_ms * 1000000u;
    worker->checkpoint.flush_indexes =
        mem_zalloc(sizeof *worker->checkpoint.flush_indexes * options->shard_count);
    worker->checkpoint.worker = worker;
    worker_step_init(worker);
    loop_timer_init(&worker->tick_timer, options->loop, on_tick, worker);
    loop_timer_start_repeating(&worker->tick_timer, options->tick_ms);
    worker->checkpoint_due_ms = loop_now_ms(options->loop) + options->checkpoint_interval_ms;
    worker_write_init(worker);
    worker_load_init(worker);
    *ret_worker = worker;
    return ERR_OK;
}

static bool work_is_done(void *user)
{
    const struct worker *worker = user;
    return worker->loads_open == 0 && worker->writes_open == 0 && !worker->checkpoint_running &&
           worker->snapshots_open == 0 && worker->backup_reads_open == 0;
}

void worker_free(struct worker *worker)
{
    if (worker == NULL)
        return;
    worker->stopping = true;
    loop_timer_stop(&worker->tick_timer);
    worker_checkpoint_abandon(worker);
    CHECK(loop_run_until(worker->options.loop, work_is_done, worker, 60000));
    worker_step_deinit(worker);
    worker_backup_deinit(worker);
    worker_write_deinit(worker);
    worker_load_deinit(worker);
    worker_snapshot_deinit(worker);
    for (uint32_t i = 0; i < worker->options.shard_count; i++)
        shard_free(worker->slots[i].shard);
    spans_free(worker->spans);
    arena_pool_deinit(&worker->arenas);
    shard_out_deinit(&worker->out);
    free(worker->checkpoint.flush_indexes);
    free(worker->slots);
    free(worker);
}
