#include "node/core/mergeable/write.h"

#include <stdlib.h>
#include <string.h>

#include "node/core/mergeable/absorb.h"
#include "node/core/mergeable/counter.h"
#include "node/core/mergeable/folding.h"
#include "node/core/mergeable/log_record.h"
#include "node/core/mergeable/message.h"
#include "node/core/mergeable/pending.h"
#include "node/core/mergeable/seen.h"
#include "runtime/base/check.h"

#define HLC_COUNT_BITS 16u

/* Lately, or before this member's clock was set back. */
static bool was_heard(const struct merge_peer *peer, uint64_t now_ms)
{
    return peer->reported && now_ms <= peer->heard_ms + MERGE_HEARD_MS_MAX;
}

/* How far this member's clock is off the median of its peers', in ms: of an even number the one
 * that is nearer. */
static uint64_t clock_off_ms(const struct merge_replica *replica, uint64_t now_ms)
{
    int64_t offsets[MERGE_PEERS_MAX];
    uint32_t count = 0;

    for (uint32_t i = 0; i < replica->peer_count; i++) {
        const struct merge_peer *peer = &replica->peers[i];
        int64_t offset_ms = peer->offset_ms;
        uint32_t at = count;

        if (!was_heard(peer, now_ms))
            continue;
        if (peer->heard_ms > now_ms) /* This member's clock was set back since. */
            offset_ms = (int64_t)(peer->told_ms - now_ms);
        for (; at > 0 && offsets[at - 1] > offset_ms; at--)
            offsets[at] = offsets[at - 1];
        offsets[at] = offset_ms;
        count++;
    }
    if (count == 0)
        return 0;
    uint64_t low = (uint64_t)llabs(offsets[(count - 1) / 2]);
    uint64_t high = (uint64_t)llabs(offsets[count / 2]);

    return low < high ? low : high;
}

static err unavailable(struct merge_refusal *refusal, const char *field, uint64_t value)
{
    refusal->field = field;
    refusal->value = value;
    return ERR_UNAVAILABLE;
}

static err check_can_write(const struct merge_replica *replica, uint64_t now_ms,
                           struct merge_refusal *ret_refusal)
{
    const struct mclock_actor *own = mclock_find(&replica->clock, replica->actor);
    uint64_t off_ms = clock_off_ms(replica, now_ms);

    if (!merge_is_member(replica, replica->options.member))
        return unavailable(ret_refusal, "member", replica->options.member);
    if (replica->syncing)
        return unavailable(ret_refusal, "syncing", 0);
    if ((own != NULL && own->closed) || merge_actor_era(replica->actor) < replica->clock.era)
        return unavailable(ret_refusal, "actor", replica->actor);
    if (off_ms > MERGE_CLOCK_MS_MAX) {
        ret_refusal->limit = MERGE_CLOCK_MS_MAX;
        return unavailable(ret_refusal, "clock", off_ms);
    }
    return ERR_OK;
}

static err open_token(const struct merge_replica *replica, const struct merge_write *write,
                      struct merge_token *ret_token, struct merge_refusal *ret_refusal)
{
    *ret_refusal = (struct merge_refusal){ .field = "token" };
    return merge_token_take(replica, write->key, write->token, ret_token);
}

static err full(struct merge_refusal *refusal, const char *field, uint64_t limit)
{
    *refusal = (struct merge_refusal){ .field = field, .limit = limit, .value = limit };
    return ERR_FULL;
}

/* The process's actor stands in clock and log before its first dot. */
static err name_actor(struct merge_replica *replica)
{
    uint64_t member = replica->options.member;

    if (mclock_find(&replica->clock, replica->actor) != NULL)
        return ERR_OK;
    if (mclock_name(&replica->clock, replica->actor, member) != ERR_OK)
        return ERR_FULL;
    merge_log_name(replica, replica->actor, member);
    return ERR_OK;
}

static bool gives(const struct merge_edits *edits)
{
    bool any = false;

    for (uint32_t i = 0; i < edits->count; i++)
        any |= !edits->list[i].remove;
    return any;
}

/* Makes the write's state beside the stored one, then takes it in like any other. */
static err commit(struct merge_replica *replica, struct merge_key *key, enum merge_policy policy,
                  struct merge_edits *edits, struct merge_refusal *ret_refusal)
{
    struct merge_record record;
    struct merge_incoming incoming = {
        .key = key, .record = &record, .dots = &edits->dot, .dot_count = 1
    };

    edits->dot = (struct merge_dot){ replica->actor, replica->counter + 1 };
    merge_record_full(replica, key, &record);
    if (record.policy == MERGE_POLICY_NONE)
        record.policy = policy;
    /* It takes away what is not here, by a caller that has seen nothing. */
    bool is_void = !gives(edits) && edits->seen == NULL && record.count == 0 &&
                   causal_is_empty(&record.recent);
    err e = ERR_OK;

    if (causal_covers(&record.context, edits->dot) || mclock_covers(&replica->clock, edits->dot)) {
        /* A peer or a disk claims what this process has not written yet. */
        e = unavailable(ret_refusal, "actor", edits->dot.counter);
    } else if (record.policy != policy) {
        *ret_refusal = (struct merge_refusal){ .field = "policy", .value = policy };
        e = ERR_INVALID;
    } else if (merge_edits_differ(&record, edits)) {
        *ret_refusal = (struct merge_refusal){ .field = "op_id" };
        e = ERR_INVALID;
    } else if (merge_edits_stand(&record, edits->op)) {
        /* Like a counter's retry, it leaves nothing but its dot. */
        *edits = (struct merge_edits){ .dot = edits->dot, .hlc = edits->hlc };
    } else {
        e = merge_edits_fit(&record, edits, ret_refusal);
    }
    if (e == ERR_OK && name_actor(replica) != ERR_OK)
        e = full(ret_refusal, "actors", MCLOCK_ACTORS_MAX);
    if (e == ERR_OK) {
        merge_edits_apply(&record, edits);
        if (is_void)
            causal_deinit(&record.recent);
        e = merge_absorb_logged(replica, &incoming);
        if (e != ERR_OK)
            e = full(ret_refusal, "actors", MCLOCK_ACTORS_MAX);
    }
    if (e == ERR_OK)
        replica->counter++;
    merge_record_deinit(&record);
    return e;
}

static uint64_t next_hlc(const struct merge_replica *replica, uint64_t now_ms,
                         const struct merge_token *token)
{
    uint64_t last = token->hlc > replica->hlc ? token->hlc : replica->hlc;
    uint64_t now = now_ms << HLC_COUNT_BITS;

    return now > last ? now : last + 1;
}

/* This member's wall clock, or what the clocks of all peers that were heard lately have passed:
 * they fold by theirs, so one that was set back revives no operation. Hybrid time would not do: one
 * write under a clock that was ahead carries it to all members, where it stays. */
static uint64_t passed_ms(const struct merge_replica *replica, uint64_t now_ms)
{
    uint64_t told_ms = UINT64_MAX;
    bool heard = false;

    for (uint32_t i = 0; i < replica->peer_count; i++) {
        const struct merge_peer *peer = &replica->peers[i];

        if (!was_heard(peer, now_ms))
            continue;
        heard = true;
        told_ms = peer->told_ms < told_ms ? peer->told_ms : told_ms;
    }
    return heard && told_ms > now_ms ? told_ms : now_ms;
}

/* Where its other attempts may be folded already, a retry would count again. */
static err check_op(const struct merge_replica *replica, const struct merge_write *write,
                    uint64_t now_ms, struct merge_refusal *ret_refusal)
{
    if (write->policy != MERGE_POLICY_COUNTER || write->op == 0)
        return ERR_OK;
    uint64_t latest_ms = passed_ms(replica, now_ms);
    uint64_t age_ms = latest_ms > write->op_ms ? latest_ms - write->op_ms : 0;
    uint64_t ahead_ms = write->op_ms > now_ms ? write->op_ms - now_ms : 0;

    *ret_refusal = (struct merge_refusal){ .field = "op_ms",
                                           .limit = replica->options.op_window_ms,
                                           .value = age_ms };
    if (age_ms > replica->options.op_window_ms)
        return ERR_CONFLICT;
    if (ahead_ms <= MERGE_CLOCK_MS_MAX)
        return ERR_OK;
    ret_refusal->limit = MERGE_CLOCK_MS_MAX;
    return unavailable(ret_refusal, "op_ms", ahead_ms);
}

static struct merge_edits edits_of(const struct merge_write *write, struct merge_token *token,
                                   struct causal *seen)
{
    *seen = (struct causal){ .count = token->count, .entries = token->entries };
    return (struct merge_edits){ .count = write->edit_count,
                                 .list = write->edits,
                                 .whole = write->whole,
                                 .seen = write->token.size > 0 ? seen : NULL,
                                 .own_count = token->own_count,
                                 .own = token->own,
                                 .op = write->op };
}

struct merge_left merge_write_left(const struct merge_replica *replica,
                                   const struct merge_record *record,
                                   const struct merge_write *write)
{
    struct merge_token token = { .count = 0 };
    struct causal seen;

    (void)!merge_token_take(replica, write->key, write->token, &token);
    const struct merge_edits edits = edits_of(write, &token, &seen);

    return merge_edits_left(record, &edits);
}

/* What the write leaves, if it waits for a majority. */
static uint64_t weight(const struct merge_replica *replica, const struct merge_write *write,
                       const struct merge_edits *edits)
{
    const struct merge_record *stored = merge_store_find(&replica->store, write->key);
    const struct merge_record nothing = { .policy = write->policy };

    return write->durability != MERGE_MAJORITY
               ? 0
               : merge_edits_left(stored != NULL ? stored : &nothing, edits).bytes;
}

static void wait_for(struct merge_replica *replica, uint64_t now_ms,
                     const struct merge_write *write, uint64_t bytes, struct merge_written *written)
{
    struct merge_pending *pending = merge_pending_new(replica, now_ms, bytes);

    CHECK(pending != NULL);
    pending->durability = write->durability;
    pending->key = merge_key_ref(write->key);
    pending->dot = written->dot;
    pending->log_position = write->durability == MERGE_MEMORY ? 0 : replica->log_end;
    written->ticket = pending->ticket;
    merge_send_write(replica, write->key, written->dot, write->durability == MERGE_MAJORITY);
    merge_pending_settle(replica);
}

err merge_write(struct merge_replica *replica, uint64_t now_ms, const struct merge_write *write,
                struct merge_written *ret_written, struct merge_refusal *ret_refusal)
{
    struct merge_token token;
    struct causal seen;
    err e = check_can_write(replica, now_ms, ret_refusal);

    if (e == ERR_OK)
        e = open_token(replica, write, &token, ret_refusal);
    if (e != ERR_OK)
        return e;
    struct merge_edits edits = edits_of(write, &token, &seen);

    edits.hlc = next_hlc(replica, now_ms, &token);
    e = merge_edits_check(write->policy, &edits, ret_refusal);
    if (e == ERR_OK)
        e = check_op(replica, write, now_ms, ret_refusal);
    if (e != ERR_OK)
        return e;
    if (write->durability == MERGE_MAJORITY && !merge_majority_is_near(replica, now_ms))
        return unavailable(ret_refusal, "majority", 0);
    const uint64_t bytes = weight(replica, write, &edits);
    uint64_t limit;
    const char *field = merge_pending_full(replica, bytes, &limit);

    if (field != NULL)
        return full(ret_refusal, field, limit);
    e = commit(replica, write->key, write->policy, &edits, ret_refusal);
    if (e != ERR_OK)
        return e;
    if (write->edit_count > 0 && replica->hlc < edits.hlc)
        replica->hlc = edits.hlc;
    ret_written->dot = edits.dot;
    wait_for(replica, now_ms, write, bytes, ret_written);
    return ERR_OK;
}

/* A walk of the sweep: what it takes away at one moment. */
struct sweep {
    uint64_t before_ms;
    struct merge_folding folding;
};

static bool may_be_swept(const struct merge_record *record, const struct sweep *sweep)
{
    bool may = record->policy == MERGE_POLICY_COUNTER && record->count > 0;

    for (uint32_t i = 0; i < record->count && !may; i++) {
        uint64_t expires_ms = record->cells[i]->expires_ms;

        may = expires_ms != 0 && expires_ms <= sweep->before_ms;
    }
    return may;
}

/* The removals; ret_swept: of a counter, one flag a cell. How many. They borrow from the record. */
static uint32_t choose_swept(const struct merge_record *record, const struct sweep *sweep,
                             struct merge_edit *ret_list, bool *ret_swept)
{
    if (record->policy == MERGE_POLICY_COUNTER)
        return merge_counter_swept(record, sweep->before_ms, &sweep->folding, ret_swept);
    return merge_expired_edits(record, sweep->before_ms, ret_list);
}

/* A write of this member's own. */
static err take_away(struct merge_replica *replica, uint64_t now_ms,
                     const struct merge_write *write, struct merge_edits *edits,
                     struct merge_written *ret_written)
{
    struct merge_refusal refusal = { 0 };

    if (replica->pending_count == MERGE_PENDING_MAX)
        return ERR_FULL;
    err e = commit(replica, write->key, write->policy, edits, &refusal);

    ret_written->dot = edits->dot;
    if (e == ERR_OK)
        wait_for(replica, now_ms, write, 0, ret_written);
    return e;
}

/* ERR_NOT_FOUND: nothing of it goes. Rows are not copied before it is known that something does. */
static err sweep_row(struct merge_replica *replica, uint64_t now_ms, const struct merge_row *row,
                     const struct sweep *sweep, struct merge_written *ret_written)
{
    struct merge_edit list[MERGE_EDITS_MAX];
    struct merge_record record;

    if (!may_be_swept(&row->record, sweep))
        return ERR_NOT_FOUND;
    bool *swept = mem_zalloc((row->record.count + 1) * sizeof *swept);
    uint32_t count = choose_swept(&row->record, sweep, list, swept);

    if (count == 0) {
        free(swept);
        return ERR_NOT_FOUND;
    }
    struct merge_key *key = merge_key_ref(row->key);

    merge_record_full(replica, key, &record); /* It has the cells that `list` borrows from. */
    struct merge_edits edits = { .count = record.policy == MERGE_POLICY_COUNTER ? 0 : count,
                                 .list = list,
                                 .seen = &record.context,
                                 .swept = swept };
    const struct merge_write write = { .key = key,
                                       .policy = record.policy,
                                       .durability = MERGE_ONE };
    err e = take_away(replica, now_ms, &write, &edits, ret_written);

    free(swept);
    merge_record_deinit(&record);
    merge_key_unref(key);
    return e;
}

err merge_drop(struct merge_replica *replica, uint64_t now_ms, struct merge_key *key,
               struct merge_written *ret_written)
{
    struct merge_refusal refusal = { 0 };
    struct merge_record record;
    err e = check_can_write(replica, now_ms, &refusal);

    if (e != ERR_OK)
        return e;
    merge_record_full(replica, key, &record);
    bool *swept = mem_alloc((record.count + 1) * sizeof *swept);

    memset(swept, true, record.count * sizeof *swept);
    struct merge_edits edits = { .whole = record.policy != MERGE_POLICY_COUNTER,
                                 .seen = &record.context,
                                 .swept = swept };

    const struct merge_write write = { .key = key,
                                       .policy = record.policy,
                                       .durability = MERGE_ONE };

    e = record.count == 0 ? ERR_NOT_FOUND : take_away(replica, now_ms, &write, &edits, ret_written);
    free(swept);
    merge_record_deinit(&record);
    return e;
}

err merge_sweep(struct merge_replica *replica, uint64_t now_ms, const struct merge_key *after,
                struct merge_key **ret_key, struct merge_written *ret_written)
{
    struct merge_refusal refusal = { 0 };
    struct sweep sweep = { .before_ms =
                               now_ms < MERGE_SWEEP_LATE_MS ? 0 : now_ms - MERGE_SWEEP_LATE_MS,
                           .folding = merge_folding_at(replica, now_ms) };
    err e = check_can_write(replica, now_ms, &refusal);

    if (e != ERR_OK)
        return e;
    for (uint32_t i = merge_store_after(&replica->store, after); i < replica->store.count; i++) {
        struct merge_key *key = merge_key_ref(replica->store.rows[i].key);

        e = sweep_row(replica, now_ms, &replica->store.rows[i], &sweep, ret_written);
        if (e == ERR_OK) {
            *ret_key = key;
            return ERR_OK;
        }
        merge_key_unref(key);
        if (e != ERR_NOT_FOUND)
            return e;
    }
    return ERR_NOT_FOUND;
}
