/*
 * Backups: a shard is armed, stops right before the entry that takes the cut, is frozen there as
 * for any checkpoint, and goes on at once. When that checkpoint is written, a view of the database
 * shows the shard as of the cut, and is read page by page. docs/backup.md.
 *
 * None of this is state: what a restart or another owner forgets, the command line begins again.
 */
#include <stdlib.h>
#include <string.h>

#include "holdfast/v1/backup.pb-c.h"
#include "idl/method.h"
#include "node/core/handler/refusal.h"
#include "node/io/worker/worker_internal.h"
#include "runtime/base/check.h"

#define PAGE_BYTES_MAX  (1024u * 1024u)
#define ARMED_MS_MAX    30000u  /* Meanwhile the shard has no checkpoint. */
#define VIEW_IDLE_MS    120000u /* The command line asks for every view more often. */
#define READS_MAX       2u
#define RETRY_MS        50u
#define META_TABLE_SIZE 1u

typedef Holdfast__V1__ReadBackupRequest read_request;

struct backup_read {
    uv_work_t work;
    struct worker *worker;
    uint32_t shard;
    uint64_t call;
    struct db_view *view;
    uint64_t index;
    struct buf after;
    uint32_t bytes_max;
    uint32_t reserved; /* Of the budget for answers, before anything is read. */
    struct buf meta;
    struct db_rows rows;
    err result;
};

/* ---- answers ---- */

static void answer(struct worker *worker, uint64_t call, enum reply_status status,
                   struct slice body)
{
    const struct shard_reply reply = { .call = call, .status = status };

    worker->options.ops.answer(worker->options.user, call, &reply, body);
}

static void pack(const ProtobufCMessage *message, struct buf *out)
{
    size_t size = protobuf_c_message_get_packed_size(message);

    protobuf_c_message_pack(message, buf_reserve(out, size + 1));
    out->size = size;
}

static void answer_message(struct worker *worker, uint64_t call, const ProtobufCMessage *message)
{
    struct buf body = { 0 };

    pack(message, &body);
    answer(worker, call, REPLY_OK, buf_slice(&body));
    buf_deinit(&body);
}

/* `message` is static. */
static void answer_refused(struct worker *worker, uint64_t call, Holdfast__V1__ErrorCode code,
                           const char *message)
{
    const struct refusal refusal = {
        .code = code,
        .message = message,
        .retry_after_ms = code == CODE(THROTTLED) ? RETRY_MS : 0,
    };
    struct buf body = { 0 };

    refusal_encode(&refusal, &body);
    answer(worker, call, REPLY_REFUSED, buf_slice(&body));
    buf_deinit(&body);
}

/* ---- arming ---- */

static void forget(struct worker *worker, uint32_t shard)
{
    struct slot *slot = &worker->slots[shard];

    CHECK(slot->backup.state != BACKUP_FROZEN);
    CHECK(slot->backup.reads_open == 0);
    if (slot->backup.state == BACKUP_ARMED)
        shard_arm(slot->shard, 0);
    db_view_close(slot->backup.view);
    slot->backup = (struct backup){ 0 };
}

static bool has_checkpoint_open(const struct worker *worker, uint32_t shard)
{
    const struct checkpoint_job *job = &worker->checkpoint;

    return (worker->checkpoint_running || worker->checkpoint_waits) && !job->flush &&
           job->shard == shard;
}

static void arm(struct worker *worker, uint32_t shard, uint64_t call, struct slice request)
{
    Holdfast__V1__ArmBackupResponse response = HOLDFAST__V1__ARM_BACKUP_RESPONSE__INIT;
    Holdfast__V1__ArmBackupRequest *message =
        holdfast__v1__arm_backup_request__unpack(NULL, request.size, request.data);
    struct slot *slot = &worker->slots[shard];
    uint64_t cut = message != NULL ? message->cut : 0;

    if (message != NULL)
        holdfast__v1__arm_backup_request__free_unpacked(message, NULL);
    if (!shard_serves(slot->shard)) {
        answer(worker, call, REPLY_NOT_OWNER, (struct slice){ 0 });
    } else if (cut <= shard_meta(slot->shard)->cut_id) {
        answer_refused(worker, call, CODE(VERSION_CONFLICT), "the shard has taken that cut");
    } else if (slot->backup.state == BACKUP_FROZEN || slot->backup.reads_open > 0 ||
               has_checkpoint_open(worker, shard)) {
        answer_refused(worker, call, CODE(THROTTLED), "a checkpoint is being written");
    } else {
        forget(worker, shard);
        slot->backup = (struct backup){ .state = BACKUP_ARMED,
                                        .cut = cut,
                                        .touched_ms = loop_now_ms(worker->options.loop) };
        shard_arm(slot->shard, cut);
        answer_message(worker, call, &response.base);
    }
}

/* ---- the cut ---- */

static void view(struct worker *worker, uint32_t shard, uint64_t index)
{
    struct backup *backup = &worker->slots[shard].backup;

    backup->state = BACKUP_VIEWED;
    backup->view = db_view_open(worker->options.db, shard);
    backup->index = index;
    backup->touched_ms = loop_now_ms(worker->options.loop);
}

void worker_backup_freeze(struct worker *worker, uint32_t shard)
{
    struct slot *slot = &worker->slots[shard];
    struct backup *backup = &slot->backup;
    uint64_t index = shard_applied_index(slot->shard);

    CHECK(backup->state == BACKUP_ARMED);
    /* Nothing was applied since the last checkpoint: the database shows the same. */
    if (shard_checkpoint_begin(slot->shard, &backup->checkpoint))
        backup->state = BACKUP_FROZEN;
    else
        view(worker, shard, index);
    shard_pass_cut(slot->shard);
}

uint32_t worker_backup_frozen(const struct worker *worker)
{
    for (uint32_t i = worker->options.shard_first; i < worker->options.shard_count;
         i += worker->options.shard_stride) {
        if (worker->slots[i].backup.state == BACKUP_FROZEN)
            return i;
    }
    return UINT32_MAX;
}

void worker_backup_written(struct worker *worker, uint32_t shard, bool written)
{
    struct backup *backup = &worker->slots[shard].backup;
    uint64_t index = backup->checkpoint.index;

    CHECK(backup->state == BACKUP_FROZEN);
    backup->checkpoint = (struct shard_checkpoint){ 0 };
    if (written)
        view(worker, shard, index);
    else
        *backup = (struct backup){ 0 };
}

/* ---- pages ---- */

/* A backup has no events: a restore would leave them out (docs/events.md). */
static bool is_event(const struct shard_row *row)
{
    return row->key.size > 0 && row->key.data[0] == TABLE_EVENT;
}

/* A page that begins with events is read from behind all of them: the caller goes on from the last
 * row that it was given. */
static void on_work(uv_work_t *work)
{
    struct backup_read *job = CONTAINER_OF(work, struct backup_read, work);
    const uint8_t behind[] = { TABLE_EVENT + 1 };

    job->result = ERR_OK;
    if (job->after.size == 0)
        job->result = db_view_meta(job->view, &job->meta);
    if (job->result == ERR_OK)
        job->result = db_view_page(job->view, buf_slice(&job->after), job->bytes_max, &job->rows);
    if (job->result != ERR_OK || job->rows.count == 0 || !is_event(&job->rows.rows[0]))
        return;
    db_rows_deinit(&job->rows);
    job->result = db_view_page(job->view, (struct slice){ behind, sizeof behind }, job->bytes_max,
                               &job->rows);
}

/* Before a page is read. False: answers fill their budget. */
static bool reserve(const struct worker *worker, uint32_t bytes)
{
    struct budget *answers = worker->options.answers;

    return answers == NULL || budget_reserve(answers, BUDGET_READ, bytes);
}

/* The page has `size` bytes, 0 without one. Returns what its reply holds of the budget. */
static uint32_t commit(const struct backup_read *job, size_t size)
{
    struct budget *answers = job->worker->options.answers;

    if (answers == NULL)
        return 0;
    budget_commit(answers, job->reserved, size);
    return (uint32_t)size;
}

static void answer_page(struct backup_read *job)
{
    Holdfast__V1__ReadBackupResponse response = HOLDFAST__V1__READ_BACKUP_RESPONSE__INIT;
    struct worker *worker = job->worker;
    struct buf bytes = { 0 };
    struct buf body = { 0 };

    for (uint32_t i = 0; i < job->rows.count; i++) {
        const struct shard_row *row = &job->rows.rows[i];
        if ((row->key.size == META_TABLE_SIZE && row->key.data[0] == TABLE_META) || is_event(row))
            continue;
        buf_put_bytes(&bytes, row->key);
        buf_put_bytes(&bytes, row->value);
    }
    response.meta.data = job->meta.data;
    response.meta.len = job->meta.size;
    response.rows.data = bytes.data;
    response.rows.len = bytes.size;
    response.last = job->rows.complete;
    response.index = job->index;
    pack(&response.base, &body);
    const struct shard_reply reply = { .call = job->call,
                                       .status = REPLY_OK,
                                       .held = commit(job, body.size) };
    worker->options.ops.answer(worker->options.user, job->call, &reply, buf_slice(&body));
    buf_deinit(&bytes);
    buf_deinit(&body);
}

static void on_done(uv_work_t *work, int status)
{
    struct backup_read *job = CONTAINER_OF(work, struct backup_read, work);
    struct worker *worker = job->worker;
    char text[DB_TEXT_BYTES] = "";

    CHECK(status == 0);
    worker->backup_reads_open--;
    worker->slots[job->shard].backup.reads_open--;
    if (worker->stopping || job->result != ERR_OK)
        (void)commit(job, 0);
    if (!worker->stopping && job->result == ERR_OK) {
        answer_page(job);
    } else if (!worker->stopping) {
        answer_refused(worker, job->call, CODE(INTERNAL), "the database could not be read");
        if (db_damage(worker->options.db, text))
            worker->options.ops.damaged(worker->options.user, job->shard, text);
    }
    buf_deinit(&job->after);
    buf_deinit(&job->meta);
    db_rows_deinit(&job->rows);
    free(job);
}

static uint32_t page_bytes(const read_request *request)
{
    return request->bytes_max < PAGE_BYTES_MAX ? request->bytes_max : PAGE_BYTES_MAX;
}

static void read_begin(struct worker *worker, uint32_t shard, uint64_t call,
                       const read_request *request)
{
    struct backup *backup = &worker->slots[shard].backup;
    struct backup_read *job = mem_zalloc(sizeof *job);

    job->worker = worker;
    job->shard = shard;
    job->call = call;
    job->view = backup->view;
    job->index = backup->index;
    job->bytes_max = page_bytes(request);
    job->reserved = job->bytes_max;
    if (request->after.len > 0)
        buf_append(&job->after, request->after.data, request->after.len);
    backup->reads_open++;
    worker->backup_reads_open++;
    CHECK(uv_queue_work(loop_uv(worker->options.loop), &job->work, on_work, on_done) == 0);
}

static void read_page(struct worker *worker, uint32_t shard, uint64_t call,
                      const read_request *request)
{
    Holdfast__V1__ReadBackupResponse response = HOLDFAST__V1__READ_BACKUP_RESPONSE__INIT;
    struct backup *backup = &worker->slots[shard].backup;

    if (rep_differs(shard_rep(worker->slots[shard].shard))) {
        answer_refused(worker, call, CODE(NOT_FOUND),
                       "the view is of a replica that differs from a majority since; begin again");
    } else if (backup->state == BACKUP_NONE || backup->cut != request->cut) {
        answer_refused(worker, call, CODE(NOT_FOUND),
                       "there is no view of that cut here: the shard's owner changed, or it was "
                       "not asked for in two minutes; begin again");
    } else if (request->after.len > STATE_KEY_BYTES_MAX) {
        answer_refused(worker, call, CODE(INVALID_ARGUMENT), "after: at most 512 bytes");
    } else if (backup->state != BACKUP_VIEWED) {
        backup->touched_ms = loop_now_ms(worker->options.loop);
        answer_refused(worker, call, CODE(THROTTLED), "the view is not written yet");
    } else if (request->bytes_max == 0) {
        backup->touched_ms = loop_now_ms(worker->options.loop);
        answer_message(worker, call, &response.base);
    } else if (worker->backup_reads_open >= READS_MAX) {
        answer_refused(worker, call, CODE(THROTTLED), "other pages are being read");
    } else if (!reserve(worker, page_bytes(request))) {
        backup->touched_ms = loop_now_ms(worker->options.loop);
        answer_refused(worker, call, CODE(THROTTLED),
                       "answers on their way fill the node's budget for them (answers_size_max)");
    } else {
        backup->touched_ms = loop_now_ms(worker->options.loop);
        read_begin(worker, shard, call, request);
    }
}

void worker_backup_call(struct worker *worker, uint32_t shard, uint64_t call, uint32_t method,
                        struct slice request)
{
    if (method == METHOD_ARM_BACKUP) {
        arm(worker, shard, call, request);
        return;
    }
    CHECK(method == METHOD_READ_BACKUP);
    read_request *message =
        holdfast__v1__read_backup_request__unpack(NULL, request.size, request.data);
    if (message == NULL) {
        answer_refused(worker, call, CODE(INVALID_ARGUMENT), "the request is malformed");
        return;
    }
    read_page(worker, shard, call, message);
    holdfast__v1__read_backup_request__free_unpacked(message, NULL);
}

/* ---- their end ---- */

void worker_backup_tick(struct worker *worker)
{
    uint64_t now_ms = loop_now_ms(worker->options.loop);

    for (uint32_t i = worker->options.shard_first; i < worker->options.shard_count;
         i += worker->options.shard_stride) {
        const struct backup *backup = &worker->slots[i].backup;
        uint64_t idle_ms = now_ms - backup->touched_ms;

        if ((backup->state == BACKUP_ARMED && idle_ms >= ARMED_MS_MAX) ||
            (backup->state == BACKUP_VIEWED && idle_ms >= VIEW_IDLE_MS && backup->reads_open == 0))
            forget(worker, i);
    }
}

void worker_backup_drop(struct worker *worker, uint32_t shard)
{
    struct backup *backup = &worker->slots[shard].backup;
    bool writing = has_checkpoint_open(worker, shard); /* Its end sees to the rest. */

    if (backup->state == BACKUP_FROZEN && !writing) {
        shard_checkpoint_end(worker->slots[shard].shard, false);
        buf_deinit(&backup->checkpoint.meta_row);
        *backup = (struct backup){ 0 };
    } else if (backup->state == BACKUP_ARMED) {
        forget(worker, shard);
    }
}

void worker_backup_deinit(struct worker *worker)
{
    for (uint32_t i = 0; i < worker->options.shard_count; i++) {
        worker_backup_drop(worker, i);
        if (worker->slots[i].backup.state != BACKUP_NONE)
            forget(worker, i);
    }
}
