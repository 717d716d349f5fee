#include "node/core/shard/shard.h"

#include <stdio.h>
#include <stdlib.h>

#include "idl/method.h"
#include "node/core/shard/shard_internal.h"
#include "runtime/base/check.h"
#include "runtime/base/watched_memory.h"

struct shard_limits shard_limits_default(void)
{
    return (struct shard_limits){
#define SHARD_DEFAULT(name, def, min, max, doc) .name = (def),
        SHARD_LIMITS(SHARD_DEFAULT)
#undef SHARD_DEFAULT
            .apply_version_max = APPLY_VERSION,
        .rep = rep_limits_default(),
    };
}

static err restore(struct shard *shard, const struct shard_image *image)
{
    struct state *state = applier_state(shard->applier);
    err e = applier_restore(shard->applier, image->meta_row);

    if (e != ERR_OK)
        return e;
    if (applier_applied_index(shard->applier) != image->rep.applied_index)
        return ERR_CORRUPT;
    for (uint32_t i = 0; i < image->timer_count; i++)
        state_load(state, state_load_generation(state), image->timers[i].key,
                   &image->timers[i].value);
    return ERR_OK;
}

#define SCRATCH_KEPT_BYTES 65536u   /* A node has many shards. */
#define OUT_KEPT_BYTES     4194304u /* A worker has one. */

err shard_new(uint64_t self, const struct shard_limits *limits,
              const struct handler_table *handlers, const struct shard_image *image,
              struct shard **ret_shard)
{
    struct shard *shard = mem_zalloc(sizeof *shard);

    shard->number = image->number;
    shard->self = self;
    shard->limits = *limits;
    shard->halt_index = image->halt_index;
    shard->arena.pool = image->arenas;
    shard->read_arena.pool = image->arenas;
    shard->answers = image->answers;
    shard->snapshot = image->snapshot;
    shard->holds_of_reads.ms_max = limits->read_hold_ms;
    shard->applier = applier_new(image->number, handlers);
    applier_set_arenas(shard->applier, image->arenas);
    applier_set_shard_count(shard->applier, limits->shard_count);
    /* One that was rebuilt may meet the same entry again, from the log. */
    applier_set_replica(shard->applier, image->rep.dropped ? 0 : self);
    applier_set_version_max(shard->applier, limits->apply_version_max);
    applier_set_erasure_rows(shard->applier, limits->erasure_rows_max);
    err e = restore(shard, image);
    if (e != ERR_OK) {
        applier_free(shard->applier);
        free(shard);
        return e;
    }
    struct rep_image rep = image->rep;
    rep.generation = applier_meta(shard->applier)->generation;
    rep.apply_version = applier_meta(shard->applier)->apply_version;
    rep.apply_version_max = limits->apply_version_max;
    rep.apply_version_floor = APPLY_VERSION_FLOOR;
    shard->rep = rep_new(image->number, self, &limits->rep, &rep);
    if (rep_apply_version(shard->rep) > limits->apply_version_max) {
        shard_free(shard);
        return ERR_TOO_NEW;
    }
    shard->clean_index = image->rep.applied_index;
    *ret_shard = shard;
    return ERR_OK;
}

void shard_free(struct shard *shard)
{
    if (shard == NULL)
        return;
    for (int place = 0; place < CALL_PLACES; place++) {
        while (shard->calls[place].first != NULL)
            call_free(shard, shard->calls[place].first);
    }
    while (shard->free_calls != NULL) {
        struct call *call = shard->free_calls;
        memory_hand_out(call, sizeof *call);
        shard->free_calls = call->next;
        buf_deinit(&call->request);
        buf_deinit(&call->answer);
        free(call);
    }
    rep_free(shard->rep);
    applier_free(shard->applier);
    channel_lanes_deinit(&shard->lanes);
    read_holds_deinit(&shard->holds_of_reads);
    shard_snapshot_deinit(shard);
    asked_rows_deinit(&shard->asked);
    link_table_deinit(&shard->calls_by_id);
    link_table_deinit(&shard->calls_by_what);
    arena_deinit(&shard->arena);
    arena_deinit(&shard->read_arena);
    buf_deinit(&shard->scratch);
    buf_deinit(&shard->holds);
    need_deinit(&shard->need);
    free(shard);
}

/* Passes an event that is rep's alone on to it. */
static void pass_to_rep(struct shard *shard, enum rep_event_type type,
                        const struct shard_event *event, struct shard_out *out)
{
    struct rep_event passed = {
        .type = type,
        .now_ms = event->now_ms,
        .unix_ms = event->unix_ms,
        .record = event->record,
        .from = event->from,
        .message = event->message,
        .ticket = event->ticket,
        .entries = event->entries,
        .entry_count = event->entry_count,
        .index = event->index,
    };

    CHECK(shard_rep_step(shard, &passed, out) == ERR_OK);
}

/* Waited as long as its caller can. */
static void end_waiting(struct shard *shard, struct call *call, const struct shard_event *event,
                        struct shard_out *out)
{
    if (call->place == CALL_SETTLING) {
        shard_settled_end(shard, call, event->now_ms);
        shard->stats.reads_timed_out++;
    }
    if (call->place == CALL_QUEUED || call->place == CALL_SETTLING)
        reply_bytes(shard, call, REPLY_REFUSED, buf_slice(&call->answer), out);
    else
        reply_elsewhere(shard, call, REPLY_UNKNOWN, out);
}

static void expire_waiting(struct shard *shard, const struct shard_event *event,
                           struct shard_out *out)
{
    static const enum call_place places[] = { CALL_QUEUED,    CALL_STEALING, CALL_CONFIRMING,
                                              CALL_LAGGING,   CALL_AHEAD,    CALL_LOADING,
                                              CALL_TURN,      CALL_SETTLING, CALL_SENDING,
                                              CALL_ANSWERING, CALL_FETCHING };

    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        bool early = places[i] == CALL_QUEUED || places[i] == CALL_SETTLING;
        uint64_t early_ms = early ? WAIT_ANSWER_EARLY_MS : 0;
        struct call *next;
        for (struct call *call = shard->calls[places[i]].first; call != NULL; call = next) {
            next = call->next;
            if (event->now_ms + early_ms >= call->deadline_ms)
                end_waiting(shard, call, event, out);
        }
    }
}

/* Nothing but its answer comes of it: no one waits for that any more. */
static bool is_plain_read(const struct call *call)
{
    bool reads = call->place == CALL_CONFIRMING || call->place == CALL_LAGGING ||
                 call->place == CALL_AHEAD || call->place == CALL_LOADING ||
                 call->place == CALL_TURN;

    return reads && call->method != METHOD_RENEW_TOKENS;
}

/* What is on its way to the log goes on; a place in a queue is given up, lest the session be
 * granted to a caller that has gone, and so is what waits for others, and a read with the room that
 * is reserved for its answer. */
static void cancel(struct shard *shard, uint64_t id, uint64_t now_ms)
{
    struct call *call = call_find(shard, id);

    if (call == NULL)
        return;
    if (call->method == METHOD_READ_SETTLED)
        shard_settled_end(shard, call, now_ms);
    if (call->place == CALL_QUEUED || call->place == CALL_SETTLING ||
        call->place == CALL_YIELDING || is_plain_read(call))
        call_free(shard, call);
    else
        call_forget(shard, call);
}

static void event_step(struct shard *shard, const struct shard_event *event, struct shard_out *out)
{
    switch (event->type) {
    case SHARD_RECORD:
        pass_to_rep(shard, REP_RECORD, event, out);
        break;
    case SHARD_RECEIVE:
        if (rep_role(shard->rep) == REP_DAMAGED)
            break; /* Whatever it answered would claim that something is absent. */
        if (event->message->type >= REP_MSG_SNAPSHOT_PULL)
            shard_snapshot_message(shard, event, out);
        else
            pass_to_rep(shard, REP_RECEIVE, event, out);
        break;
    case SHARD_PERSISTED:
        pass_to_rep(shard, REP_PERSISTED, event, out);
        break;
    case SHARD_LOG_READ:
        pass_to_rep(shard, REP_LOG_READ, event, out);
        break;
    case SHARD_ROWS:
        shard_rows_arrived(shard, event, out);
        break;
    case SHARD_CALL:
        shard_call_begin(shard, event, out);
        break;
    case SHARD_CANCEL:
        cancel(shard, event->call, event->now_ms);
        break;
    case SHARD_FLUSH:
        shard->flush_wanted = false;
        pass_to_rep(shard, REP_FLUSH, event, out);
        break;
    case SHARD_TICK:
        applier_set_pulled(shard->applier, event->pulled_ms);
        pass_to_rep(shard, REP_TICK, event, out);
        shard_propose_due(shard, event, out);
        expire_waiting(shard, event, out);
        shard_snapshot_tick(shard, event, out);
        break;
    case SHARD_DELIVERED:
        shard_channel_delivered(shard, event, out);
        break;
    case SHARD_SNAPSHOT_PAGE:
        shard_snapshot_page(shard, event, out);
        break;
    case SHARD_SNAPSHOT_STORED:
        shard_snapshot_stored(shard, event, out);
        break;
    case SHARD_SNAPSHOT_DROPPED:
        shard_snapshot_dropped(shard, event);
        break;
    }
}

static void follow_role(struct shard *shard, const struct shard_event *event, struct shard_out *out)
{
    bool serves = shard_serves(shard);

    if (shard->served && !serves) {
        reply_deposed(shard, out);
        channel_lanes_clear(&shard->lanes);
        read_holds_clear(&shard->holds_of_reads);
        shard->due_index = 0;
        shard->contain_index = 0;
        shard->rounds_done = 0;
    }
    if (!shard->served && serves) {
        shard->stats.promotions++;
        shard->due_next_ms = 0;
        incident_resumed(shard, event, out);
    }
    out->role_changed |= shard->served != serves || out->rep.role_changed;
    shard->served = serves;
}

void shard_step(struct shard *shard, const struct shard_event *event, struct shard_out *out)
{
    CHECK(!shard->stopped);
    if (event->type == SHARD_FLUSH || event->type == SHARD_TICK)
        shard->read_bytes = 0;
    shard_holds_progress(shard, event, out);
    event_step(shard, event, out);
    if (shard->stopped)
        return;
    if (!shard->apply_blocked || event->type == SHARD_ROWS)
        shard_apply(shard, event, out);
    shard_answer_progress(shard, event, out);
    shard_read_progress(shard, event, out);
    follow_role(shard, event, out);
    shard_yield_progress(shard, event, out);
    shard_contain(shard, event, out);
    shard_channel_progress(shard, event, out);
    if (out->rep.orphan_count > 0)
        incident_orphans(shard, event, out);
    shard->stats.diverged += out->rep.diverged;
    shard->stats.waiting_calls = shard->call_count;
    shard->stats.reads_waiting = shard->calls[CALL_SETTLING].count;
    shard->stats.writes_waiting = shard->calls[CALL_YIELDING].count;
    shard->stats.waiters = shard->calls[CALL_QUEUED].count + shard->calls[CALL_STEALING].count;
    arena_reset(&shard->arena);
    if (shard->scratch.capacity > SCRATCH_KEPT_BYTES)
        buf_deinit(&shard->scratch);
    applier_rest(shard->applier);
#ifdef HOLDFAST_DEBUG_INJECT /* In what tests build: a release serves on where only a sum is       \
                                wrong. */
    shard_check_step(shard);
#endif
}

void shard_out_clear(struct shard_out *out)
{
    rep_out_clear(&out->rep);
    need_clear(&out->need);
    snapshot_actions_clear(&out->snapshot);
    buf_clear(&out->bytes);
    if (out->bytes.capacity > OUT_KEPT_BYTES)
        buf_deinit(&out->bytes);
    out->reply_count = 0;
    out->delivery_count = 0;
    out->incident_count = 0;
    out->erasure_count = 0;
    out->role_changed = false;
    out->unreadable = false;
}

void shard_out_deinit(struct shard_out *out)
{
    rep_out_deinit(&out->rep);
    need_deinit(&out->need);
    snapshot_actions_deinit(&out->snapshot);
    buf_deinit(&out->bytes);
    free(out->replies);
    free(out->deliveries);
    free(out->incidents);
    free(out->erasures);
    *out = (struct shard_out){ 0 };
}

bool shard_checkpoint_begin(struct shard *shard, struct shard_checkpoint *ret_checkpoint)
{
    uint64_t index = applier_applied_index(shard->applier);
    struct shard_checkpoint checkpoint = { .index = index };

    if (shard->checkpoint_open || index == shard->clean_index)
        return false;
    if (!state_checkpoint_begin(applier_state(shard->applier), &checkpoint.writes,
                                &checkpoint.write_count))
        return false;
    applier_meta_encode(shard->applier, &checkpoint.meta_row);
    shard->checkpoint_open = true;
    shard->checkpoint_index = index;
    *ret_checkpoint = checkpoint;
    return true;
}

void shard_checkpoint_end(struct shard *shard, bool written)
{
    CHECK(shard->checkpoint_open);
    state_checkpoint_end(applier_state(shard->applier), written);
    shard->checkpoint_open = false;
    if (written)
        shard->clean_index = shard->checkpoint_index;
}

void shard_set_full(struct shard *shard, const char *why)
{
    snprintf(shard->full, sizeof shard->full, "%s", why != NULL ? why : "");
}

void shard_evict(struct shard *shard, size_t bytes_max)
{
    state_evict(applier_state(shard->applier), bytes_max);
}
