#include <stdlib.h>
#include <string.h>

#include "node/core/replication/rep_internal.h"
#include "runtime/base/check.h"

#define FIRST_START_WAIT_MS 5000u
/* For members that could show that an entry dated ahead is not committed. */
#define CLOCK_WAIT_MS 2000u

static void peers_add(struct rep *rep, const uint64_t *replicas, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (replicas[i] == rep->self || rep_peer_find(rep, replicas[i]) != NULL)
            continue;
        CHECK(rep->peer_count < REP_PEERS_MAX);
        rep->peers[rep->peer_count++] =
            (struct rep_peer){ .replica = replicas[i],
                               .heard_ms = rep->now_ms,
                               .learner = !membership_has(&rep->membership, replicas[i]) };
    }
}

static void seal_send(struct rep *rep, struct rep_out *out)
{
    rep->seal_ms = rep->now_ms;
    for (uint32_t i = 0; i < rep->peer_count; i++) {
        const struct rep_peer *peer = &rep->peers[i];
        if (peer->learner || (peer->sealed && !peer->given_up))
            continue;
        struct rep_message m = rep_message_make(rep, REP_MSG_SEAL);
        rep_send(out, peer->replica, &m);
    }
}

/* DESIGN section 4, Promotion: step 1 and the start of step 2. */
static void promote_begin(struct rep *rep, const struct rep_record *record, struct rep_out *out)
{
    const struct membership *m = &record->membership;
    struct promise promise = { m->config, record->epoch, rep->self };

    if (rep_promise_order(rep, &promise) == REP_GREATER)
        rep_promise(rep, &promise, out);
    /* Resumed, its log may lack what it had when it was sealed. */
    rep->sealed_index = rep->resumes ? UINT64_MAX : rep->window.last_index;
    rep->resumes = false;
    rep->differs_index = 0;
    rep->membership = *m;
    rep->peers = mem_zalloc(REP_PEERS_MAX * sizeof rep->peers[0]);
    peers_add(rep, m->members, m->count);
    peers_add(rep, m->new_members, m->new_count);
    peers_add(rep, &m->learner, m->learner != 0 ? 1 : 0);
    rep->seal_begun_ms = rep->now_ms;
    rep_role_set(rep, REP_SEALING, out);
    seal_send(rep, out);
}

/* An owner that still believes in an earlier record gets no promise, and no acknowledgement, from
 * here any more. Of the epoch in the record itself we heard nothing else, or this is refused. */
static void bury(struct rep *rep, const struct rep_record *record, struct rep_out *out)
{
    struct promise tombstone = { record->membership.config, record->epoch, 0 };

    if (rep_promise_order(rep, &tombstone) == REP_GREATER)
        rep_promise(rep, &tombstone, out);
}

/* It is to be removed, and nothing else: what is left of its promises is no proof of anything. */
static void record_damaged(struct rep *rep, const struct rep_record *record, struct rep_out *out)
{
    struct promise tombstone = { record->membership.config, record->epoch, 0 };

    const struct membership *m = &record->membership;

    if (!record->confirmed || membership_names(m, rep->self) || m->count > MEMBERS_MAX ||
        m->new_count > MEMBERS_MAX)
        return;
    bury(rep, record, out);
    rep->buried = rep_promise_order(rep, &tombstone) == REP_SAME;
    if (rep->buried)
        rep->membership = *m;
}

void rep_record(struct rep *rep, const struct rep_record *record, struct rep_out *out)
{
    const struct membership *m = &record->membership;
    struct promise asked = { m->config, record->epoch, record->owner };

    if (record->generation < rep->generation || record->epoch < rep->known.epoch)
        return; /* An old one, read late. */
    rep->generation = record->generation;
    rep_know(rep, &asked);
    if (rep->role == REP_DAMAGED) {
        record_damaged(rep, record, out);
        return;
    }
    if (rep_is_tombstone(rep) && m->count <= MEMBERS_MAX && m->new_count <= MEMBERS_MAX &&
        m->config >= rep->membership.config)
        rep->membership = *m; /* Perhaps read again, after a restart that forgot it. */
    enum rep_order order = rep_promise_order(rep, &asked);
    bool resumes = rep->resumes && order == REP_SAME;
    if ((record->epoch <= rep->promise.epoch && !resumes) || m->count > MEMBERS_MAX ||
        m->new_count > MEMBERS_MAX)
        return;
    rep_step_down(rep, out);
    if (m->config >= rep->membership.config)
        rep->membership = *m;
    if (!membership_names(m, rep->self)) {
        bury(rep, record, out);
        return;
    }
    if (record->owner != rep->self || !rep->votes || rep->quarantined || rep->dropped)
        return;
    if ((order != REP_GREATER && !resumes) || !membership_has(m, rep->self))
        return;
    promote_begin(rep, record, out);
}

/* Only once the promise, and every append accepted before it, is durable: an append that is on
 * its way to the disk might be acknowledged later, unseen by the new owner. */
void rep_seal_settle(struct rep *rep, struct rep_out *out)
{
    struct rep_seal_answer *answer = &rep->seal_answer;

    if (!answer->due || rep->ticket_persisted < answer->ticket)
        return;
    answer->due = false;
    CHECK(rep->durable_index == rep->window.last_index);
    struct rep_message m = rep_message_make(rep, REP_MSG_SEAL_ACK);
    m.vector = rep->vector;
    m.last_dot = rep_log_last_dot(rep);
    rep_send(out, answer->to, &m);
}

void rep_seal(struct rep *rep, uint64_t from, const struct rep_message *m, struct rep_out *out)
{
    struct promise asked = rep_promise_of(m);
    enum rep_order order = rep_promise_order(rep, &asked);

    if (m->owner != from || from == rep->self || !rep->votes || rep->role == REP_DAMAGED)
        return;
    if (order == REP_LOWER) {
        struct rep_message refusal = rep_message_make(rep, REP_MSG_SEAL_ACK);
        refusal.refused = true;
        rep_send(out, from, &refusal);
        return;
    }
    if (rep->dropped)
        return;
    if (order == REP_GREATER)
        rep_promise(rep, &asked, out);
    if (m->generation > rep->generation)
        rep->generation = m->generation;
    rep->owner_heard_ms = rep->now_ms;
    rep->seal_answer = (struct rep_seal_answer){ true, from, rep->ticket_last };
    rep_seal_settle(rep, out);
}

void rep_seal_ack(struct rep *rep, uint64_t from, const struct rep_message *m, struct rep_out *out)
{
    struct rep_peer *peer = rep_peer_find(rep, from);
    struct promise theirs = rep_promise_of(m);

    if (peer == NULL || peer->learner || (rep->role != REP_SEALING && rep->role != REP_ADOPTING))
        return;
    peer->heard_ms = rep->now_ms;
    if (m->refused) {
        rep_refused(rep, &theirs, out);
        return;
    }
    if (rep_promise_order(rep, &theirs) != REP_SAME || !m->votes)
        return;
    if (m->last_dot.epoch >= rep->promise.epoch)
        return;
    peer->sealed = true;
    peer->given_up = false;
    peer->votes = true;
    peer->apply_version = m->apply_version;
    peer->quarantined = m->quarantined;
    peer->sealed_dot = m->last_dot;
    peer->sealed_commit_index = m->commit_index;
    peer->sealed_vector = m->vector;
    rep_promote(rep, out);
}

static bool has_sealed(const struct rep *rep, const struct rep_peer *peer)
{
    (void)rep;
    return peer->sealed && !peer->given_up;
}

/* The sealed member whose log ends with the greatest dot above `dot`; NULL when none does. The
 * present source is kept while it is among the greatest. */
static struct rep_peer *greatest_sealed(const struct rep *rep, struct dot dot)
{
    struct rep_peer *best = NULL;

    for (uint32_t i = 0; i < rep->peer_count; i++) {
        struct rep_peer *peer = &rep->peers[i];
        if (!has_sealed(rep, peer))
            continue;
        int order = dot_compare(peer->sealed_dot, dot);
        if (order > 0 || (order == 0 && best != NULL && peer == rep->source)) {
            best = peer;
            dot = peer->sealed_dot;
        }
    }
    return best;
}

static bool all_sealed(const struct rep *rep)
{
    for (uint32_t i = 0; i < rep->peer_count; i++) {
        if (!rep->peers[i].learner && !rep->peers[i].sealed)
            return false;
    }
    return true;
}

/* A shard that never had an entry waits a moment for every member to say what it can apply: of one
 * that is silent the least is assumed, and only another START raises that. */
static bool waits_for_versions(const struct rep *rep)
{
    return rep->window.last_index == 0 && !all_sealed(rep) &&
           rep->now_ms - rep->seal_begun_ms < FIRST_START_WAIT_MS;
}

static bool waits_for_clocks(struct rep *rep, struct rep_out *out)
{
    return !rep_clock_settle(rep, out) && !all_sealed(rep) &&
           rep->now_ms - rep->seal_begun_ms < CLOCK_WAIT_MS;
}

/* Steps 3 and 4. The last dot decides, not the length: a longer log may be of an older epoch. */
void rep_promote(struct rep *rep, struct rep_out *out)
{
    if (rep->role != REP_SEALING && rep->role != REP_ADOPTING)
        return;
    /* START may not be durable anywhere before our own promise is: having lost it, we would give
     * this epoch's first dot to a second START. */
    if (rep->ticket_persisted < rep->promise_ticket)
        return;
    if (!rep_quorum(rep, true, has_sealed)) {
        rep->source = NULL;
        return;
    }
    struct rep_peer *best = greatest_sealed(rep, rep_log_last_dot(rep));
    if (best == NULL) {
        rep->source = NULL;
        if (rep->durable_index == rep->window.last_index && !waits_for_versions(rep) &&
            !waits_for_clocks(rep, out))
            rep_start(rep, out);
        return;
    }
    if (rep->role != REP_ADOPTING)
        rep_role_set(rep, REP_ADOPTING, out);
    if (best == rep->source)
        return;
    rep->source = best;
    rep->source_dot = best->sealed_dot;
    rep->source_tries = 0;
    rep->verified_index = 0;
    rep_fetch_send(rep, out);
}

void rep_promote_tick(struct rep *rep, struct rep_out *out)
{
    if (rep->now_ms - rep->seal_ms >= rep->limits.retry_ms)
        seal_send(rep, out);
    if (rep->source == NULL)
        rep_promote(rep, out); /* The time is over for which it waited. */
    if (rep->source == NULL || rep->now_ms - rep->source_ms < rep->limits.retry_ms)
        return;
    if (!rep_log_has_room(rep)) {
        rep->source_ms = rep->now_ms; /* Ours is the fault: entries wait to be applied. */
        return;
    }
    if (++rep->source_tries < REP_FETCH_TRIES_MAX) {
        rep_fetch_send(rep, out);
        return;
    }
    /* Any majority that sealed will do: one without this source, or with another of its log. */
    rep->source->given_up = true;
    rep->source = NULL;
    rep_promote(rep, out);
}
