#include "node/io/worker/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "idl/method.h"
#include "node/io/worker/worker_internal.h"
#include "node/store/halt_note.h"
#include "runtime/base/check.h"

#define EVICT_TICKS 8u
#define FLUSHES_MAX 4u
/* However large the cache is: what is dirty is replayed at the next start. */
#define DIRTY_BYTES_MAX (72u * 1024u * 1024u)

static const char too_new_text[] = "of a later apply version than this program knows: start the "
                                   "newer holdfast-node again (docs/nodes.md, Upgrades)";

static bool flush_list_add(struct worker *worker, uint32_t shard)
{
    struct slot *slot = &worker->slots[shard];

    if (slot->flush_listed || !shard_wants_flush(slot->shard))
        return false;
    slot->flush_listed = true;
    worker->flush_list[worker->flush_count++] = shard;
    loop_hook_arm(&worker->round_hook);
    return true;
}

/* Follows what the step did to the shard's entries, and when the held ones must leave. */
static void pace_follow(struct worker *worker, struct slot *slot, bool wants_flush)
{
    const struct rep *rep = shard_rep(slot->shard);
    struct pace *pace = &worker->pace;
    uint32_t open = 0;

    if (shard_serves(slot->shard))
        open = (uint32_t)(rep_last_index(rep) - rep_commit_index(rep));
    if (open > slot->open_entries) {
        pace->held += open - slot->open_entries;
    } else if (worker->flush_count > 0 && (open < slot->open_entries || wants_flush)) {
        pace->urgent = true;
        loop_hook_arm(&worker->round_hook);
    }
    pace->open = pace->open - slot->open_entries + open;
    slot->open_entries = open;
}

static bool pace_holds(const struct pace *pace)
{
    return !pace->urgent && pace->held < PACE_ENTRIES && pace->open > pace->held;
}

static void publish(struct worker *worker, uint32_t shard)
{
    const struct slot *slot = &worker->slots[shard];

    if (slot->damaged) {
        shard_views_publish_damaged(worker->options.views, shard);
        return;
    }
    shard_views_publish(worker->options.views, slot->shard, slot->checkpoints, slot->replayed);
}

static void send_message(struct worker *worker, const struct rep_send *send)
{
    const struct rep_message *message = &send->message;
    const uint8_t *trace = NULL;

    if (message->type == REP_MSG_APPEND && message->entry_count > 0)
        trace = spans_trace(worker->spans, message->shard, message->entries[0]->index,
                            message->entries[message->entry_count - 1]->index);
    worker->options.ops.send(worker->options.user, send->to, message, trace);
}

static void carry_out(struct worker *worker, uint32_t shard)
{
    struct shard_out *out = &worker->out;
    const struct worker_ops *ops = &worker->options.ops;

    if (out->rep.write_count > 0)
        worker_write_submit(worker, shard, &out->rep);
    for (uint32_t i = 0; i < out->rep.send_count; i++)
        send_message(worker, &out->rep.sends[i]);
    for (uint32_t i = 0; i < out->rep.log_read_count; i++)
        worker_load_log(worker, shard, &out->rep.log_reads[i]);
    for (uint32_t i = 0; i < out->reply_count; i++) {
        const struct shard_reply *reply = &out->replies[i];
        struct slice body = { out->bytes.data + reply->offset, reply->size };
        worker_slow_answer(worker, reply->call, reply->status);
        ops->answer(worker->options.user, reply->call, reply, body);
    }
    for (uint32_t i = 0; i < out->delivery_count; i++) {
        const struct shard_delivery *delivery = &out->deliveries[i];
        struct slice request = { out->bytes.data + delivery->offset, delivery->size };
        ops->deliver(worker->options.user, shard, delivery, request);
    }
    if (out->need.key_count > 0 || out->need.range_count > 0)
        worker_load_rows(worker, shard, &out->need);
    worker_snapshot(worker, shard, &out->snapshot);
    for (uint32_t i = 0; i < out->incident_count && worker->options.incidents != NULL; i++)
        incidents_add(worker->options.incidents, &out->incidents[i]);
    if (out->role_changed) {
        publish(worker, shard);
        if (ops->role_changed != NULL)
            ops->role_changed(worker->options.user, shard);
    }
    if (out->rep.too_new)
        ops->damaged(worker->options.user, shard, too_new_text);
    if (out->rep.diverged)
        log_event(worker->options.log, LOG_ERROR, "shard.diverged", LOG_N("shard", shard),
                  LOG_N("applied", shard_applied_index(worker->slots[shard].shard)));
    if (out->rep.quarantined)
        log_event(worker->options.log, LOG_ERROR, "shard.quarantined", LOG_N("shard", shard),
                  LOG_N("applied", shard_applied_index(worker->slots[shard].shard)));
    shard_out_clear(out);
}

/* A check has failed: which entry of which shard was it, if one was being applied? */
static void note_failed_check(void *user, const char *where)
{
    const struct worker *worker = user;
    const struct shard *shard = worker->slots[worker->stepped].shard;
    uint64_t index = shard != NULL ? shard_applying_index(shard) : 0;

    if (index != 0 && worker->options.log_path != NULL)
        halt_note_write(worker->options.log_path, worker->stepped, index, where);
}

static void step_watched(struct worker *worker, uint32_t shard, const struct shard_event *event)
{
    worker->stepped = shard;
    check_watch_set(&worker->watch);
    shard_step(worker->slots[shard].shard, event, &worker->out);
    check_watch_set(NULL);
}

void worker_step(struct worker *worker, uint32_t shard, struct shard_event *event)
{
    struct slot *slot = &worker->slots[shard];

    CHECK(slot->shard != NULL);
    if (slot->install != INSTALL_NONE)
        return;
    event->now_ms = loop_now_ms(worker->options.loop);
    event->unix_ms = loop_wall_ms();
    step_watched(worker, shard, event);
    worker_slow_step(worker, shard, event);
    carry_out(worker, shard);
    worker->clock_ns = 0;
    pace_follow(worker, slot, flush_list_add(worker, shard));
    if (shard_at_cut(slot->shard))
        worker_backup_freeze(worker, shard);
}

/* Proposals made while flushing (a freed session's next waiter) leave in the same round. */
static void flush_shard(struct worker *worker, uint32_t shard)
{
    struct shard *flushed = worker->slots[shard].shard;

    for (uint32_t i = 0; i < FLUSHES_MAX && shard_wants_flush(flushed); i++) {
        if (worker->slots[shard].install != INSTALL_NONE)
            return;
        struct shard_event flush = {
            .type = SHARD_FLUSH,
            .now_ms = loop_now_ms(worker->options.loop),
            .unix_ms = loop_wall_ms(),
        };
        step_watched(worker, shard, &flush);
        worker_slow_step(worker, shard, &flush);
        carry_out(worker, shard);
        worker->clock_ns = 0;
        pace_follow(worker, &worker->slots[shard], false);
    }
    if (shard_at_cut(flushed))
        worker_backup_freeze(worker, shard);
}

static void flush_all(struct worker *worker)
{
    uint32_t count = worker->flush_count;

    worker->flush_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t shard = worker->flush_list[i];
        flush_shard(worker, shard);
        worker->slots[shard].flush_listed = false;
    }
    worker->pace.held = 0;
    worker->pace.urgent = false;
    loop_timer_stop(&worker->pace_timer);
}

static void on_round_end(void *user)
{
    struct worker *worker = user;

    worker_load_round(worker);
    if (worker->flush_count > 0 && !pace_holds(&worker->pace))
        flush_all(worker);
    else if (worker->flush_count > 0 && !loop_timer_is_running(&worker->pace_timer))
        loop_timer_start(&worker->pace_timer, PACE_MS_MAX);
    worker_write_start(worker);
}

static void on_pace_over(void *user)
{
    struct worker *worker = user;

    worker->pace.urgent = true;
    loop_hook_arm(&worker->round_hook);
}

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
            publish(worker, i);
    }
}

static void tell_space(const struct worker *worker, struct shard *shard)
{
    char why[SHARD_FULL_BYTES];

    if (worker->full)
        space_why(worker->options.space, why);
    shard_set_full(shard, worker->full ? why : NULL);
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
            tell_space(worker, worker->slots[i].shard);
    }
}

static void on_tick(void *user)
{
    struct worker *worker = user;

    worker_slow_tick(worker);
    follow_space(worker);
    for (uint32_t i = 0; i < worker->options.shard_count; i++) {
        struct shard_event tick = { .type = SHARD_TICK };
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
    worker->watch = (struct check_watch){ note_failed_check, worker };
    worker->slots = mem_zalloc(sizeof *worker->slots * options->shard_count);
    worker->spans = spans_new(options->shard_count);
    worker->slow.slow_ns = options->slow_ms * 1000000u;
    worker->flush_list = mem_zalloc(sizeof *worker->flush_list * options->shard_count);
    worker->checkpoint.flush_indexes =
        mem_zalloc(sizeof *worker->checkpoint.flush_indexes * options->shard_count);
    worker->checkpoint.worker = worker;
    loop_hook_init(&worker->round_hook, options->loop, on_round_end, worker);
    loop_timer_init(&worker->pace_timer, options->loop, on_pace_over, worker);
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
    loop_timer_stop(&worker->pace_timer);
    loop_hook_disarm(&worker->round_hook);
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
    free(worker->flush_list);
    free(worker->slots);
    free(worker);
}

/* An entry that ended this very program before is left alone, and so is all that follows it: the
 * other shards go on, and a person is told. */
static void halt_if_noted(struct worker *worker, uint32_t shard, struct shard_image *image)
{
    char program[HALT_PROGRAM_SIZE];
    struct halt_note note;

    if (worker->options.log_path == NULL ||
        halt_note_read(worker->options.log_path, shard, &note) != ERR_OK)
        return;
    halt_note_program(program);
    if (note.index <= image->rep.applied_index || strcmp(note.program, program) != 0) {
        halt_note_remove(worker->options.log_path, shard);
        return;
    }
    log_event(worker->options.log, LOG_ERROR, "shard.halted", LOG_N("shard", shard),
              LOG_N("index", note.index), LOG_S("check", note.reason));
    image->halt_index = note.index;
    image->rep.quarantined = true;
}

static err adopt(struct worker *worker, uint32_t shard, const struct shard_image *image)
{
    struct slot *slot = &worker->slots[shard];
    struct shard_image pooled = *image;

    pooled.arenas = &worker->arenas;
    pooled.answers = worker->options.answers;
    halt_if_noted(worker, shard, &pooled);
    err e = shard_new(shard, worker->options.self, &worker->options.limits,
                      worker->options.handlers, &pooled, &slot->shard);

    if (e != ERR_OK)
        return e;
    if (worker->full)
        tell_space(worker, slot->shard);
    slot->durable_index = image->rep.applied_index;
    slot->written_index = image->rep.applied_index;
    slot->replayed = image->rep.entry_count;
    worker->held++;
    publish(worker, shard);
    return ERR_OK;
}

/* The meta row is the database's word on where its rows stand. */
static err image_from_meta(struct slice meta_row, struct rep_image *image)
{
    struct meta meta;

    meta_init(&meta);
    if (meta_row.size > 0) {
        err e = meta_decode(meta_row, &meta);
        if (e != ERR_OK) {
            meta_deinit(&meta);
            return e;
        }
    }
    image->applied_index = meta.applied_index;
    image->applied_hash = meta.applied_hash;
    image->applied_ms = meta.owner_ms;
    image->vector = meta.vector;
    image->membership = meta.membership;
    meta_deinit(&meta);
    return ERR_OK;
}

#define TIMERS_MAX 1000000u

void worker_recovery_deinit(struct recovery *recovery)
{
    node_log_image_deinit(&recovery->image.rep);
    buf_deinit(&recovery->meta_row);
    db_rows_deinit(&recovery->timers);
}

static err read_timers(struct worker *worker, uint32_t shard, struct recovery *recovery)
{
    static const uint8_t prefix[] = { TABLE_TIMER };

    return db_load_prefix(worker->options.db, shard, (struct slice){ prefix, sizeof prefix },
                          TIMERS_MAX, &recovery->timers);
}

err worker_recovery_read(struct worker *worker, uint32_t shard, struct recovery *recovery)
{
    struct rep_image *image = &recovery->image.rep;
    err e = db_load_meta(worker->options.db, shard, &recovery->meta_row);

    if (e == ERR_OK)
        e = image_from_meta(buf_slice(&recovery->meta_row), image);
    if (e == ERR_OK)
        e = node_log_recover_shard(worker->options.store_log, shard, image->applied_index, image);
    return e == ERR_OK ? read_timers(worker, shard, recovery) : e;
}

static err recovery_adopt(struct worker *worker, uint32_t shard, struct recovery *recovery)
{
    struct shard_image *image = &recovery->image;

    image->rep.votes = true;
    image->meta_row = buf_slice(&recovery->meta_row);
    image->timers = recovery->timers.rows;
    image->timer_count = recovery->timers.count;
    return adopt(worker, shard, image);
}

static void report_damage(struct worker *worker, uint32_t shard, err e)
{
    char text[NODE_LOG_TEXT_BYTES] = "";

    if (e == ERR_TOO_NEW)
        snprintf(text, sizeof text, "%s", too_new_text);
    else if (!node_log_damage(worker->options.store_log, shard, text))
        (void)db_damage(worker->options.db, text);
    log_event(worker->options.log, LOG_ERROR, "shard.damaged", LOG_N("shard", shard),
              LOG_S("error", err_text(e)), LOG_S("what", text));
}

/* None of it is used, and it answers no call: it only waits to learn whether it was removed, and
 * is then dropped (rep_is_removed). */
static void give_up(struct worker *worker, uint32_t shard, err e)
{
    struct node_log_shard known;

    report_damage(worker, shard, e);
    node_log_shard_get(worker->options.store_log, shard, &known);
    worker->slots[shard].damaged = true;
    struct shard_image husk = {
        .rep = { .damaged = true, .promise = known.promise, .log_first_index = 1 }
    };
    CHECK(adopt(worker, shard, &husk) == ERR_OK);
}

err worker_recovery_adopt(struct worker *worker, uint32_t shard, struct recovery *recovery)
{
    err e = recovery_adopt(worker, shard, recovery);

    if (e != ERR_OK)
        give_up(worker, shard, e);
    if (e == ERR_TOO_NEW)
        worker->options.ops.damaged(worker->options.user, shard, too_new_text);
    return e;
}

/* What the database knows of the worker's shards; those that exist are listed for the log. */
static uint32_t load_metas(struct worker *worker, struct recovery *recoveries,
                           struct node_log_recovery *list, err *worst)
{
    uint32_t count = 0;

    for (uint32_t shard = worker->options.shard_first; shard < worker->options.shard_count;
         shard += worker->options.shard_stride) {
        struct recovery *recovery = &recoveries[count];
        struct node_log_shard known;
        err e = worker_snapshot_recover(worker, shard);
        node_log_shard_get(worker->options.store_log, shard, &known);
        if (e == ERR_OK)
            e = db_load_meta(worker->options.db, shard, &recovery->meta_row);
        if (e == ERR_NOT_FOUND && known.last_index == 0 && known.promise.epoch == 0 &&
            !known.damaged)
            continue;
        if (e == ERR_OK || e == ERR_NOT_FOUND)
            e = image_from_meta(buf_slice(&recovery->meta_row), &recovery->image.rep);
        if (e == ERR_OK) {
            list[count] =
                (struct node_log_recovery){ .shard = shard,
                                            .applied_index = recovery->image.rep.applied_index,
                                            .image = &recovery->image.rep };
            count++;
            continue;
        }
        worker_recovery_deinit(recovery);
        recovery->image = (struct shard_image){ 0 };
        give_up(worker, shard, e);
        *worst = e;
    }
    return count;
}

err worker_recover(struct worker *worker)
{
    uint32_t shard_count = worker->options.shard_count;
    struct recovery *recoveries = mem_zalloc(shard_count * sizeof *recoveries);
    struct node_log_recovery *list = mem_zalloc(shard_count * sizeof *list);
    err worst = ERR_OK;
    uint32_t count = load_metas(worker, recoveries, list, &worst);

    node_log_recover(worker->options.store_log, list, count);
    for (uint32_t i = 0; i < count; i++) {
        err e = list[i].result;
        if (e == ERR_OK)
            e = read_timers(worker, list[i].shard, &recoveries[i]);
        if (e == ERR_OK)
            e = recovery_adopt(worker, list[i].shard, &recoveries[i]);
        if (e != ERR_OK) {
            give_up(worker, list[i].shard, e);
            worst = worst == ERR_TOO_NEW ? worst : e;
        }
        worker_recovery_deinit(&recoveries[i]);
    }
    free(list);
    free(recoveries);
    return worst;
}

void worker_record(struct worker *worker, uint32_t shard, const struct rep_record *record)
{
    CHECK(shard < worker->options.shard_count);
    struct slot *slot = &worker->slots[shard];

    if (slot->shard == NULL) {
        struct shard_image image = { 0 };
        if (!membership_names(&record->membership, worker->options.self))
            return;
        /* Nothing was ever promised here: an empty log says the truth. */
        image.rep.log_first_index = 1;
        image.rep.votes = true;
        CHECK(adopt(worker, shard, &image) == ERR_OK);
    }
    slot->record = *record;
    slot->has_record = true;
    worker_step(worker, shard, &(struct shard_event){ .type = SHARD_RECORD, .record = record });
}

err worker_message(struct worker *worker, uint64_t from, struct slice bytes, const uint8_t *trace)
{
    struct rep_message message;
    err e = rep_message_decode(bytes, &message);

    if (e != ERR_OK)
        return e;
    worker->incoming.from = from;
    worker->incoming.trace = trace;
    if (message.shard < worker->options.shard_count && worker->slots[message.shard].shard != NULL)
        worker_step(
            worker, message.shard,
            &(struct shard_event){ .type = SHARD_RECEIVE, .from = from, .message = &message });
    worker->incoming.trace = NULL;
    rep_message_deinit(&message);
    return ERR_OK;
}

static void begin_spans(struct worker *worker, const struct worker_request *request)
{
    struct span_call call = {
        .call = request->call,
        .number = request->number,
        .arrived_ns = request->arrived_ns,
        .begun_ns = request->begun_ns != 0 ? request->begun_ns : worker_clock(worker),
        .shard = request->shard,
        .method = request->method,
    };

    memcpy(call.trace, request->trace, TRACE_ID_SIZE);
    spans_begin(worker->spans, &call);
}

err worker_call(struct worker *worker, const struct worker_request *request)
{
    uint32_t shard = request->shard;

    if (shard >= worker->options.shard_count || worker->slots[shard].shard == NULL ||
        worker->slots[shard].damaged || worker->slots[shard].install != INSTALL_NONE)
        return ERR_NOT_FOUND;
    if (method_find(request->method)->route == METHOD_SHARD_VIEW) {
        worker_backup_call(worker, shard, request->call, request->method, request->bytes);
        return ERR_OK;
    }
    if (request->arrived_ns != 0)
        begin_spans(worker, request);
    worker_step(worker, shard,
                &(struct shard_event){ .type = SHARD_CALL,
                                       .call = request->call,
                                       .method = request->method,
                                       .request = request->bytes,
                                       .deadline_ms = request->deadline_ms });
    return ERR_OK;
}

void worker_cancel(struct worker *worker, uint32_t shard, uint64_t call)
{
    if (worker != NULL && worker->slots[shard].shard != NULL)
        worker_step(worker, shard, &(struct shard_event){ .type = SHARD_CANCEL, .call = call });
}

void worker_delivered(struct worker *worker, const struct worker_delivered *delivered)
{
    if (worker->slots[delivered->shard].shard != NULL)
        worker_step(worker, delivered->shard,
                    &(struct shard_event){ .type = SHARD_DELIVERED,
                                           .call = delivered->token,
                                           .status = delivered->status,
                                           .request = delivered->body });
}
