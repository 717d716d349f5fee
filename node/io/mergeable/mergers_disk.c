/* The disk of the mergeable class: what a start reads, batches of log records, checkpoints. */
#include <stdlib.h>
#include <string.h>

#include "node/core/mergeable/disk.h"
#include "node/core/mergeable/rounds.h"
#include "node/io/mergeable/mergers_internal.h"
#include "runtime/base/check.h"

#define MEMBERS_FORMAT            1u
#define MEMBERS_FORMAT_GENERATION 2u
#define CLOSE_MS_MAX              60000u

/* ---- the shell's own record ---- */

static void put_ids(struct buf *out, const uint64_t *ids, uint32_t count)
{
    buf_put_u8(out, (uint8_t)count);
    for (uint32_t i = 0; i < count; i++)
        buf_put_u64(out, ids[i]);
}

static uint32_t read_ids(struct reader *reader, uint64_t *ids, uint32_t count_max)
{
    uint32_t count = read_u8(reader);

    reader->bad |= count > count_max;
    for (uint32_t i = 0; i < count && !reader->bad; i++)
        ids[i] = read_u64(reader);
    return reader->bad ? 0 : count;
}

/* u8 format, u64 boot, u64 config, members, new members, departing: u8 count, u64 each. Where a
 * restore was, format 2 and at the end u64 generation; no members then: there is no replica. */
void mergers_disk_members(struct mergers *mergers, uint32_t shard)
{
    const struct merger *merger = &mergers->shards[shard];
    const struct membership *m = &merger->members.membership;
    struct buf bytes = { 0 };

    buf_put_u8(&bytes, merger->generation == 0 ? MEMBERS_FORMAT : MEMBERS_FORMAT_GENERATION);
    buf_put_u64(&bytes, merger->boot);
    buf_put_u64(&bytes, m->config);
    put_ids(&bytes, m->members, m->count);
    put_ids(&bytes, m->new_members, m->new_count);
    put_ids(&bytes, merger->members.departing, merger->members.departing_count);
    if (merger->generation != 0)
        buf_put_u64(&bytes, merger->generation);
    merge_batch_members(mergers_disk_batch(mergers, shard), shard, buf_slice(&bytes));
    buf_deinit(&bytes);
}

/* ---- a start ---- */

struct loading {
    struct mergers *mergers;
    struct merger *merger;
    uint32_t shard;
    bool begun, unusable;
    bool generation_alone; /* There was no replica. */
};

static void on_members(void *user, struct slice bytes)
{
    struct loading *loading = user;
    struct merge_members *members = &loading->merger->members;
    struct reader reader = reader_from(bytes);
    uint8_t format = read_u8(&reader);

    loading->merger->boot = read_u64(&reader);
    members->membership.config = read_u64(&reader);
    members->membership.count = read_ids(&reader, members->membership.members, MEMBERS_MAX);
    members->membership.new_count = read_ids(&reader, members->membership.new_members, MEMBERS_MAX);
    members->departing_count = read_ids(&reader, members->departing, MERGE_DEPARTING_MAX);
    if (format == MEMBERS_FORMAT_GENERATION)
        loading->merger->generation = read_u64(&reader);
    loading->generation_alone = members->membership.count == 0;
    if ((format == MEMBERS_FORMAT || format == MEMBERS_FORMAT_GENERATION) &&
        reader_finish(&reader) == ERR_OK)
        return;
    *members = (struct merge_members){ 0 };
    loading->generation_alone = false;
    loading->unusable = true;
}

static struct merge_replica *begin(struct loading *loading)
{
    struct merger *merger = loading->merger;

    if (!loading->begun) {
        loading->begun = true;
        merger->boot = mergers_next_boot(loading->mergers, loading->shard);
        const struct merge_options options = mergers_options_of(loading->mergers, loading->shard);
        merger->replica = merge_new(&options);
        merger->life++;
        loading->mergers->replicas++;
    }
    return merger->replica;
}

static void on_state(void *user, struct slice state)
{
    struct loading *loading = user;

    if (!loading->begun)
        loading->merger->generation = merge_state_generation(state);
    loading->unusable |= merge_state_restore(begin(loading), state) != ERR_OK;
}

static void on_row(void *user, struct slice key_bytes, struct slice row)
{
    struct loading *loading = user;
    struct reader reader = reader_from(key_bytes);
    struct merge_replica *replica = begin(loading);
    struct merge_key *key = NULL;

    if (merge_key_decode(&reader, &key) != ERR_OK) {
        (void)!merge_row_restore(replica, NULL, row);
        return;
    }
    if (merge_row_restore(replica, key, row) != ERR_OK)
        log_event(loading->mergers->options.log, LOG_ERROR, "documents.row_unreadable",
                  LOG_N("shard", loading->shard));
    merge_key_unref(key);
}

static void on_log(void *user, uint64_t number, struct slice record)
{
    struct loading *loading = user;
    struct merge_replica *replica = begin(loading);

    loading->merger->log_base = number;
    loading->merger->log_bytes += record.size;
    if (!loading->unusable)
        loading->unusable = merge_replay(replica, record) != ERR_OK;
}

/* With a clock that was set back, a shard that the disk has no more does not begin below its last.
 */
static void follow_boot(struct mergers *mergers, uint64_t boot)
{
    if (mergers->options.boot < boot)
        mergers->options.boot = boot;
}

static err load(struct mergers *mergers, uint32_t shard)
{
    struct merger *merger = &mergers->shards[shard];
    struct loading loading = { .mergers = mergers, .merger = merger, .shard = shard };
    bool has;
    err e = merge_db_has(mergers->db, shard, &has);

    if (e != ERR_OK || !has)
        return e;
    e = merge_db_read(mergers->db, shard,
                      &(struct merge_db_visit){ .members = on_members,
                                                .state = on_state,
                                                .row = on_row,
                                                .log = on_log,
                                                .user = &loading });
    if (e != ERR_OK)
        return e;
    if (!loading.generation_alone)
        (void)begin(&loading);
    merger->generation_durable = merger->generation;
    merger->generation_known = !loading.unusable;
    follow_boot(mergers, merger->boot);
    merger->whole = !loading.unusable;
    if (loading.unusable)
        log_event(mergers->options.log, LOG_ERROR, "documents.shard_unreadable",
                  LOG_N("shard", shard),
                  LOG_S("what", "it takes everything in from the other members"));
    return ERR_OK;
}

static void unload(struct mergers *mergers)
{
    for (uint32_t i = 0; i < mergers->options.shard_count; i++) {
        struct merger *merger = &mergers->shards[i];

        merge_free(merger->replica);
        *merger = (struct merger){ 0 };
    }
    mergers->replicas = 0;
}

static err load_all(struct mergers *mergers)
{
    err e = ERR_OK;

    for (uint32_t i = 0; i < mergers->options.shard_count && e == ERR_OK; i++)
        e = load(mergers, i);
    if (e != ERR_OK)
        unload(mergers);
    return e;
}

err mergers_disk_open(struct mergers *mergers, char ret_text[MERGERS_TEXT_BYTES])
{
    const struct mergers_options *options = &mergers->options;

    mergers->next = merge_batch_new();
    mergers->in_next = mem_zalloc(options->shard_count * sizeof *mergers->in_next);
    mergers->job.mergers = mergers;
    if (!merge_db_exists(options->directory))
        return ERR_OK;
    err e = merge_db_open(options->directory, options->log, &mergers->db, ret_text);

    if (e == ERR_OK)
        e = load_all(mergers);
    if (e != ERR_CORRUPT)
        return e;
    merge_db_close(mergers->db);
    mergers->db = NULL;
    log_event(options->log, LOG_ERROR, "documents.database_given_up",
              LOG_S("directory", options->directory), LOG_S("why", ret_text),
              LOG_S("what", "all documents come from the other members"));
    return merge_db_begin_again(options->directory, options->log, &mergers->db, ret_text);
}

/* ---- batches ---- */

bool mergers_disk_is_full(const struct mergers *mergers)
{
    return space_state(mergers->options.space) == SPACE_FULL;
}

bool mergers_disk_is_behind(const struct mergers *mergers)
{
    return merge_batch_bytes(mergers->next) > BATCH_BYTES_MAX || mergers_disk_is_full(mergers);
}

struct merge_batch *mergers_disk_batch(struct mergers *mergers, uint32_t shard)
{
    mergers->in_next[shard] = true;
    loop_hook_arm(&mergers->hook);
    return mergers->next;
}

static void on_work(uv_work_t *work)
{
    struct disk_job *job = CONTAINER_OF(work, struct disk_job, work);
    struct mergers *mergers = job->mergers;
    char text[MERGE_DB_TEXT_BYTES] = "";
    uint64_t began_ns = loop_clock_ns();

    if (job->db == NULL &&
        merge_db_open(mergers->options.directory, mergers->options.log, &job->db, text) != ERR_OK) {
        log_event(mergers->options.log, LOG_ERROR, "documents.cannot_open", LOG_S("why", text));
        abort();
    }
    merge_db_write(job->db, job->batch);
    job->took_ns = loop_clock_ns() - began_ns;
}

static void on_done(uv_work_t *work, int status)
{
    struct disk_job *job = CONTAINER_OF(work, struct disk_job, work);
    struct mergers *mergers = job->mergers;

    CHECK(status == 0);
    mergers->db = job->db;
    mergers->disk_ns += job->took_ns;
    job->open = false;
    merge_batch_free(job->batch);
    for (uint32_t i = 0; i < job->count; i++) {
        const struct disk_part *part = &job->parts[i];
        struct merger *merger = &mergers->shards[part->shard];

        merger->generation_durable = part->generation;
        if (merger->replica == NULL || !merger->started || merger->life != part->life)
            continue;
        merge_durable(merger->replica, part->position);
        mergers->drain(mergers, part->shard);
    }
    free(job->parts);
    job->parts = NULL;
    if (merge_batch_bytes(mergers->next) > 0)
        loop_hook_arm(&mergers->hook);
}

void mergers_disk_run(void *user)
{
    struct mergers *mergers = user;
    struct disk_job *job = &mergers->job;
    uint32_t shard_count = mergers->options.shard_count;

    if (job->open || merge_batch_bytes(mergers->next) == 0 ||
        space_disk_full(mergers->options.space))
        return;
    job->db = mergers->db;
    job->batch = mergers->next;
    mergers->next = merge_batch_new();
    job->count = 0;
    job->parts = mem_alloc(shard_count * sizeof *job->parts);
    for (uint32_t i = 0; i < shard_count; i++) {
        if (!mergers->in_next[i])
            continue;
        mergers->in_next[i] = false;
        job->parts[job->count++] =
            (struct disk_part){ .shard = i,
                                .life = mergers->shards[i].life,
                                .position = mergers->shards[i].taken,
                                .generation = mergers->shards[i].generation };
    }
    job->open = true;
    CHECK(uv_queue_work(loop_uv(mergers->options.loop), &job->work, on_work, on_done) == 0);
}

/* ---- checkpoints ---- */

struct saving {
    struct merge_batch *batch;
    uint32_t shard;
};

static void on_row_gone(void *user, const struct merge_key *key)
{
    const struct saving *saving = user;
    struct buf name = { 0 };

    merge_key_encode(key, &name);
    merge_batch_row_gone(saving->batch, saving->shard, buf_slice(&name));
    buf_deinit(&name);
}

static void on_row_changed(void *user, const struct merge_row *row)
{
    const struct saving *saving = user;
    struct buf name = { 0 }, bytes = { 0 };

    merge_key_encode(row->key, &name);
    merge_record_encode(&row->record, &bytes);
    merge_batch_row(saving->batch, saving->shard, buf_slice(&name), buf_slice(&bytes));
    buf_deinit(&name);
    buf_deinit(&bytes);
}

void mergers_disk_checkpoint(struct mergers *mergers, uint32_t shard)
{
    struct merger *merger = &mergers->shards[shard];
    struct merge_batch *batch = mergers_disk_batch(mergers, shard);
    struct buf state = { 0 };

    merge_state_encode(merger->replica, &state);
    merge_batch_state(batch, shard, buf_slice(&state));
    merge_store_save(&merger->replica->store,
                     &(struct merge_saving){ .gone = on_row_gone,
                                             .row = on_row_changed,
                                             .user = &(struct saving){ batch, shard } });
    merge_batch_cut(batch, shard, merger->log_base + merger->taken + 1);
    merger->state_bytes = state.size;
    buf_deinit(&state);
    merger->log_bytes = 0;
    merger->checkpoint_ms = loop_now_ms(mergers->options.loop);
}

void mergers_disk_drop(struct mergers *mergers, uint32_t shard)
{
    merge_batch_drop(mergers_disk_batch(mergers, shard), shard);
}

static bool is_written(void *user)
{
    const struct mergers *mergers = user;

    return !mergers->job.open &&
           (merge_batch_bytes(mergers->next) == 0 || space_disk_full(mergers->options.space));
}

void mergers_disk_close(struct mergers *mergers)
{
    mergers_disk_run(mergers);
    CHECK(loop_run_until(mergers->options.loop, is_written, mergers, CLOSE_MS_MAX));
    merge_batch_free(mergers->next);
    free(mergers->in_next);
    merge_db_close(mergers->db);
}
