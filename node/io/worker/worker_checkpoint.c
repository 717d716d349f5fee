/*
 * Checkpoints: one shard at a time, spread over the interval; after each round of all shards one
 * flush of the database, then the log is cut to what the flush covers and no member needs.
 * DESIGN section 8.
 */
#include "runtime/memory/heap.h"
#include "node/io/worker/worker_internal.h"
#include "runtime/base/check.h"

#define FULL_RETRY_MS 1000u
#define LAST_ROUNDS   2u /* When stopping: the round on its way, and a whole one. */

static void on_work(uv_work_t *work)
{
    struct checkpoint_job *job = CONTAINER_OF(work, struct checkpoint_job, work);
    struct db *db = job->worker->options.db;

    if (job->flush) {
        job->result = db_flush(db);
        (void)heap_trim_above(job->worker->options.resident_max_bytes);
        return;
    }
    job->result = db_checkpoint_write(db, &(struct db_checkpoint){
                                              .shard = job->shard,
                                              .writes = job->checkpoint.writes,
                                              .write_count = job->checkpoint.write_count,
                                              .meta_row = buf_slice(&job->checkpoint.meta_row),
                                          });
}

static void cut_logs(struct worker *worker)
{
    for (uint32_t i = 0; i < worker->options.shard_count; i++) {
        struct slot *slot = &worker->slots[i];
        /* One whose log is emptied comes back with another, of which this flush knows nothing. */
        if (slot->shard == NULL || slot->install != INSTALL_NONE)
            continue;
        slot->durable_index = worker->checkpoint.flush_indexes[i];
        /* A full disk stops everybody; a member that is behind gets a snapshot, or another one. */
        const struct rep *rep = shard_rep(slot->shard);
        bool room = node_log_space_ok(worker->options.store_log);
        uint64_t needed = room ? rep_retain_index(rep) : rep_final_index(rep);
        uint64_t now_ms = loop_now_ms(worker->options.loop);
        uint64_t pin = room ? shard_snapshot_pin(slot->shard, now_ms) : UINT64_MAX;
        uint64_t cut = slot->durable_index < needed ? slot->durable_index : needed;
        cut = cut < pin ? cut : pin;
        node_log_retain(worker->options.store_log, i, cut);
    }
}

static void on_done(uv_work_t *work, int status)
{
    struct checkpoint_job *job = CONTAINER_OF(work, struct checkpoint_job, work);
    struct worker *worker = job->worker;
    struct slot *slot = &worker->slots[job->shard];

    CHECK(status == 0);
    worker->checkpoint_running = false;
    if (job->result == ERR_FULL) {
        /* Nothing is lost: the rows stay dirty, and the log keeps what made them. */
        worker->checkpoint_full_ms = loop_now_ms(worker->options.loop) + FULL_RETRY_MS;
        log_event(worker->options.log, LOG_ERROR, "checkpoint.no_space",
                  LOG_N("shard", job->shard));
    } else if (job->result != ERR_OK) {
        char text[DB_TEXT_BYTES] = "";
        log_event(worker->options.log, LOG_ERROR, "checkpoint.failed", LOG_N("shard", job->shard),
                  LOG_S("error", err_text(job->result)));
        /* RocksDB takes no more writes: its peers go on, and nothing here may wait for ever. */
        if (db_damage(worker->options.db, text))
            worker->options.ops.damaged(worker->options.user, job->shard, text);
    }
    if (job->flush) {
        worker->checkpoint_rounds++;
        if (job->result == ERR_OK)
            cut_logs(worker);
        return;
    }
    shard_checkpoint_end(slot->shard, job->result == ERR_OK);
    if (job->result == ERR_OK)
        slot->written_index = job->checkpoint.index;
    if (job->of_backup)
        worker_backup_written(worker, job->shard, job->result == ERR_OK);
    slot->checkpoints++;
    buf_deinit(&job->checkpoint.meta_row);
}

static void start(struct worker *worker)
{
    worker->checkpoint_running = true;
    CHECK(uv_queue_work(loop_uv(worker->options.loop), &worker->checkpoint.work, on_work,
                        on_done) == 0);
}

/* The database must not be ahead of the log: see rep_durable_index. */
static void start_when_durable(struct worker *worker)
{
    const struct shard *shard = worker->slots[worker->checkpoint.shard].shard;

    worker->checkpoint_waits =
        rep_durable_index(shard_rep(shard)) < worker->checkpoint.checkpoint.index;
    if (!worker->checkpoint_waits)
        start(worker);
}

void worker_checkpoint_abandon(struct worker *worker)
{
    if (!worker->checkpoint_waits)
        return;
    worker->checkpoint_waits = false;
    shard_checkpoint_end(worker->slots[worker->checkpoint.shard].shard, false);
    buf_deinit(&worker->checkpoint.checkpoint.meta_row);
    if (worker->checkpoint.of_backup)
        worker->slots[worker->checkpoint.shard].backup = (struct backup){ 0 };
}

static void start_flush(struct worker *worker)
{
    for (uint32_t i = 0; i < worker->options.shard_count; i++)
        worker->checkpoint.flush_indexes[i] = worker->slots[i].written_index;
    worker->checkpoint.flush = true;
    worker->checkpoint_next = 0;
    start(worker);
}

/* A shard that a backup froze goes before its turn. False: there is none. */
static bool start_frozen(struct worker *worker)
{
    uint32_t shard = worker_backup_frozen(worker);

    if (shard == UINT32_MAX)
        return false;
    worker->checkpoint.checkpoint = worker->slots[shard].backup.checkpoint;
    worker->checkpoint.shard = shard;
    worker->checkpoint.flush = false;
    worker->checkpoint.of_backup = true;
    start_when_durable(worker);
    return true;
}

/* The next shard with anything to write; false when the round is over. */
static bool start_next(struct worker *worker)
{
    while (worker->checkpoint_next < worker->options.shard_count) {
        uint32_t shard = worker->checkpoint_next++;
        struct slot *slot = &worker->slots[shard];
        if (slot->shard == NULL || slot->install != INSTALL_NONE ||
            slot->backup.state == BACKUP_ARMED || slot->backup.state == BACKUP_FROZEN)
            continue;
        if (!shard_checkpoint_begin(slot->shard, &worker->checkpoint.checkpoint))
            continue;
        worker->checkpoint.shard = shard;
        worker->checkpoint.flush = false;
        worker->checkpoint.of_backup = false;
        start_when_durable(worker);
        return true;
    }
    return false;
}

void worker_checkpoint_tick(struct worker *worker)
{
    uint64_t now_ms = loop_now_ms(worker->options.loop);
    bool hurry = worker->checkpoint_hurry || worker->checkpoint_pressed ||
                 !node_log_space_ok(worker->options.store_log);

    if (space_disk_full(worker->options.space) || now_ms < worker->checkpoint_full_ms)
        return;
    if (worker->checkpoint_waits) {
        start_when_durable(worker);
        return;
    }
    if (!worker->checkpoint_running && start_frozen(worker))
        return;
    if (worker->checkpoint_running || (now_ms < worker->checkpoint_due_ms && !hurry))
        return;
    /* The last ones are written: what its peers still send stays in the log. */
    if (worker->checkpoint_hurry && worker->checkpoint_rounds >= LAST_ROUNDS)
        return;
    uint64_t shards = worker->held > 0 ? worker->held : 1;
    worker->checkpoint_due_ms = now_ms + worker->options.checkpoint_interval_ms / (shards + 1);
    if (!start_next(worker))
        start_flush(worker);
}

static bool round_is_done(void *user)
{
    struct worker *worker = user;

    worker_checkpoint_tick(worker);
    if (space_disk_full(worker->options.space) && !worker->checkpoint_running)
        return true; /* The next start replays the log. */
    return worker->checkpoint_rounds >= LAST_ROUNDS && !worker->checkpoint_running &&
           !worker->checkpoint_waits;
}

void worker_checkpoint_all(struct worker *worker)
{
    worker->checkpoint_hurry = true;
    worker->checkpoint_rounds = 0;
    (void)loop_run_until(worker->options.loop, round_is_done, worker, 60000);
    worker->checkpoint_hurry = false;
}
