/*
 * Snapshots: pages of a view for a replica that is behind, rows put aside for a shard that is, and
 * their installation: when nothing of the shard is on its way any more, the database switches, the
 * log is emptied, and the shard starts as after a restart. docs/membership.md, steps 5 to 9.
 */
#include <stdlib.h>

#include "node/io/worker/worker_internal.h"
#include "runtime/base/check.h"

#define JOBS_MAX 2u     /* At once, so that threads of the pool stay for rows. */
#define RETRY_MS 1000u  /* After the database had no room. */
#define TELL_MS  30000u /* The log has none, as it seems. */

enum snapshot_kind { SNAPSHOT_PAGE, SNAPSHOT_STORE, SNAPSHOT_SWITCH, SNAPSHOT_FINISH };

struct snapshot_job {
    uv_work_t work;
    struct worker *worker;
    struct snapshot_job *next; /* Waiting. */
    enum snapshot_kind kind;
    uint32_t shard;
    bool fresh; /* PAGE: of a view taken now. STORE: drop what was put aside. */
    bool store; /* STORE: there are rows, and the shard waits for them. */
    uint32_t bytes_max;
    struct buf bytes; /* PAGE: after. STORE: rows. SWITCH: the meta row. */
    struct buf meta_row;
    struct db_rows rows;
    struct recovery recovery;
    err result;
};

/* ---- on the pool's threads ---- */

static err read_page(struct snapshot_job *job)
{
    struct slot *slot = &job->worker->slots[job->shard];
    err e = ERR_OK;

    if (job->fresh) {
        db_view_close(slot->view);
        slot->view = db_view_open(job->worker->options.db, job->shard);
        e = db_view_meta(slot->view, &job->meta_row);
    }
    if (e == ERR_OK)
        e = db_view_page(slot->view, buf_slice(&job->bytes), job->bytes_max, &job->rows);
    return e;
}

static err store_rows(struct snapshot_job *job)
{
    struct db *db = job->worker->options.db;

    /* Nothing is written then, see space.h. The sender takes a part for lost; a drop is asked for
     * again. */
    if (space_disk_full(job->worker->options.space))
        return !job->store && db_stage_is_empty(db, job->shard) ? ERR_OK : ERR_FULL;
    err e = job->fresh ? db_stage_begin(db, job->shard) : ERR_OK;
    if (e != ERR_OK || !job->store)
        return e;
    return db_stage_put(db, job->shard, buf_slice(&job->bytes));
}

static void on_work(uv_work_t *work)
{
    struct snapshot_job *job = CONTAINER_OF(work, struct snapshot_job, work);
    struct worker *worker = job->worker;

    switch (job->kind) {
    case SNAPSHOT_PAGE:
        job->result = read_page(job);
        break;
    case SNAPSHOT_STORE:
        job->result = store_rows(job);
        break;
    case SNAPSHOT_SWITCH:
        job->result = db_stage_switch(worker->options.db, job->shard, buf_slice(&job->bytes));
        break;
    case SNAPSHOT_FINISH:
        job->result = db_stage_finish(worker->options.db, job->shard);
        if (job->result == ERR_OK)
            job->result = worker_recovery_read(worker, job->shard, &job->recovery);
        break;
    }
}

/* ---- on the loop's thread ---- */

static void jobs_start(struct worker *worker);

static struct snapshot_job *job_new(struct worker *worker, enum snapshot_kind kind, uint32_t shard)
{
    struct snapshot_job *job = mem_zalloc(sizeof *job);

    job->worker = worker;
    job->kind = kind;
    job->shard = shard;
    return job;
}

static void job_free(struct snapshot_job *job)
{
    buf_deinit(&job->bytes);
    buf_deinit(&job->meta_row);
    db_rows_deinit(&job->rows);
    worker_recovery_deinit(&job->recovery);
    free(job);
}

/* What is stored stays in the order in which it came: jobs of one shard never overlap, since the
 * shard waits for each. */
static void job_wait(struct snapshot_job *job)
{
    struct worker *worker = job->worker;
    struct snapshot_job **place = &worker->snapshots_waiting;

    while (*place != NULL)
        place = &(*place)->next;
    *place = job;
    worker->slots[job->shard].snapshot_jobs++;
    jobs_start(worker);
}

static void take(struct buf *to, struct buf *from)
{
    *to = *from;
    *from = (struct buf){ 0 };
}

static void give_page(struct worker *worker, struct snapshot_job *job)
{
    worker->step(worker, job->shard,
                 &(struct shard_event){ .type = SHARD_SNAPSHOT_PAGE,
                                        .rows = job->rows.rows,
                                        .row_count = job->rows.count,
                                        .complete = job->rows.complete,
                                        .failed = job->result != ERR_OK,
                                        .request = buf_slice(&job->meta_row) });
}

static bool is_drained(const struct worker *worker, uint32_t shard)
{
    const struct slot *slot = &worker->slots[shard];
    bool checkpoint = worker->checkpoint_running && !worker->checkpoint.flush &&
                      worker->checkpoint.shard == shard;

    return slot->loads_open == 0 && slot->writes_open == 0 && slot->snapshot_jobs == 0 &&
           !checkpoint;
}

static void switch_begin(struct worker *worker, uint32_t shard)
{
    struct slot *slot = &worker->slots[shard];
    struct snapshot_job *job = job_new(worker, SNAPSHOT_SWITCH, shard);

    db_view_close(slot->view);
    slot->view = NULL;
    slot->install = INSTALL_SWITCH;
    take(&job->bytes, &slot->snapshot_meta);
    job_wait(job);
}

/* Begins the next step that writes to the database, once it has room. */
static void install_go_on(struct worker *worker, uint32_t shard)
{
    struct slot *slot = &worker->slots[shard];

    if (loop_now_ms(worker->options.loop) < slot->install_ms ||
        space_disk_full(worker->options.space))
        return;
    if (slot->install == INSTALL_DRAIN && is_drained(worker, shard)) {
        switch_begin(worker, shard);
    } else if (slot->install == INSTALL_EMPTIED) {
        slot->install = INSTALL_FINISH;
        job_wait(job_new(worker, SNAPSHOT_FINISH, shard));
    }
}

static void tell_no_space(struct worker *worker, uint32_t shard)
{
    log_event(worker->options.log, LOG_ERROR, "shard.snapshot_no_space", LOG_N("shard", shard));
}

/* The step is repeated from its beginning: it writes the same again. */
static void install_retry(struct worker *worker, struct snapshot_job *job)
{
    struct slot *slot = &worker->slots[job->shard];

    tell_no_space(worker, job->shard);
    slot->install_ms = loop_now_ms(worker->options.loop) + RETRY_MS;
    if (job->kind == SNAPSHOT_SWITCH) {
        take(&slot->snapshot_meta, &job->bytes);
        slot->install = INSTALL_DRAIN;
    } else {
        slot->install = INSTALL_EMPTIED;
    }
}

static void reset_done(struct worker *worker, uint32_t shard)
{
    struct slot *slot = &worker->slots[shard];

    if (slot->install == INSTALL_RECOVER) {
        slot->install = INSTALL_NONE;
        return;
    }
    CHECK(slot->install == INSTALL_RESET);
    slot->install = INSTALL_EMPTIED;
    install_go_on(worker, shard);
}

static void reset_log(struct worker *worker, uint32_t shard)
{
    worker->slots[shard].install = INSTALL_RESET;
    worker_write_reset(worker, shard, reset_done);
}

static void start_anew(struct worker *worker, struct snapshot_job *job)
{
    struct slot *slot = &worker->slots[job->shard];
    struct shard_stats stats;

    shard_stats_get(slot->shard, &stats);
    job->recovery.image.snapshot = stats.snapshot;
    bool repaired = slot->damaged || rep_is_quarantined(shard_rep(slot->shard));
    shard_free(slot->shard);
    slot->shard = NULL;
    slot->open_entries = 0;
    worker->held--;
    slot->install = INSTALL_NONE;
    job->recovery.image.rep.resumes = slot->resumes;
    slot->damaged = false;
    worker->checkpoint.flush_indexes[job->shard] =
        0; /* A flush on its way is of its rows before. */
    if (worker_recovery_adopt(worker, job->shard, &job->recovery) != ERR_OK)
        return;
    if (repaired && worker->options.ops.role_changed != NULL)
        worker->options.ops.role_changed(worker->options.user, job->shard);
    log_event(worker->options.log, LOG_INFO,
              job->recovery.image.rep.applied_index > 0 ? "shard.snapshot_installed"
                                                        : "shard.dropped",
              LOG_N("shard", job->shard), LOG_N("index", job->recovery.image.rep.applied_index));
    if (slot->has_record)
        worker->step(worker, job->shard,
                     &(struct shard_event){ .type = SHARD_RECORD, .record = &slot->record });
}

static void tell_damage(struct worker *worker, const struct snapshot_job *job)
{
    char text[DB_TEXT_BYTES] = "";

    if (!db_damage(worker->options.db, text))
        (void)node_log_damage(worker->options.store_log, job->shard, text);
    worker->options.ops.damaged(worker->options.user, job->shard, text);
}

static void job_done(struct worker *worker, struct snapshot_job *job)
{
    bool installs = job->kind == SNAPSHOT_SWITCH || job->kind == SNAPSHOT_FINISH;

    if (installs && job->result == ERR_FULL) {
        install_retry(worker, job);
        return;
    }
    if (job->result == ERR_CORRUPT || (installs && job->result != ERR_OK)) {
        tell_damage(worker, job);
        return;
    }
    switch (job->kind) {
    case SNAPSHOT_PAGE:
        give_page(worker, job);
        break;
    case SNAPSHOT_STORE:
        worker->step(worker, job->shard,
                     &(struct shard_event){ .type = job->store ? SHARD_SNAPSHOT_STORED
                                                               : SHARD_SNAPSHOT_DROPPED,
                                            .failed = job->result != ERR_OK });
        break;
    case SNAPSHOT_SWITCH:
        reset_log(worker, job->shard);
        break;
    case SNAPSHOT_FINISH:
        start_anew(worker, job);
        break;
    }
}

static void on_done(uv_work_t *work, int status)
{
    struct snapshot_job *job = CONTAINER_OF(work, struct snapshot_job, work);
    struct worker *worker = job->worker;

    CHECK(status == 0);
    worker->snapshots_open--;
    worker->slots[job->shard].snapshot_jobs--;
    if (!worker->stopping)
        job_done(worker, job);
    job_free(job);
    if (!worker->stopping)
        jobs_start(worker);
}

static void jobs_start(struct worker *worker)
{
    while (worker->snapshots_waiting != NULL && worker->snapshots_open < JOBS_MAX) {
        struct snapshot_job *job = worker->snapshots_waiting;
        worker->snapshots_waiting = job->next;
        worker->snapshots_open++;
        CHECK(uv_queue_work(loop_uv(worker->options.loop), &job->work, on_work, on_done) == 0);
    }
}

static void install_begin(struct worker *worker, uint32_t shard, struct snapshot_actions *actions)
{
    struct slot *slot = &worker->slots[shard];

    take(&slot->snapshot_meta, &actions->meta_row);
    slot->install = INSTALL_DRAIN;
    slot->resumes = shard_resumes(slot->shard);
    if (worker->checkpoint_waits && worker->checkpoint.shard == shard)
        worker_checkpoint_abandon(worker);
    worker_backup_drop(worker, shard);
    log_event(worker->options.log, LOG_INFO,
              rep_is_removed(shard_rep(slot->shard)) ? "shard.removed" : "shard.snapshot_received",
              LOG_N("shard", shard));
}

void worker_snapshot(struct worker *worker, uint32_t shard, struct snapshot_actions *actions)
{
    struct slot *slot = &worker->slots[shard];

    if (actions->close) {
        db_view_close(slot->view);
        slot->view = NULL;
    }
    if (actions->read) {
        struct snapshot_job *job = job_new(worker, SNAPSHOT_PAGE, shard);
        job->fresh = actions->fresh;
        job->bytes_max = actions->bytes_max;
        take(&job->bytes, &actions->after);
        job_wait(job);
    }
    if (actions->drop || actions->store) {
        struct snapshot_job *job = job_new(worker, SNAPSHOT_STORE, shard);
        job->fresh = actions->drop;
        job->store = actions->store;
        take(&job->bytes, &actions->rows);
        job_wait(job);
    }
    if (actions->install)
        install_begin(worker, shard, actions);
}

void worker_snapshot_tick(struct worker *worker)
{
    for (uint32_t shard = 0; shard < worker->options.shard_count; shard++)
        install_go_on(worker, shard);
}

static bool is_reset(void *user)
{
    const struct slot *slot = user;
    return slot->install == INSTALL_NONE;
}

static bool is_never(void *user)
{
    (void)user;
    return false;
}

/* The node starts: nothing else goes on until a full disk has room for it. */
err worker_snapshot_recover(struct worker *worker, uint32_t shard)
{
    if (!db_reset_due(worker->options.db, shard)) {
        /* Of an attempt that was cut short. Else the shard asks for it once it is open. */
        if (!space_disk_full(worker->options.space))
            (void)!db_stage_begin(worker->options.db, shard);
        return ERR_OK;
    }
    worker->slots[shard].install = INSTALL_RECOVER;
    worker_write_reset(worker, shard, reset_done);
    worker_write_start(worker);
    while (!loop_run_until(worker->options.loop, is_reset, &worker->slots[shard], TELL_MS))
        tell_no_space(worker, shard);
    err e = db_stage_finish(worker->options.db, shard);

    while (e == ERR_FULL) {
        tell_no_space(worker, shard);
        (void)loop_run_until(worker->options.loop, is_never, NULL, RETRY_MS);
        e = db_stage_finish(worker->options.db, shard);
    }
    return e;
}

void worker_snapshot_deinit(struct worker *worker)
{
    CHECK(worker->snapshots_open == 0);
    while (worker->snapshots_waiting != NULL) {
        struct snapshot_job *job = worker->snapshots_waiting;
        worker->snapshots_waiting = job->next;
        job_free(job);
    }
    for (uint32_t i = 0; i < worker->options.shard_count; i++) {
        db_view_close(worker->slots[i].view);
        buf_deinit(&worker->slots[i].snapshot_meta);
    }
}
