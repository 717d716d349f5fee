#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/io/worker/worker_internal.h"
#include "runtime/base/check.h"

#define LOG_READ_BYTES_MAX (1024u * 1024u)
/* Rows of at most so many keys are looked for in RocksDB's memory on the loop first: to a thread of
 * the pool and back costs more than finding a few there, and players who are new, or were evicted a
 * moment ago, need no disk. More keys share one way there and back. */
#define LOAD_HERE_KEYS_MAX  8u
#define LOAD_HERE_RARE      64u /* Of 255 are found. */
#define LOAD_HERE_EVERY     16u
#define LOAD_HERE_WEIGHT    8u
#define LOAD_BATCH_JOBS_MIN 8u

static void keys_of(const struct load_job *job, struct slice *ret_keys)
{
    struct reader reader = reader_from(buf_slice(&job->keys));

    for (uint32_t i = 0; i < job->key_count; i++)
        ret_keys[i] = read_bytes(&reader, STATE_KEY_BYTES_MAX);
    CHECK(reader_finish(&reader) == ERR_OK);
}

/* ---- on the pool's threads ---- */

static err read_rows(struct worker *worker, struct load_job *job)
{
    struct slice *keys = mem_alloc(sizeof *keys * job->key_count);

    keys_of(job, keys);
    err e = db_get_many(worker->options.db, job->shard, keys, job->key_count, &job->rows);
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

static void job_run(struct worker *worker, struct load_job *job)
{
    struct state_range range;

    switch (job->kind) {
    case LOAD_ROWS:
        job->result = read_rows(worker, job);
        break;
    case LOAD_RANGE:
        range = range_of(job);
        job->result = db_range(worker->options.db, job->shard, &range, &job->rows);
        break;
    case LOAD_LOG:
        job->result = node_log_read(worker->options.store_log, &job->log_range, &job->entries,
                                    &job->entry_count);
        break;
    }
}

static void on_work(uv_work_t *work)
{
    struct load_batch *batch = CONTAINER_OF(work, struct load_batch, work);

    for (struct load_job *job = batch->jobs.first; job != NULL; job = job->next)
        job_run(batch->worker, job);
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
    worker->step(worker, job->shard, &event);
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
    worker->slots[job->shard].loads_open--;
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

static struct load_job *job_new(struct worker *worker, enum load_kind kind, uint32_t shard)
{
    struct load_job *job = worker->free_loads;

    if (job != NULL)
        worker->free_loads = job->next;
    else
        job = mem_zalloc(sizeof *job);
    job->next = NULL;
    job->kind = kind;
    job->shard = shard;
    job->result = ERR_OK;
    worker->slots[shard].loads_open++;
    return job;
}

static void job_wait(struct load_list *list, struct load_job *job)
{
    if (list->last != NULL)
        list->last->next = job;
    else
        list->first = job;
    list->last = job;
    list->count++;
}

static struct load_job *job_take(struct load_list *list)
{
    struct load_job *job = list->first;

    if (job == NULL)
        return NULL;
    list->first = job->next;
    if (list->first == NULL)
        list->last = NULL;
    list->count--;
    job->next = NULL;
    return job;
}

static void batches_start(struct worker *worker);

static void on_done(uv_work_t *work, int status)
{
    struct load_batch *batch = CONTAINER_OF(work, struct load_batch, work);
    struct worker *worker = batch->worker;
    struct load_list done = batch->jobs;
    struct load_job *job;

    CHECK(status == 0);
    batch->open = false;
    batch->jobs = (struct load_list){ 0 };
    worker->loads_open -= done.count;
    while ((job = job_take(&done)) != NULL) {
        if (job->result != ERR_OK)
            report_failure(worker, job);
        if ((job->result == ERR_OK || job->kind == LOAD_LOG) && !worker->stopping)
            give_back(worker, job);
        job_clear(worker, job);
    }
    batches_start(worker);
}

/* Pages and parts of the log take long: rows do not wait behind them. False: nothing may go. */
static bool batch_fill(struct worker *worker, struct load_batch *batch, uint32_t count)
{
    struct load_list *waiting = &worker->loads_waiting;

    while (count-- > 0 && waiting->first != NULL &&
           worker->loads_open < worker->options.loads_max) {
        struct load_job *job = job_take(waiting);
        job_wait(&batch->jobs, job);
        worker->loads_open++;
        if (job->kind != LOAD_ROWS)
            break;
    }
    return batch->jobs.first != NULL;
}

/* Shares what waits among the batches that are free. */
static void batches_start(struct worker *worker)
{
    struct load_list *waiting = &worker->loads_waiting;

    for (uint32_t i = 0; i < LOAD_BATCHES_MAX && waiting->first != NULL; i++) {
        struct load_batch *batch = &worker->load_batches[i];
        uint32_t share = waiting->count / (LOAD_BATCHES_MAX - i) + 1;
        if (batch->open)
            continue;
        if (share < LOAD_BATCH_JOBS_MIN)
            share = LOAD_BATCH_JOBS_MIN;
        if (!batch_fill(worker, batch, share))
            return;
        batch->open = true;
        CHECK(uv_queue_work(loop_uv(worker->options.loop), &batch->work, on_work, on_done) == 0);
    }
}

static void job_ask(struct worker *worker, struct load_job *job)
{
    job_wait(&worker->loads_asked, job);
    loop_hook_arm(&worker->round_hook);
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
    job_ask(worker, job);
}

/* Rows of tables that are hardly ever found in RocksDB's memory are looked for there now and then
 * only: a search in vain costs half of one that finds. */
static bool is_worth_a_look(struct worker *worker, uint8_t table)
{
    return worker->load_here[table] >= LOAD_HERE_RARE ||
           worker->loads_sent++ % LOAD_HERE_EVERY == 0;
}

/* True: the rows were all in RocksDB's memory. */
static bool load_here(struct worker *worker, struct load_job *job)
{
    struct slice keys[LOAD_HERE_KEYS_MAX];

    if (job->kind != LOAD_ROWS || job->key_count > LOAD_HERE_KEYS_MAX)
        return false;
    keys_of(job, keys);
    uint8_t *found = &worker->load_here[keys[0].data[0]];
    if (!is_worth_a_look(worker, keys[0].data[0]))
        return false;
    if (db_find_cached(worker->options.db, job->shard, keys, job->key_count, &job->rows) !=
        ERR_OK) {
        *found = (uint8_t)(*found - *found / LOAD_HERE_WEIGHT);
        return false;
    }
    *found = (uint8_t)(*found + (UINT8_MAX - *found) / LOAD_HERE_WEIGHT);
    return true;
}

void worker_load_init(struct worker *worker)
{
    for (uint32_t i = 0; i < LOAD_BATCHES_MAX; i++)
        worker->load_batches[i].worker = worker;
    memset(worker->load_here, UINT8_MAX, sizeof worker->load_here);
}

/* Steps may ask for more: the hook then runs once more in this round. */
void worker_load_round(struct worker *worker)
{
    struct load_list asked = worker->loads_asked;
    struct load_job *job;

    worker->loads_asked = (struct load_list){ 0 };
    while ((job = job_take(&asked)) != NULL) {
        if (!load_here(worker, job)) {
            job_wait(&worker->loads_waiting, job);
            continue;
        }
        give_back(worker, job);
        job_clear(worker, job);
    }
    batches_start(worker);
}

void worker_load_rows(struct worker *worker, uint32_t shard, const struct need *need)
{
    struct reader reader = reader_from(buf_slice(&need->ranges));

    if (need->key_count > 0) {
        struct load_job *job = job_new(worker, LOAD_ROWS, shard);
        buf_append(&job->keys, need->keys.data, need->keys.size);
        job->key_count = need->key_count;
        job->load_generation = need->load_generation;
        job_ask(worker, job);
    }
    while (reader_left(&reader) > 0)
        load_range(worker, shard, need, &reader);
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
    job_ask(worker, job);
}

void worker_load_deinit(struct worker *worker)
{
    struct load_job *open;

    CHECK(worker->loads_open == 0);
    while ((open = job_take(&worker->loads_waiting)) != NULL)
        job_clear(worker, open);
    while ((open = job_take(&worker->loads_asked)) != NULL)
        job_clear(worker, open);
    while (worker->free_loads != NULL) {
        struct load_job *job = worker->free_loads;
        worker->free_loads = job->next;
        buf_deinit(&job->keys);
        free(job);
    }
}
