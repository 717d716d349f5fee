/* One event for one shard, and what follows from it; the end of a round of the loop. */
#include <stdlib.h>
#include <string.h>

#include "idl/method.h"
#include "node/io/worker/worker_internal.h"
#include "node/store/halt_note.h"

#define FLUSHES_MAX 4u

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

/* Those who wait for events of a shard are told that there may be some. */
static void events_follow(struct worker *worker, uint32_t shard)
{
    struct slot *slot = &worker->slots[shard];
    uint64_t events = shard_meta(slot->shard)->events.written;
    bool serves = shard_serves(slot->shard);
    bool news = serves && (!slot->was_serving || slot->events != events);

    slot->was_serving = serves;
    slot->events = events;
    if (news && worker->options.event_news != NULL)
        event_news_note(worker->options.event_news, shard);
}

static bool pace_holds(const struct pace *pace)
{
    return !pace->urgent && pace->held < PACE_ENTRIES && pace->open > pace->held;
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
    for (uint32_t i = 0; i < out->erasure_count; i++)
        erasures_set(shard_views_erasures(worker->options.views), shard, &out->erasures[i]);
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
        worker_publish(worker, shard);
        if (ops->role_changed != NULL)
            ops->role_changed(worker->options.user, shard);
    }
    if (out->rep.too_new)
        worker_too_new(worker, shard);
    uint64_t more = 0;
    if (out->rep.diverged &&
        log_gate_pass(&worker->slots[shard].diverged, loop_now_ms(worker->options.loop), &more))
        log_event(worker->options.log, LOG_ERROR, "shard.diverged", LOG_N("shard", shard),
                  LOG_N("applied", shard_applied_index(worker->slots[shard].shard)),
                  LOG_N("more", more));
    if (out->rep.rows_wanting)
        log_event(worker->options.log, LOG_ERROR, "shard.rows_wanting", LOG_N("shard", shard),
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

/* A shard that is armed for a backup has stopped at its cut. */
static void pass_cut(struct worker *worker, uint32_t shard)
{
    worker_backup_freeze(worker, shard);
    worker_step(worker, shard, &(struct shard_event){ .type = SHARD_TICK });
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
    events_follow(worker, shard);
    if (shard_at_cut(slot->shard))
        pass_cut(worker, shard);
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
        events_follow(worker, shard);
    }
    if (shard_at_cut(flushed))
        pass_cut(worker, shard);
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

void worker_step_init(struct worker *worker)
{
    const struct worker_options *options = &worker->options;

    worker->step = worker_step;
    worker->watch = (struct check_watch){ note_failed_check, worker };
    worker->flush_list = mem_zalloc(sizeof *worker->flush_list * options->shard_count);
    loop_hook_init(&worker->round_hook, options->loop, on_round_end, worker);
    loop_timer_init(&worker->pace_timer, options->loop, on_pace_over, worker);
}

void worker_step_deinit(struct worker *worker)
{
    loop_timer_stop(&worker->pace_timer);
    loop_hook_disarm(&worker->round_hook);
    free(worker->flush_list);
}

/* ---- events ---- */

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
        CHECK(worker_adopt(worker, shard, &image) == ERR_OK);
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
    if (request->method == METHOD_GET_SHARD_TOP)
        shard_views_count_top(worker->options.views);
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
