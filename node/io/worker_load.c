#include <stdio.h>
#include <stdlib.h>

#include "node/io/worker_internal.h"
#include "runtime/base/check.h"

#define LOG_READ_BYTES_MAX (1024u * 1024u)
/* Rows of at most so many keys are looked for in RocksDB's memory on the loop first: to a thread of
 * the pool and back costs more than finding a few there, and players who are new, or were evicted a
 * moment ago, need no disk. More keys share one way there and back. */
#define LOAD_HERE_KEYS_MAX 8u

static void jobs_start(struct worker *worker);

static void keys_of(const struct load_job *job, struct slice *ret_keys)
{
    struct reader reader = reader_from(buf_slice(&job->keys));

    for (uint32_t i = 0; i < job->key_count; i++)
        ret_keys[i] = read_bytes(&reader, STATE_KEY_BYTES_MAX);
    CHECK(reader_finish(&reader) == ERR_OK);
}

/* ---- on the pool's threads ---- */

static err read_rows(struct load_job *job)
{
    struct slice *keys = mem_alloc(sizeof *keys * job->key_count);

    keys_of(job, keys);
    err e = db_get_many(job->worker->options.db, job->shard, keys, job->key_count, &job->rows);
    free(keys);
    return e;
}

static struct state_range range_of(const struct load_job *job)
{
    struct reader reader = reader_from(buf_slice(&job->keys));
    struct state_range range;

    range.prefix = read_bytes(&reader, STATE_KEY_BYTES_MAX);
    range.after = read_bytes(&reader, STATE_KEY_BYTES_MAX);
    range.limit = read_u32(&reader);
    CHECK(reader_finish(&reader) == ERR_OK);
    return range;
}

static void on_work(uv_work_t *work)
{
    struct load_job *job = CONTAINER_OF(work, struct load_job, work);
    struct state_range range;

    switch (job->kind) {
    case LOAD_ROWS:
        job->result = read_rows(job);
        break;
    case LOAD_RANGE:
        range = range_of(job);
        job->result = db_range(job->worker->options.db, job->shard, &range, &job->rows);
        break;
    case LOAD_LOG:
        job->result = node_log_read(job->worker->options.store_log, &job->log_range, &job->entries,
                                    &job->entry_count);
        break;
    }
}

/* ---- on the loop's thread ---- */

#define DAMAGE_TEXT_BYTES 320u
_Static_assert(DAMAGE_TEXT_BYTES == NODE_LOG_TEXT_BYTES && DAMAGE_TEXT_BYTES == DB_TEXT_BYTES,
               "either store says what is damaged");

static void give_back(struct worker *worker, struct load_job *job)
{
    struct state_range range = { 0 };
    struct shard_event event = { .type = SHARD_ROWS };

    if (job->kind == LOAD_LOG) {
        event.type = SHARD_LOG_READ;
        event.index = job->log_range.from_index;
        event.entries = job->entries;
        event.entry_count = job->entry_count;
    } else {
        event.load_generation = job->load_generation;
        event.rows = job->rows.rows;
        event.row_count = job->rows.count;
        if (job->kind == LOAD_RANGE) {
            range = range_of(job);
            event.range = &range;
            event.complete = job->rows.complete;
        }
    }
    worker_step(worker, job->shard, &event);
}

static void job_clear(struct worker *worker, struct load_job *job)
{
    for (uint32_t i = 0; i < job->entry_count; i++)
        entry_unref(job->entries[i]);
    free(job->entries);
    job->entries = NULL;
    job->entry_count = 0;
    db_rows_deinit(&job->rows);
    buf_clear(&job->keys);
    job->next = worker->free_loads;
    worker->free_loads = job;
}

/* Rows that cannot be read are never taken for absent: the node stops, and another replica serves.
 * So too for damaged entries of the log: their shard's owner alone sends them, and a member that is
 * behind would wait for ever. A part that was cut is given back as nothing; rep asks elsewhere. */
static void report_failure(struct worker *worker, const struct load_job *job)
{
    char text[DAMAGE_TEXT_BYTES] = "";
    bool passing = job->kind == LOAD_LOG && job->result != ERR_CORRUPT; /* Cut meanwhile. */

    log_event(worker->options.log, passing ? LOG_WARN : LOG_ERROR, "shard.load_failed",
              LOG_N("shard", job->shard), LOG_S("error", err_text(job->result)));
    if (passing || worker->stopping)
        return;
    bool named = job->kind == LOAD_LOG
                     ? node_log_damage(worker->options.store_log, job->shard, text)
                     : db_damage(worker->options.db, text);
    if (!named)
        snprintf(text, sizeof text, "%s", err_text(job->result));
    worker->options.ops.damaged(worker->options.user, job->shard, text);
}

static void on_done(uv_work_t *work, int status)
{
    struct load_job *job = CONTAINER_OF(work, struct load_job, work);
    struct worker *worker = job->worker;

    CHECK(status == 0);
    worker->loads_open--;
    if (job->result != ERR_OK)
        report_failure(worker, job);
    if ((job->result == ERR_OK || job->kind == LOAD_LOG) && !worker->stopping)
        give_back(worker, job);
    job_clear(worker, job);
    jobs_start(worker);
}

static struct load_job *job_new(struct worker *worker, enum load_kind kind, uint32_t shard)
{
    struct load_job *job = worker->free_loads;

    if (job != NULL)
        worker->free_loads = job->next;
    else
        job = mem_zalloc(sizeof *job);
    job->worker = worker;
    job->next = NULL;
    job->kind = kind;
    job->shard = shard;
    job->result = ERR_OK;
    return job;
}

static void job_wait(struct load_list *list, struct load_job *job)
{
    if (list->last != NULL)
        list->last->next = job;
    else
        list->first = job;
    list->last = job;
}

static struct load_job *job_take(struct load_list *list)
{
    struct load_job *job = list->first;

    if (job == NULL)
        return NULL;
    list->first = job->next;
    if (list->first == NULL)
        list->last = NULL;
    job->next = NULL;
    return job;
}

static void jobs_start(struct worker *worker)
{
    while (worker->loads_waiting.first != NULL && worker->loads_open < worker->options.loads_max) {
        struct load_job *job = job_take(&worker->loads_waiting);
        worker->loads_open++;
        CHECK(uv_queue_work(loop_uv(worker->options.loop), &job->work, on_work, on_done) == 0);
    }
}

static void load_range(struct worker *worker, uint32_t shard, const struct need *need,
                       struct reader *reader)
{
    const uint8_t *begin = reader->at;
    struct load_job *job = job_new(worker, LOAD_RANGE, shard);

    read_bytes(reader, STATE_KEY_BYTES_MAX);
    read_bytes(reader, STATE_KEY_BYTES_MAX);
    read_u32(reader);
    CHECK(!reader->bad);
    buf_append(&job->keys, begin, (size_t)(reader->at - begin));
    job->load_generation = need->load_generation;
    job_wait(&worker->loads_waiting, job);
}

/* True: the rows were all in RocksDB's memory, and wait for the end of the round. */
static bool load_here(struct worker *worker, struct load_job *job)
{
    struct slice keys[LOAD_HERE_KEYS_MAX];

    if (job->key_count > LOAD_HERE_KEYS_MAX)
        return false;
    keys_of(job, keys);
    if (db_find_cached(worker->options.db, job->shard, keys, job->key_count, &job->rows) != ERR_OK)
        return false;
    job_wait(&worker->loads_ready, job);
    loop_hook_arm(&worker->round_hook);
    return true;
}

void worker_load_give_ready(struct worker *worker)
{
    struct load_list ready = worker->loads_ready;
    struct load_job *job;

    worker->loads_ready = (struct load_list){ 0 };
    while ((job = job_take(&ready)) != NULL) {
        give_back(worker, job);
        job_clear(worker, job);
    }
}

void worker_load_rows(struct worker *worker, uint32_t shard, const struct need *need)
{
    struct reader reader = reader_from(buf_slice(&need->ranges));

    if (need->key_count > 0) {
        struct load_job *job = job_new(worker, LOAD_ROWS, shard);
        buf_append(&job->keys, need->keys.data, need->keys.size);
        job->key_count = need->key_count;
        job->load_generation = need->load_generation;
        if (!load_here(worker, job))
            job_wait(&worker->loads_waiting, job);
    }
    while (reader_left(&reader) > 0)
        load_range(worker, shard, need, &reader);
    jobs_start(worker);
}

void worker_load_log(struct worker *worker, uint32_t shard, const struct rep_log_read *read)
{
    struct load_job *job = job_new(worker, LOAD_LOG, shard);

    job->log_range = (struct node_log_range){
        .shard = shard,
        .from_index = read->from_index,
        .to_index = read->to_index,
        .bytes_max = LOG_READ_BYTES_MAX,
    };
    job_wait(&worker->loads_waiting, job);
    jobs_start(worker);
}

void worker_load_deinit(struct worker *worker)
{
    struct load_job *open;

    CHECK(worker->loads_open == 0);
    while ((open = job_take(&worker->loads_waiting)) != NULL)
        job_clear(worker, open);
    while ((open = job_take(&worker->loads_ready)) != NULL)
        job_clear(worker, open);
    while (worker->free_loads != NULL) {
        struct load_job *job = worker->free_loads;
        worker->free_loads = job->next;
        buf_deinit(&job->keys);
        free(job);
    }
}
