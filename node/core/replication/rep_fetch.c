#include "node/core/replication/rep_internal.h"
#include "runtime/base/check.h"

void rep_fetch_send(struct rep *rep, struct rep_out *out)
{
    struct rep_message m = rep_message_make(rep, REP_MSG_FETCH);

    m.vector = rep->vector;
    m.last_dot = rep_log_last_dot(rep);
    rep->source_ms = rep->now_ms;
    rep_send(out, rep->source->replica, &m);
}

static void fetch_reply(struct rep *rep, uint64_t to, struct rep_message *reply,
                        struct rep_out *out)
{
    reply->last_dot = rep_log_last_dot(rep);
    rep_send(out, to, reply);
}

/* Any log that was sealed stays as it is until START of that epoch, so it can be read in parts. */
void rep_fetch(struct rep *rep, uint64_t from, const struct rep_message *m, struct rep_out *out)
{
    struct promise asked = rep_promise_of(m);
    uint64_t last = rep->window.last_index;
    uint64_t shared = vector_common_index(&rep->vector, &m->vector);

    if (m->owner != from || rep->role != REP_FOLLOWER || !rep->votes)
        return;
    if (rep_promise_order(rep, &asked) != REP_SAME || rep->durable_index != last)
        return;
    if (m->commit_index > shared) /* What is committed there is in our log too. */
        shared = m->commit_index < last ? m->commit_index : last;
    if (shared < rep->window.base_index) {
        uint64_t to_index = shared + rep->limits.append_entries_max;
        if (to_index > rep->window.base_index)
            to_index = rep->window.base_index;
        rep->fetch_answer = (struct rep_fetch_answer){ true, from, shared + 1 };
        rep_ask_log(out, shared + 1, to_index);
        return;
    }
    struct rep_message reply = rep_message_make(rep, REP_MSG_FETCH_ACK);
    reply.prev_index = shared;
    reply.prev_hash = rep_log_hash(rep, shared);
    if (shared < last)
        rep_message_fill(rep, &reply, shared + 1, last);
    fetch_reply(rep, from, &reply, out);
}

/* A snapshot of any replica is a beginning of every later log, so the rows need not come from where
 * the log does. The one that has committed most, and whose rows are right; NULL: there is none. */
static const struct rep_peer *rows_source(const struct rep *rep)
{
    const struct rep_peer *best = NULL;

    for (uint32_t i = 0; i < rep->peer_count; i++) {
        const struct rep_peer *peer = &rep->peers[i];

        if (peer->sealed && !peer->quarantined && peer->sealed_commit_index > rep->commit_index &&
            (best == NULL || peer->sealed_commit_index > best->sealed_commit_index))
            best = peer;
    }
    return best;
}

/* The source's log does not reach back to ours. */
static void fetch_behind(struct rep *rep, const struct rep_message *m, struct rep_out *out)
{
    const struct rep_peer *rows = rep->source;

    rep->source->quarantined = m->quarantined;
    if (m->quarantined)
        rows = rows_source(rep);
    rep->snapshot_source = rows != NULL ? rows->replica : 0;
    out->rows_wanting = rows == NULL && !rep->rows_wanting;
    rep->rows_wanting = rows == NULL;
}

bool rep_fetch_ack(struct rep *rep, uint64_t from, const struct rep_message *m, struct rep_out *out)
{
    struct promise theirs = rep_promise_of(m);

    if (rep->role != REP_ADOPTING || rep->source == NULL || rep->source->replica != from)
        return false;
    if (rep_promise_order(rep, &theirs) != REP_SAME ||
        dot_compare(m->last_dot, rep->source_dot) != 0)
        return false;
    rep->source->heard_ms = rep->now_ms;
    if (m->behind) {
        fetch_behind(rep, m, out);
        return false;
    }
    if (!rep_accept(rep, m, out))
        return false; /* Cannot be, since what is shared is never overestimated; ask again later. */
    if (m->commit_index > rep->owner_commit_index)
        rep->owner_commit_index = m->commit_index;
    rep_follower_commit(rep, out);
    if (dot_compare(rep_log_last_dot(rep), rep->source_dot) == 0)
        return true;
    if (rep->ticket_step != 0) { /* Something new came: go on at once. */
        rep->source_tries = 0;
        rep_fetch_send(rep, out);
    }
    return false;
}

static void fetch_read(struct rep *rep, const struct rep_event *event, struct rep_out *out)
{
    struct rep_fetch_answer *answer = &rep->fetch_answer;
    struct rep_message reply = rep_message_make(rep, REP_MSG_FETCH_ACK);

    if (!answer->due || answer->from_index != event->index)
        return;
    answer->due = false;
    reply.behind = event->entry_count == 0;
    if (reply.behind) {
        fetch_reply(rep, answer->to, &reply, out);
        return;
    }
    reply.prev_index = event->index - 1;
    reply.prev_hash = event->entries[0]->prev_hash;
    rep_message_fill_from(rep, &reply, event->entries, event->entry_count);
    fetch_reply(rep, answer->to, &reply, out);
}

/* Only entries at or below base_index are asked for; those are applied here, hence final. */
void rep_log_read(struct rep *rep, const struct rep_event *event, struct rep_out *out)
{
    for (uint32_t i = 0; i < event->entry_count; i++) {
        CHECK(event->entries[i]->index == event->index + i);
        CHECK(event->entries[i]->index <= rep->window.last_index);
    }
    fetch_read(rep, event, out);
    for (uint32_t i = 0; i < rep->peer_count; i++)
        rep_peer_read(rep, &rep->peers[i], event, out);
}
