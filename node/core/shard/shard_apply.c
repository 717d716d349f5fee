#include "idl/method.h"
#include "node/core/codec/proto_scan.h"
#include "node/core/shard/shard_internal.h"
#include "runtime/base/check.h"

/* Of DeliverRequest; and of TakeCutRequest, CutBackupRequest and SettleRequest. */
#define DELIVER_CUT_FIELD 3u
#define CUT_FIELD         2u
#define SETTLE_MORE_FIELD 4u

#define FORESEEN_MAX 64u /* Entries behind one that is blocked. */

static struct call *call_at(struct shard *shard, uint64_t index)
{
    struct call *first = shard->calls[CALL_PROPOSED].first;

    CHECK(first == NULL || first->index >= index);
    return first != NULL && first->index == index ? first : NULL;
}

static uint32_t fsynced_count(const struct shard *shard, const struct outcome *outcome,
                              uint64_t index)
{
    if (outcome->duplicate)
        return rep_membership(shard->rep)->count / 2 + 1;
    return rep_fsynced_count(shard->rep, index);
}

static void answer_committed(struct shard *shard, struct call *call, const struct outcome *outcome,
                             struct shard_out *out)
{
    const struct method_info *method = method_find(call->method);

    if (call->method == METHOD_CHANNEL_DELIVER && call->answer.size > 0) {
        shard_yield_answer(shard, call, outcome->body, out);
        return;
    }
    if (method->route == METHOD_SHARD_WRITE) {
        reply_bytes(shard, call, REPLY_OK, outcome->body, out);
        return;
    }
    if (call->method == METHOD_RESOLVE_OPERATION &&
        shard_operation_waits(shard, call, outcome->body)) {
        call_move(shard, call, CALL_SENDING);
        return;
    }
    buf_clear(&shard->scratch);
    const struct answer answer =
        outcome_answer(shard->number, outcome, fsynced_count(shard, outcome, call->index));
    answer_encode(&answer, &shard->scratch);
    if (call->method != METHOD_START_SESSION) {
        reply_bytes(shard, call, REPLY_OK, buf_slice(&shard->scratch), out);
        return;
    }
    /* The profile is read when answering, so that it is as new as the session. */
    buf_clear(&call->answer);
    buf_append(&call->answer, shard->scratch.data, shard->scratch.size);
    call_move(shard, call, CALL_ANSWERING);
}

/* A player has places for so many callers that wait for its session. */
static bool may_queue(struct shard *shard, const struct call *call)
{
    uint32_t count = 0;

    for (const struct call *other = call_of_player(shard, CALL_QUEUED, call->entity, NULL);
         other != NULL; other = call_of_player(shard, CALL_QUEUED, call->entity, other))
        count++;
    return count < shard->limits.waiters_per_player_max;
}

static void answer_call(struct shard *shard, struct call *call, const struct outcome *outcome,
                        struct shard_out *out)
{
    switch (outcome->kind) {
    case OUTCOME_COMMITTED:
        answer_committed(shard, call, outcome, out);
        break;
    case OUTCOME_REFUSED:
        if (outcome->waits && call->id != 0 && may_queue(shard, call)) {
            /* What it is told if its time runs out first: it names the holder. */
            buf_clear(&call->answer);
            buf_append(&call->answer, outcome->body.data, outcome->body.size);
            call_move(shard, call, CALL_QUEUED);
        } else {
            reply_bytes(shard, call, REPLY_REFUSED, outcome->body, out);
        }
        break;
    case OUTCOME_PENDING:
        call->destination = outcome->channel.destination;
        call->seq = outcome->channel.opened_seq;
        if (call->seq != 0) {
            call->claimed |= !outcome->duplicate;
            call_move(shard, call, CALL_SENDING);
            break;
        }
        call->claimed |= !outcome->duplicate;
        call_move(shard, call, CALL_STEALING);
        break;
    case OUTCOME_NONE:
        reply_bytes(shard, call, REPLY_OK, (struct slice){ 0 }, out);
        break;
    }
}

/* The first who waits for the player proposes again; where it cannot, the next one tries. */
static void wake_first(struct shard *shard, struct slice entity, const struct shard_event *event,
                       struct shard_out *out)
{
    struct call *next;

    for (struct call *call = call_of_player(shard, CALL_QUEUED, entity, NULL); call != NULL;
         call = next) {
        next = call_of_player(shard, CALL_QUEUED, entity, call);
        if (shard_call_propose(shard, call, event, out))
            break;
    }
}

/* Those of all players whose sessions came free propose again. */
static void wake_all(struct shard *shard, const struct shard_event *event, struct shard_out *out)
{
    struct call *next;

    for (struct call *call = shard->calls[CALL_QUEUED].first; call != NULL; call = next) {
        next = call->next;
        if (!applier_session_held(shard->applier, call->entity, event->unix_ms))
            (void)shard_call_propose(shard, call, event, out);
    }
}

static void wake_queued(struct shard *shard, struct slice entity, const struct shard_event *event,
                        struct shard_out *out)
{
    if (entity.size > 0)
        wake_first(shard, entity, event, out);
    else
        wake_all(shard, event, out);
}

/* Who was woken for it did not take the session: it was refused, or had its outcome already. */
static bool session_left_free(struct shard *shard, const struct outcome *outcome,
                              const struct shard_event *event)
{
    return outcome->method == METHOD_START_SESSION && shard->calls[CALL_QUEUED].count > 0 &&
           (outcome->kind == OUTCOME_REFUSED || outcome->duplicate) &&
           !applier_session_held(shard->applier, outcome->entity, event->unix_ms);
}

/* A caller that lost its link asks again under the same op_id, and may wait beside itself: the same
 * operation proposed again gets the outcome that has just been stored. */
static void wake_twins(struct shard *shard, const struct entry *entry, struct slice entity,
                       const struct shard_event *event, struct shard_out *out)
{
    struct call *next;

    for (struct call *call = call_of_player(shard, CALL_QUEUED, entity, NULL); call != NULL;
         call = next) {
        next = call_of_player(shard, CALL_QUEUED, entity, call);
        if (slice_equal(buf_slice(&call->request), entry->body))
            (void)shard_call_propose(shard, call, event, out);
    }
}

/* A claim on this player was decided or replaced: a caller that waits for one asks again, and
 * gets the outcome that is stored under its op_id. */
static void wake_stealing(struct shard *shard, const struct outcome *outcome,
                          const struct call *decided, const struct shard_event *event,
                          struct shard_out *out)
{
    struct call *next;

    for (struct call *call = call_of_player(shard, CALL_STEALING, outcome->entity, NULL);
         call != NULL; call = next) {
        next = call_of_player(shard, CALL_STEALING, outcome->entity, call);
        if (call != decided)
            (void)shard_call_propose(shard, call, event, out);
    }
}

static bool touches_sessions(uint32_t number)
{
    const struct method_info *method = method_find(number); /* NULL: the entry has none. */

    return method != NULL && (method->traits & METHOD_MOVES_SESSIONS) != 0;
}

static void count_outcome(struct shard *shard, const struct outcome *outcome)
{
    shard->stats.applied++;
    shard->stats.refused += outcome->kind == OUTCOME_REFUSED;
    shard->stats.duplicates += outcome->duplicate;
    shard->stats.stale_writes_refused += outcome->stale_write;
    shard->stats.rates_refused += outcome->rate_refused;
    shard->stats.entries_unapplied += outcome->unapplied;
    shard->stats.steals += outcome->method == METHOD_SESSION_DUE && outcome->decided_op_id.size > 0;
}

/* A steal's own call proposes again by itself: that is no duplicate of anybody's. */
static bool is_incident(const struct shard *shard, bool claimed, const struct outcome *outcome)
{
    if (!shard_serves(shard))
        return false;
    return (outcome->duplicate && !claimed) || outcome->stale_write ||
           outcome->channel.settled_count > 0 || outcome->session_freed ||
           (outcome->kind == OUTCOME_COMMITTED && (outcome->method == METHOD_CONTAIN_PLAYER ||
                                                   outcome->method == METHOD_RELEASE_QUARANTINE));
}

static void applied(struct shard *shard, const struct entry *entry, const struct outcome *outcome,
                    const struct shard_event *event, struct shard_out *out)
{
    struct rep_event done = {
        .type = REP_APPLIED,
        .now_ms = event->now_ms,
        .unix_ms = event->unix_ms,
        .index = entry->index,
        .outcome = applier_outcome_hash(shard->applier),
    };
    struct call *call = call_at(shard, entry->index);
    bool claimed = call != NULL && call->claimed; /* An answer may be the call's end. */

    if (claimed) {
        struct outcome own = *outcome;

        own.duplicate = false;
        answer_call(shard, call, &own, out);
    } else if (call != NULL) {
        answer_call(shard, call, outcome, out);
    }
    if (outcome->session_freed || session_left_free(shard, outcome, event))
        wake_queued(shard, outcome->entity, event, out);
    if (outcome->method == METHOD_START_SESSION && outcome->kind == OUTCOME_COMMITTED &&
        !outcome->duplicate && shard->calls[CALL_QUEUED].count > 0)
        wake_twins(shard, entry, outcome->entity, event, out);
    if (!outcome->duplicate && touches_sessions(outcome->method) &&
        shard->calls[CALL_STEALING].count > 0)
        wake_stealing(shard, outcome, call, event, out);
    if (outcome->channel.touched)
        shard_channel_follow(shard, outcome, event, out);
    count_outcome(shard, outcome);
    shard_erasure_follow(shard, entry, outcome, out);
    if (is_incident(shard, claimed, outcome))
        incident_applied(shard, entry, outcome, event, out);
    CHECK(shard_rep_step(shard, &done, out) == ERR_OK);
    if (outcome->channel.intents_ended > 0)
        shard_read_wake(shard, event, out);
    if (shard->due_index == entry->index)
        shard_due_applied(shard, event, out);
}

/* The greatest of the destinations whose decisions it has. */
static uint64_t settle_cut(struct slice request)
{
    struct reader reader = reader_from(request);
    struct proto_field field;
    uint64_t greatest = 0;

    while (proto_scan_next(&reader, &field)) {
        uint64_t cut = 0;

        if (field.number == CUT_FIELD && field.is_varint)
            cut = field.varint;
        else if (field.number == SETTLE_MORE_FIELD && field.is_bytes)
            (void)proto_scan_varint(field.bytes, CUT_FIELD, &cut);
        if (cut > greatest)
            greatest = cut;
    }
    return greatest;
}

/* The cut that an entry takes before anything else; 0: none. shard_check_step holds it against what
 * the entry did. */
static uint64_t cut_brought(const struct entry *entry)
{
    struct reader reader = reader_from(entry->body);
    uint64_t cut = 0;
    struct op op;

    if (entry->kind == ENTRY_CUT)
        return read_u64(&reader);
    if (entry->kind != ENTRY_OP || op_decode(entry->body, &op) != ERR_OK)
        return 0;
    if (op.method == METHOD_CHANNEL_DELIVER)
        (void)proto_scan_varint(op.request, DELIVER_CUT_FIELD, &cut);
    else if (op.method == METHOD_CHANNEL_SETTLE)
        cut = settle_cut(op.request);
    else if (op.method == METHOD_TAKE_CUT || op.method == METHOD_CUT_BACKUP)
        (void)proto_scan_varint(op.request, CUT_FIELD, &cut);
    return cut;
}

void shard_arm(struct shard *shard, uint64_t cut)
{
    shard->armed_cut = cut;
    shard->at_cut = false;
}

bool shard_at_cut(const struct shard *shard)
{
    return shard->at_cut;
}

void shard_pass_cut(struct shard *shard)
{
    CHECK(shard->at_cut);
    shard_arm(shard, 0);
}

/* Rows are missing: those of the entries behind are loaded with them. */
static void foresee(struct shard *shard, uint64_t blocked_index)
{
    uint64_t last = rep_commit_index(shard->rep);

    if (last > blocked_index + FORESEEN_MAX)
        last = blocked_index + FORESEEN_MAX;
    if (shard->foreseen_index < blocked_index)
        shard->foreseen_index = blocked_index;
    while (shard->foreseen_index < last) {
        const struct entry *entry = rep_entry(shard->rep, ++shard->foreseen_index);
        applier_foresee(shard->applier, entry, &shard->need);
    }
}

void shard_apply(struct shard *shard, const struct shard_event *event, struct shard_out *out)
{
    uint32_t left = shard->limits.apply_batch_max;

    shard->apply_blocked = false;
    while (applier_applied_index(shard->applier) < rep_commit_index(shard->rep) && left-- > 0) {
        uint64_t index = applier_applied_index(shard->applier) + 1;
        if (shard->halt_index != 0 && index >= shard->halt_index)
            break;
        struct entry *entry = entry_ref(rep_entry(shard->rep, index));
        struct outcome outcome = { 0 };

        if (shard->armed_cut != 0 && cut_brought(entry) >= shard->armed_cut) {
            shard->at_cut = true;
            entry_unref(entry);
            break;
        }
        shard->applying_index = index;
        err e = applier_apply(shard->applier, entry, &shard->need, &outcome);
        shard->applying_index = 0;
        if (e == ERR_NEED) {
            shard->apply_blocked = true;
            shard->stats.need_rounds++;
            foresee(shard, index);
            shard_ask_rows(shard, out);
        } else {
            CHECK(e == ERR_OK);
            applied(shard, entry, &outcome, event, out);
        }
        entry_unref(entry);
        if (shard->apply_blocked)
            break;
    }
    shard->stats.committed = rep_commit_index(shard->rep);
}
