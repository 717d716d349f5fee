#include "node/core/replication/rep_internal.h"
#include "runtime/base/check.h"

/* Below base_index everything is committed, hence the same in every later owner's log. */
static bool prev_matches(const struct rep *rep, const struct rep_message *m)
{
    if (m->prev_index < rep->window.base_index)
        return true;
    if (m->prev_index > rep->window.last_index)
        return false;
    return hash128_equal(m->prev_hash, rep_log_hash(rep, m->prev_index));
}

/* A START of an apply version that this program does not know, and so all that follows: the
 * owner that made it took us for a later program, which we were before (DESIGN section 4,
 * Determinism). */
static bool is_too_new(const struct rep *rep, const struct entry *entry)
{
    struct start start;

    return entry->kind == ENTRY_START && start_decode(entry->body, &start) == ERR_OK &&
           start.apply_version > rep->apply_version_max;
}

/* True when our log holds `entry` afterwards. `entry` is at most one past the last. */
static bool accept_entry(struct rep *rep, const struct rep_message *m, struct entry *entry,
                         struct rep_out *out)
{
    uint64_t last = rep->window.last_index;

    if (entry->index <= rep->window.base_index)
        return true;
    if (entry->index <= last &&
        hash128_equal(entry->hash, rep_log_slot(rep, entry->index)->entry->hash))
        return true;
    if (!hash128_equal(entry->prev_hash, rep_log_hash(rep, entry->index - 1)))
        return false;
    if (entry->index <= last)
        rep_log_truncate(rep, entry->index - 1, out); /* Orphans of a deposed owner. */
    if (entry->dot.epoch > rep->promise.epoch)
        return false;
    if (m->type == REP_MSG_APPEND && !rep_clock_takes(rep, m, entry)) {
        rep->refused_index = entry->index;
        return false;
    }
    if (!rep_log_has_room(rep) || !rep_log_follows(rep, entry))
        return false;
    if (is_too_new(rep, entry)) {
        out->too_new = true;
        return false;
    }
    rep_log_push(rep, entry);
    return true;
}

bool rep_accept(struct rep *rep, const struct rep_message *m, struct rep_out *out)
{
    uint64_t reached = m->prev_index;

    if (!prev_matches(rep, m))
        return false;
    for (uint32_t i = 0; i < m->entry_count; i++) {
        struct entry *entry = m->entries[i];
        if (entry->index != reached + 1 || !accept_entry(rep, m, entry, out))
            break;
        reached = entry->index;
    }
    if (reached > rep->verified_index)
        rep->verified_index = reached;
    rep_log_write(rep, out);
    return true;
}

/* What the owner may count: identical with its log, and durable here under a durable promise.
 * Never simply the end of our log: that may hold another owner's orphans. */
static uint64_t matched_index(const struct rep *rep)
{
    if (rep->promise_ticket > rep->ticket_persisted)
        return 0;
    return rep->verified_index < rep->durable_index ? rep->verified_index : rep->durable_index;
}

void rep_follower_commit(struct rep *rep, struct rep_out *out)
{
    uint64_t index =
        rep->verified_index < rep->durable_index ? rep->verified_index : rep->durable_index;

    if (index > rep->owner_commit_index)
        index = rep->owner_commit_index;
    if (index <= rep->commit_index)
        return;
    rep->commit_index = index;
    out->committed = true;
}

/* It holds the START of the owner that it follows, which is committed, and so all that was
 * committed before: what it lacks proves something again. */
static void hold_again(struct rep *rep, struct rep_out *out)
{
    struct dot last = rep_log_last_dot(rep);

    if (!rep->dropped || last.epoch != rep->promise.epoch ||
        rep->commit_index + last.counter <= rep->window.last_index)
        return;
    rep->dropped = false;
    rep_write_promise(rep, out);
}

static void acknowledge(struct rep *rep, struct rep_out *out)
{
    struct rep_message ack = rep_message_make(rep, REP_MSG_APPEND_ACK);

    ack.behind = rep_clock_is_behind(rep);
    ack.matched_index = matched_index(rep);
    ack.round = rep->told_round;
    rep->told_index = ack.matched_index;
    rep_send(out, rep->promise.owner, &ack);
}

static void refuse(struct rep *rep, uint64_t from, const struct rep_message *m, struct rep_out *out)
{
    struct rep_message ack = rep_message_make(rep, REP_MSG_APPEND_ACK);

    ack.refused = true;
    ack.behind = rep_clock_is_behind(rep);
    ack.prev_index = m->prev_index;
    ack.matched_index = matched_index(rep);
    ack.round = rep->told_round;
    ack.vector = rep->vector;
    rep_send(out, from, &ack);
}

static void hear_owner(struct rep *rep, const struct rep_message *m, struct rep_out *out)
{
    rep->owner_heard_ms = rep->now_ms;
    rep->owner_unix_ms = m->unix_ms;
    rep->retain_index = m->retain_index;
    rep->snapshot_source = m->behind ? rep->promise.owner : 0;
    rep->members_version = m->apply_version;
    rep->members_config = m->config;
    if (m->generation > rep->generation)
        rep->generation = m->generation;
    if (m->commit_index > rep->owner_commit_index)
        rep->owner_commit_index = m->commit_index;
    (void)rep_outcome_compare(rep, m, out);
    if (m->refused)
        rep_quarantine(rep, out);
}

void rep_append(struct rep *rep, uint64_t from, const struct rep_message *m, struct rep_out *out)
{
    struct promise asked = rep_promise_of(m);
    enum rep_order order = rep_promise_order(rep, &asked);

    if (m->owner != from || from == rep->self)
        return;
    if (order == REP_LOWER) {
        refuse(rep, from, m, out);
        return;
    }
    if (order == REP_GREATER)
        rep_promise(rep, &asked, out);
    hear_owner(rep, m, out);
    rep->seal_answer.due = false; /* It has STARTed without our word. */

    bool round_new = m->round > rep->told_round;
    if (round_new)
        rep->told_round = m->round;
    if (!rep_accept(rep, m, out)) {
        refuse(rep, from, m, out);
        return;
    }
    rep_follower_commit(rep, out);
    hold_again(rep, out);
    if (round_new || rep->ticket_step == 0)
        acknowledge(rep, out); /* What was written is acknowledged when it is durable. */
}

void rep_follower_settle(struct rep *rep, struct rep_out *out)
{
    rep_follower_commit(rep, out);
    if (rep->promise.owner == rep->self || rep->promise.owner == 0)
        return;
    hold_again(rep, out);
    if (matched_index(rep) > rep->told_index)
        acknowledge(rep, out);
}
