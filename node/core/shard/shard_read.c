#include <inttypes.h>
#include <string.h>

#include "idl/method.h"
#include "node/core/handler/refusal.h"
#include "node/core/shard/read_options.h"
#include "node/core/shard/shard_internal.h"
#include "runtime/base/check.h"

/* True once `index` has passed the dot; *ret_lost when it never will. */
static bool dot_reached(const struct meta *meta, struct dot dot, bool *ret_lost)
{
    const struct vector *v = &meta->vector;

    *ret_lost = false;
    if (dot.epoch <= v->folded_epoch)
        return true;
    for (uint32_t i = 0; i < v->count; i++) {
        if (v->items[i].epoch != dot.epoch)
            continue;
        if (v->items[i].owner == dot.owner && v->items[i].counter >= dot.counter)
            return true;
        *ret_lost = i + 1 < v->count || v->items[i].owner != dot.owner;
        return false;
    }
    *ret_lost = v->count > 0 && v->items[v->count - 1].epoch > dot.epoch;
    return false;
}

static void join_round(struct shard *shard, struct call *call, const struct shard_event *event,
                       struct shard_out *out)
{
    struct rep_event join = { .type = REP_READ,
                              .now_ms = event->now_ms,
                              .unix_ms = event->unix_ms };

    if (shard_rep_step(shard, &join, out) != ERR_OK) {
        reply_elsewhere(shard, call, REPLY_NOT_OWNER, out);
        return;
    }
    shard->flush_wanted = true;
    call->round = out->rep.read_round;
    call_move(shard, call, CALL_CONFIRMING);
}

/* A request for an operation finds in the log what its caller may have been told already. */
static void log_decisions(struct shard *shard, struct call *call, const struct shard_event *event,
                          struct shard_out *out)
{
    uint64_t index;

    if (call->method != METHOD_GET_OPERATION)
        return;
    if (shard->lanes.settles.items > 0)
        (void)!shard_settles_log(shard, event, &index, out); /* Else it is read where it waits. */
    call->index = shard->lanes.settles.logged_index;
}

static void refuse_options(struct shard *shard, struct call *call,
                           const struct read_options *options, struct shard_out *out)
{
    struct refusal refusal = { 0 };

    const char *value = options->wrong_value == 0
                            ? ""
                            : arena_printf(&shard->arena, "%" PRIu32, options->wrong_value);
    (void)refuse_invalid(&shard->arena, &refusal, options->wrong_field, options->wrong_limit,
                         value);
    reply_refusal(shard, call, &refusal, out);
}

/* A round that began so lately was confirmed, under this ownership. The two clocks are those of the
 * read's own step: the one does not stand still when the process does, the other never goes back.
 */
static bool confirmed_within(const struct shard *shard, const struct shard_event *event,
                             uint32_t max_age_ms)
{
    return shard->rounds_done > 0 && event->now_ms - shard->rounds_ms <= max_age_ms &&
           event->unix_ms >= shard->rounds_unix_ms &&
           event->unix_ms - shard->rounds_unix_ms <= max_age_ms;
}

void shard_read_begin(struct shard *shard, const struct shard_event *event, struct shard_out *out)
{
    struct call *call = call_new(shard, event);
    struct read_options options;

    shard->stats.reads++;
    buf_append(&call->request, event->request.data, event->request.size);
    read_options_scan(event->method, event->request, shard->number, &options);
    if (options.wrong_field != NULL) {
        refuse_options(shard, call, &options, out);
        return;
    }
    call->at_least = options.at_least;
    if (rep_is_quarantined(shard->rep)) {
        reply_elsewhere(shard, call, REPLY_NOT_OWNER, out);
        return;
    }
    if (event->stale || options.kind == READ_STALE || options.kind == READ_AT_LEAST) {
        call_move(shard, call, CALL_READING);
        shard_read_progress(shard, event, out);
        return;
    }
    if (!shard_serves(shard)) {
        reply_elsewhere(shard, call, REPLY_NOT_OWNER, out);
        return;
    }
    if (options.kind == READ_AGED && confirmed_within(shard, event, options.max_age_ms)) {
        shard->stats.reads_aged++;
        call->index = shard->rounds_index;
        call_move(shard, call, CALL_READING);
        shard_read_progress(shard, event, out);
        return;
    }
    log_decisions(shard, call, event, out);
    if (call->method == METHOD_READ_SETTLED)
        shard_settled_begin(shard, call, event);
    join_round(shard, call, event, out);
}

#define HOLDS_BYTES_MAX 65536u

static void propose_all(struct shard *shard, struct slice bodies, const struct shard_event *event,
                        struct shard_out *out)
{
    struct reader reader = reader_from(bodies);

    while (reader_left(&reader) > 0 && !reader.bad) {
        struct rep_event proposal = {
            .type = REP_PROPOSE,
            .now_ms = event->now_ms,
            .unix_ms = event->unix_ms,
            .kind = ENTRY_OP,
            .body = read_bytes(&reader, ENTRY_BODY_BYTES_MAX),
        };
        if (shard_rep_step(shard, &proposal, out) != ERR_OK)
            break; /* The next renewal, some seconds later, asks again. */
        shard->flush_wanted = true;
    }
}

/* Each once: a session is renewed again and again while the disk is full. */
static void keep_holds(struct shard *shard, struct slice bodies)
{
    struct reader reader = reader_from(bodies);

    while (reader_left(&reader) > 0 && !reader.bad) {
        struct slice body = read_bytes(&reader, ENTRY_BODY_BYTES_MAX);
        if (shard->holds.size + body.size > HOLDS_BYTES_MAX)
            return;
        if (shard->holds.size == 0 ||
            memmem(shard->holds.data, shard->holds.size, body.data, body.size) == NULL)
            buf_put_bytes(&shard->holds, body);
    }
}

void shard_holds_progress(struct shard *shard, const struct shard_event *event,
                          struct shard_out *out)
{
    if (shard->full[0] != 0 || shard->holds.size == 0)
        return;
    if (shard_serves(shard))
        propose_all(shard, buf_slice(&shard->holds), event, out);
    buf_clear(&shard->holds);
}

/* Tokens that RenewTokens named while GRANTED become HELD: the owner logs it. */
static void propose_holds(struct shard *shard, struct call *call, const struct shard_event *event,
                          struct shard_out *out)
{
    struct buf bodies = { 0 };

    applier_renew_holds(shard->applier, buf_slice(&call->request), &bodies);
    if (shard->full[0] != 0)
        keep_holds(shard, buf_slice(&bodies));
    else
        propose_all(shard, buf_slice(&bodies), event, out);
    buf_deinit(&bodies);
}

static void refuse_lost(struct shard *shard, struct call *call, struct shard_out *out)
{
    struct refusal refusal = { 0 };

    (void)refuse(&shard->arena, &refusal, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_VERSION_LOST,
                 "read.at_least", "the version was truncated before it was committed");
    reply_refusal(shard, call, &refusal, out);
}

/* Only an owner whose START is committed comes here: the read's round is its own. */
static void tell_members(struct shard *shard)
{
    const struct membership *membership = rep_membership(shard->rep);
    struct member_state state = { .epoch = rep_epoch(shard->rep),
                                  .config = membership->config,
                                  .learner = membership->learner,
                                  .operations = shard->stats.proposed + shard->stats.reads };
    uint64_t matched = 0;

    if (state.learner != 0) {
        CHECK(rep_member_state(shard->rep, state.learner, &matched, &state.learner_silent_ms));
        state.learner_lag = rep_learner_lag(shard->rep);
    }
    for (uint32_t i = 0; i < membership->count; i++) {
        struct member_lag *member = &state.members[state.member_count];

        member->replica = membership->members[i];
        if (!rep_member_state(shard->rep, member->replica, &matched, &member->silent_ms) ||
            member->replica == shard->self)
            continue;
        member->lag = rep_member_lag(shard->rep, member->replica);
        state.member_count++;
    }
    applier_set_members(shard->applier, &state);
}

#define ANSWERS_RETRY_MS 100u
/* With room for one as large as any, no guess is needed. */
#define UNREAD_BYTES_MIN 4194304u

/* Nothing was done: its caller may ask again soon. Not at another node: that one has callers, too.
 */
static void refuse_answer(struct shard *shard, struct call *call, size_t size,
                          struct shard_out *out)
{
    struct refusal refusal = { 0 };

    (void)refuse(&shard->arena, &refusal, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_THROTTLED, "",
                 "answers on their way fill the node's %llu bytes for them (answers_size_max); "
                 "this one has %zu; ask again, or for less",
                 (unsigned long long)budget_share(shard->answers, BUDGET_READ), size);
    refusal.retry_after_ms = ANSWERS_RETRY_MS;
    reply_refusal(shard, call, &refusal, out);
}

/* The answer to a read is in the scratch buffer. */
static void read_answer(struct shard *shard, struct call *call, const struct shard_event *event,
                        struct shard_out *out)
{
    bool is_outcome = call->method == METHOD_GET_OPERATION;

    if (is_outcome && !shard_operation_told(shard, call, out))
        return;
    size_t size = shard->scratch.size;
    shard->read_bytes += size;
    if (size > BUDGET_SMALL_BYTES || size > shard->limits.answers_round_bytes)
        answer_sizes_note(&shard->sizes, call->method, buf_slice(&call->request), size);
    if (!reply_reserve(shard, call, is_outcome ? BUDGET_OUTCOME : BUDGET_READ, size)) {
        refuse_answer(shard, call, size, out);
        return;
    }
    if (call->method == METHOD_READ_SETTLED) {
        shard_settled_answer(shard, call, event, out);
        return;
    }
    if (call->method == METHOD_RENEW_TOKENS)
        propose_holds(shard, call, event, out);
    reply_bytes(shard, call, REPLY_OK, buf_slice(&shard->scratch), out);
}

/* As large as it was the last time, it has no room: rows need not be read to say so. */
static bool refused_unread(struct shard *shard, struct call *call, struct shard_out *out)
{
    size_t size;

    if (shard->answers == NULL || call->reserved > 0 ||
        budget_has_room(shard->answers, BUDGET_READ, UNREAD_BYTES_MIN))
        return false;
    size = answer_sizes_find(&shard->sizes, call->method, buf_slice(&call->request));
    if (call->method == METHOD_GET_OPERATION || budget_has_room(shard->answers, BUDGET_READ, size))
        return false;
    budget_refuse(shard->answers);
    refuse_answer(shard, call, size, out);
    return true;
}

static void read_run(struct shard *shard, struct call *call, const struct shard_event *event,
                     struct shard_out *out)
{
    struct refusal refusal = { 0 };

    if (refused_unread(shard, call, out))
        return;
    if (call->method == METHOD_MEMBER_STATE) {
        if (!shard_serves(shard)) {
            reply_elsewhere(shard, call, REPLY_NOT_OWNER, out);
            return;
        }
        tell_members(shard);
    }
    buf_clear(&shard->scratch);
    shard->stats.read_runs++;
    const struct applier_asked asked = { call->method, buf_slice(&call->request), event->unix_ms,
                                         &shard->read_arena };
    err e = applier_read(shard->applier, &asked, &shard->need, &shard->scratch, &refusal);
    if (e == ERR_NEED) {
        shard_wait_rows(shard, call, CALL_LOADING, out);
        return;
    }
    if (e != ERR_OK && call->method == METHOD_READ_SETTLED &&
        refusal.code == HOLDFAST__V1__ERROR_CODE__ERROR_CODE_TXN_CONFLICT) {
        shard_settled_wait(shard, call, &refusal, out);
        return;
    }
    if (e != ERR_OK) {
        reply_refusal(shard, call, &refusal, out);
        return;
    }
    read_answer(shard, call, event, out);
}

static void run(struct shard *shard, struct call *call, const struct shard_event *event,
                struct shard_out *out)
{
    read_run(shard, call, event, out);
    arena_reset(&shard->read_arena);
}

/* ---- reads that come too early ---- */

static bool by_version(const struct call *a, const struct call *b)
{
    if (a->at_least.epoch != b->at_least.epoch)
        return a->at_least.epoch < b->at_least.epoch;
    return a->at_least.counter < b->at_least.counter;
}

/* This owner alone logs in its epoch: what is above its last entry was told to no one. */
static bool is_unheard_of(const struct shard *shard, struct dot dot)
{
    struct dot last = rep_last_dot(shard->rep);

    return shard_serves(shard) && dot.epoch == rep_epoch(shard->rep) && dot.epoch == last.epoch &&
           dot.owner == last.owner && dot.counter > last.counter;
}

static void refuse_unheard_of(struct shard *shard, struct call *call, struct shard_out *out)
{
    struct refusal refusal = { 0 };
    struct dot last = rep_last_dot(shard->rep);
    const char *limit =
        arena_printf(&shard->arena, "a version of epoch %" PRIu64 " up to %" PRIu64 " in shard %u",
                     last.epoch, last.counter, shard->number);

    (void)refuse_invalid(&shard->arena, &refusal, "read.at_least", limit,
                         arena_printf(&shard->arena, "%" PRIu64, call->at_least.counter));
    reply_refusal(shard, call, &refusal, out);
}

static void refuse_ahead(struct shard *shard, struct call *call, struct shard_out *out)
{
    struct refusal refusal = { 0 };

    (void)refuse(&shard->arena, &refusal, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_THROTTLED,
                 "read.at_least",
                 "%u reads wait here for versions that shard %u has not applied; nothing was done",
                 shard->calls[CALL_AHEAD].count, shard->number);
    refusal.retry_after_ms = ANSWERS_RETRY_MS;
    reply_refusal(shard, call, &refusal, out);
}

static void wait_for_version(struct shard *shard, struct call *call, struct shard_out *out)
{
    if (is_unheard_of(shard, call->at_least))
        refuse_unheard_of(shard, call, out);
    else if (shard->calls[CALL_AHEAD].count >= shard->limits.reads_ahead_max)
        refuse_ahead(shard, call, out);
    else
        call_move_sorted(shard, call, CALL_AHEAD, by_version);
}

/* True: it waits, or is refused. */
static bool comes_early(struct shard *shard, struct call *call, struct shard_out *out)
{
    bool lost = false;

    if (applier_applied_index(shard->applier) < call->index) {
        call_lag(shard, call, call->index);
        return true;
    }
    if (call->at_least.epoch == 0 || dot_reached(shard_meta(shard), call->at_least, &lost))
        return false;
    if (lost)
        refuse_lost(shard, call, out);
    else
        wait_for_version(shard, call, out);
    return true;
}

void shard_read_wake(struct shard *shard, const struct shard_event *event, struct shard_out *out)
{
    uint32_t left = shard->calls[CALL_SETTLING].count; /* Some may wait again, behind the last. */
    struct call *next;

    for (struct call *call = shard->calls[CALL_SETTLING].first; left > 0; call = next) {
        next = call->next;
        left--;
        if (shard_settled_is_held(shard, call))
            continue;
        call_move(shard, call, CALL_READING);
        if (!comes_early(shard, call, out))
            run(shard, call, event, out);
    }
}

/* How many times answers_round_bytes a round makes where it is not known that they are large. */
#define ROUNDS_MAX 4u

/* So many bytes of answers were made that they should leave before more are, and that whatever else
 * has come should have its turn. */
static bool is_spent(const struct shard *shard, uint32_t rounds)
{
    return shard->read_bytes >= (uint64_t)rounds * shard->limits.answers_round_bytes;
}

/* Large answers go on after the next flush or tick; meanwhile those that are small pass them. What
 * waits has its room reserved, so there are never more than the budget holds: the others are
 * refused at once. True: it waits, or is refused. */
static bool waits_turn(struct shard *shard, struct call *call, struct shard_out *out)
{
    size_t size;

    if (!is_spent(shard, 1))
        return false;
    size = answer_sizes_find(&shard->sizes, call->method, buf_slice(&call->request));
    if (size == 0 && !is_spent(shard, ROUNDS_MAX))
        return false;
    if (size > 0 && call->reserved == 0 && !reply_reserve(shard, call, BUDGET_READ, size))
        refuse_answer(shard, call, size, out);
    else
        call_move(shard, call, CALL_TURN);
    return true;
}

/* Reads that have nothing to wait for any more. */
static void gather_ready(struct shard *shard, const struct shard_event *event)
{
    uint64_t applied = applier_applied_index(shard->applier);
    struct call *call;
    bool lost = false;

    if (event->type == SHARD_FLUSH || event->type == SHARD_TICK) {
        while ((call = shard->calls[CALL_TURN].first) != NULL)
            call_move(shard, call, CALL_READING);
    }
    while ((call = shard->calls[CALL_CONFIRMING].first) != NULL &&
           call->round <= shard->rounds_done) {
        if (shard->rounds_index > call->index)
            call->index = shard->rounds_index;
        call_move(shard, call, CALL_READING);
    }
    while ((call = shard->calls[CALL_LAGGING].first) != NULL && call->index <= applied)
        call_move(shard, call, CALL_READING);
    while ((call = shard->calls[CALL_AHEAD].first) != NULL &&
           (dot_reached(shard_meta(shard), call->at_least, &lost) || lost))
        call_move(shard, call, CALL_READING);
}

void shard_read_progress(struct shard *shard, const struct shard_event *event,
                         struct shard_out *out)
{
    struct call *call;

    gather_ready(shard, event);
    while ((call = shard->calls[CALL_READING].first) != NULL) {
        if (!comes_early(shard, call, out) && !waits_turn(shard, call, out))
            run(shard, call, event, out);
    }
}

/* False: it waits for room, until the next tick. */
static bool answer_granted(struct shard *shard, struct call *call, struct shard_out *out)
{
    const struct granted granted = { buf_slice(&call->request), buf_slice(&call->answer) };

    buf_clear(&shard->scratch);
    err e = applier_profile_append(shard->applier, &granted, &shard->need, &shard->scratch);
    if (e == ERR_NEED) {
        shard_wait_rows(shard, call, CALL_FETCHING, out);
        return true;
    }
    if (e == ERR_CORRUPT) {
        reply_elsewhere(shard, call, REPLY_UNKNOWN, out);
        return true;
    }
    if (e != ERR_OK) /* The fence rose: its caller has the session, without what cannot be read. */
        buf_clear(&shard->scratch);
    shard->read_bytes += shard->scratch.size;
    /* At its deadline the outcome is unknown. */
    if (!reply_reserve(shard, call, BUDGET_OUTCOME, call->answer.size + shard->scratch.size))
        return false;
    buf_append(&call->answer, shard->scratch.data, shard->scratch.size);
    reply_bytes(shard, call, REPLY_OK, buf_slice(&call->answer), out);
    return true;
}

void shard_answer_progress(struct shard *shard, const struct shard_event *event,
                           struct shard_out *out)
{
    struct call *call, *next;

    for (call = shard->calls[CALL_ANSWERING].first; call != NULL; call = next) {
        next = call->next;
        if (is_spent(shard, ROUNDS_MAX) || (call->starved && event->type != SHARD_TICK))
            return;
        call->starved = false;
        if (!answer_granted(shard, call, out)) {
            call->starved = true;
            return;
        }
    }
}
