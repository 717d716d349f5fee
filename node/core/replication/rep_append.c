#include "node/core/replication/rep_internal.h"
#include "runtime/base/check.h"

/* What is in force never falls: every member could apply it. */
static uint32_t start_version(const struct rep *rep)
{
    uint32_t version = rep_apply_version_min(rep);

    if (version < rep->apply_version)
        version = rep->apply_version;
    return version > rep->apply_version_floor ? version : rep->apply_version_floor;
}

static struct entry *append_own(struct rep *rep, enum entry_kind kind, struct slice body)
{
    struct dot dot = rep_log_last_dot(rep);
    uint64_t owner_ms = rep_log_last_ms(rep);

    if (dot.epoch != rep->promise.epoch)
        dot = (struct dot){ rep->promise.epoch, rep->self, 0 };
    dot.counter++;
    /* START moves no time: the next owner keeps what it says, with its date. */
    if (owner_ms < rep->unix_ms && (kind != ENTRY_START || owner_ms == 0))
        owner_ms = rep->unix_ms;
    struct entry *entry =
        entry_new(kind,
                  &(struct entry_head){ .index = rep->window.last_index + 1,
                                        .dot = dot,
                                        .owner_ms = owner_ms,
                                        .prev_hash = rep_log_hash(rep, rep->window.last_index) },
                  body);
    rep_log_push(rep, entry);
    entry_unref(entry); /* The log has its own reference. */
    return entry;
}

static void peer_begin(const struct rep *rep, struct rep_peer *peer)
{
    uint64_t last = rep->window.last_index;
    uint64_t shared = last; /* Of one that did not answer: most likely it has all we have. */

    if (peer->sealed) {
        shared = vector_common_index(&rep->vector, &peer->sealed_vector);
        if (shared < peer->sealed_commit_index)
            shared = peer->sealed_commit_index < last ? peer->sealed_commit_index : last;
    }
    peer->mode = REP_PEER_PROBE;
    peer->next_index = shared + 1;
    peer->moved_ms = rep->now_ms;
}

void rep_start(struct rep *rep, struct rep_out *out)
{
    struct buf body = { 0 };
    struct start start = {
        .base_index = rep->window.last_index,
        .base_hash = rep_log_hash(rep, rep->window.last_index),
        .base = rep->vector,
        .membership = rep->membership,
        .generation = rep->generation,
        .apply_version = start_version(rep),
    };

    CHECK(rep_log_last_dot(rep).epoch < rep->promise.epoch);
    rep->verified_index = 0;
    rep->snapshot_source = 0;
    for (uint32_t i = 0; i < rep->peer_count; i++)
        peer_begin(rep, &rep->peers[i]);
    start_encode(&start, &body);
    rep->start_index = append_own(rep, ENTRY_START, buf_slice(&body))->index;
    buf_deinit(&body);
    rep_role_set(rep, REP_STARTING, out);
    rep_log_write(rep, out);
    rep_pump(rep, out);
}

err rep_propose(struct rep *rep, const struct rep_event *event, struct rep_out *out)
{
    uint64_t last = rep->window.last_index;

    CHECK(event->kind != ENTRY_START);
    if (rep->role != REP_OWNER || rep_clock_is_ahead(rep))
        return ERR_NOT_OWNER;
    if (event->body.size > ENTRY_BODY_BYTES_MAX)
        return ERR_TOO_LARGE;
    if (last - rep->commit_index >= rep->limits.inflight_entries_max)
        return ERR_FULL;
    if (rep_log_bytes(rep, rep->commit_index + 1, last) + event->body.size >
        rep->limits.inflight_bytes_max)
        return ERR_FULL;
    if (!rep_log_has_room(rep))
        return ERR_FULL;
    const struct entry *entry = append_own(rep, event->kind, event->body);
    out->proposed_index = entry->index;
    out->proposed_dot = entry->dot;
    return ERR_OK;
}

/* ---- Sending ---- */

static struct rep_message append_make(const struct rep *rep)
{
    struct rep_message m = rep_message_make(rep, REP_MSG_APPEND);

    m.unix_ms = rep->unix_ms;
    m.retain_index = rep_retain_index(rep);
    m.apply_version = rep_apply_version_min(rep);
    m.round = rep->round_open ? rep->round_started : 0;
    return m;
}

static bool peer_waits(const struct rep_peer *peer)
{
    return peer->probing || peer->next_index - 1 > peer->matched_index;
}

static void peer_sent(struct rep *rep, struct rep_peer *peer, const struct rep_message *m,
                      struct rep_out *out)
{
    struct rep_message told = *m;

    peer->sent_ms = rep->now_ms;
    if (rep->round_open)
        peer->round_sent = rep->round_started;
    /* What brings it a snapshot brings it other outcomes, of which it says nothing yet. */
    told.refused = peer->diverged && !peer->needs_snapshot;
    rep_send(out, peer->replica, &told);
}

/* A message that moves next_index or asks where the peer's log ends. */
static void peer_sent_entries(struct rep *rep, struct rep_peer *peer, const struct rep_message *m,
                              struct rep_out *out)
{
    if (peer->mode == REP_PEER_PROBE) {
        peer->probing = true;
        peer->probe_prev = m->prev_index;
        peer->probe_last = m->prev_index + m->entry_count;
        peer->progress_ms = rep->now_ms;
    } else if (!peer_waits(peer)) {
        peer->progress_ms = rep->now_ms;
    }
    peer->next_index = m->prev_index + m->entry_count + 1;
    peer_sent(rep, peer, m, out);
}

static void peer_send_entries(struct rep *rep, struct rep_peer *peer, struct rep_out *out)
{
    struct rep_message m = append_make(rep);

    m.prev_index = peer->next_index - 1;
    m.prev_hash = rep_log_hash(rep, m.prev_index);
    if (peer->next_index <= rep->written_index)
        rep_message_fill(rep, &m, peer->next_index, rep->written_index);
    peer_sent_entries(rep, peer, &m, out);
}

/* Claims a place in the log only where a refusal would tell that something was lost. */
static void peer_send_heartbeat(struct rep *rep, struct rep_peer *peer, struct rep_out *out)
{
    struct rep_message m = append_make(rep);

    m.behind = peer->needs_snapshot;
    if (peer->mode == REP_PEER_STREAM && peer->next_index > rep->window.base_index) {
        m.prev_index = peer->next_index - 1;
        m.prev_hash = rep_log_hash(rep, m.prev_index);
    }
    peer_sent(rep, peer, &m, out);
}

static void peer_ask_log(struct rep *rep, struct rep_peer *peer, struct rep_out *out)
{
    uint64_t to_index = peer->next_index + rep->limits.append_entries_max - 1;

    if (to_index > rep->window.base_index)
        to_index = rep->window.base_index;
    peer->reading = true;
    peer->read_ms = rep->now_ms;
    rep_ask_log(out, peer->next_index, to_index);
}

static bool window_open(const struct rep *rep, const struct rep_peer *peer)
{
    uint64_t first = peer->matched_index + 1;
    uint64_t count = peer->next_index - first;

    if (first <= rep->window.base_index)
        first = rep->window.base_index + 1;
    return count < (uint64_t)rep->limits.append_entries_max * REP_PIPELINE &&
           rep_log_bytes(rep, first, peer->next_index - 1) <
               (uint64_t)rep->limits.append_bytes_max * REP_PIPELINE;
}

static void peer_pump(struct rep *rep, struct rep_peer *peer, struct rep_out *out)
{
    uint32_t sends_before = out->send_count;

    while (!peer->reading) {
        bool from_disk = peer->next_index <= rep->window.base_index;
        if (peer->mode == REP_PEER_PROBE) {
            if (peer->probing)
                break;
        } else if (peer->next_index > rep->written_index || !window_open(rep, peer)) {
            break;
        } else if (from_disk && peer_waits(peer)) {
            break; /* From disk one batch at a time. */
        }
        if (!from_disk) {
            peer_send_entries(rep, peer, out);
            continue;
        }
        if (peer->needs_snapshot && rep->now_ms - peer->read_ms < rep->limits.retry_ms)
            break;
        peer_ask_log(rep, peer, out);
    }
    if (out->send_count == sends_before && rep->round_open &&
        peer->round_sent != rep->round_started)
        peer_send_heartbeat(rep, peer, out);
}

void rep_pump(struct rep *rep, struct rep_out *out)
{
    if (rep->role != REP_STARTING && rep->role != REP_OWNER)
        return;
    for (uint32_t i = 0; i < rep->peer_count; i++)
        peer_pump(rep, &rep->peers[i], out);
}

void rep_peer_read(struct rep *rep, struct rep_peer *peer, const struct rep_event *event,
                   struct rep_out *out)
{
    if (!peer->reading || peer->next_index != event->index)
        return;
    peer->reading = false;
    peer->needs_snapshot = event->entry_count == 0;
    if (peer->needs_snapshot)
        return;
    struct rep_message m = append_make(rep);
    m.prev_index = event->index - 1;
    m.prev_hash = event->entries[0]->prev_hash;
    rep_message_fill_from(rep, &m, event->entries, event->entry_count);
    peer_sent_entries(rep, peer, &m, out);
}

static void outgrown_look(struct rep *rep)
{
    bool outgrown = rep->role == REP_OWNER && rep->membership.new_count == 0 &&
                    rep_apply_version_min(rep) > rep->apply_version;

    if (!outgrown)
        rep->outgrown_ms = 0;
    else if (rep->outgrown_ms == 0)
        rep->outgrown_ms = rep->now_ms > 0 ? rep->now_ms : 1;
}

void rep_owner_tick(struct rep *rep, struct rep_out *out)
{
    outgrown_look(rep);
    for (uint32_t i = 0; i < rep->peer_count; i++) {
        struct rep_peer *peer = &rep->peers[i];

        if (peer->matched_index >= rep->written_index)
            peer->moved_ms = rep->now_ms;
        if (peer->reading && rep->now_ms - peer->read_ms >= rep->limits.retry_ms)
            peer->reading = false;
        if (peer_waits(peer) && rep->now_ms - peer->progress_ms >= rep->limits.retry_ms) {
            if (peer->matched_index > 0)
                peer->next_index = peer->matched_index + 1;
            else if (peer->probing)
                peer->next_index = peer->probe_prev + 1;
            peer->mode = REP_PEER_PROBE;
            peer->probing = false;
            peer->progress_ms = rep->now_ms;
        }
    }
    rep_pump(rep, out);
    for (uint32_t i = 0; i < rep->peer_count; i++)
        if (rep->now_ms - rep->peers[i].sent_ms >= rep->limits.heartbeat_ms)
            peer_send_heartbeat(rep, &rep->peers[i], out);
}

/* ---- Acknowledgements ---- */

/* Its log does not hold prev: go back to what both surely share, one message at a time. */
static void peer_rewind(struct rep *rep, struct rep_peer *peer, const struct rep_message *m)
{
    uint64_t last = rep->written_index;
    uint64_t shared = vector_common_index(&rep->vector, &m->vector);

    if (peer->mode == REP_PEER_PROBE && (!peer->probing || m->prev_index != peer->probe_prev))
        return;
    if (m->prev_index <= peer->matched_index || m->prev_index >= peer->next_index)
        return;
    if (shared < m->commit_index) /* Committed there: in our log too. */
        shared = m->commit_index;
    if (shared < peer->matched_index)
        shared = peer->matched_index;
    if (shared > last)
        shared = last;
    if (shared >= m->prev_index)
        return; /* Refused before it had what it has now. */
    peer->mode = REP_PEER_PROBE;
    peer->probing = false;
    peer->next_index = shared + 1;
    peer->progress_ms = rep->now_ms;
}

static void peer_matched(struct rep *rep, struct rep_peer *peer, const struct rep_message *m)
{
    uint64_t last = rep->written_index;

    if (m->matched_index > last)
        return; /* Not of our log: malformed. */
    if (m->matched_index > peer->matched_index) {
        peer->matched_index = m->matched_index;
        peer->progress_ms = rep->now_ms;
        peer->moved_ms = rep->now_ms;
    }
    if (peer->next_index <= peer->matched_index)
        peer->next_index = peer->matched_index + 1;
    if (peer->mode == REP_PEER_PROBE && peer->probing && peer->matched_index >= peer->probe_last) {
        peer->mode = REP_PEER_STREAM;
        peer->probing = false;
    }
    /* A snapshot has brought it to where the log can serve it again. */
    if (peer->needs_snapshot && m->commit_index >= peer->next_index && m->commit_index <= last) {
        peer->next_index = m->commit_index + 1;
        peer->needs_snapshot = false;
        peer->reading = false;
        rep_judge_forget(rep, peer);
    }
    if (peer->next_index > rep->window.base_index)
        peer->needs_snapshot = false; /* What it lacks is in memory. */
}

void rep_append_ack(struct rep *rep, uint64_t from, const struct rep_message *m,
                    struct rep_out *out)
{
    struct rep_peer *peer = rep_peer_find(rep, from);
    struct promise theirs = rep_promise_of(m);

    if (peer == NULL || (rep->role != REP_STARTING && rep->role != REP_OWNER))
        return;
    peer->heard_ms = rep->now_ms;
    if (rep_promise_order(rep, &theirs) != REP_SAME) {
        if (m->refused)
            rep_refused(rep, &theirs, out);
        return;
    }
    if (!m->votes && !peer->vote_lost) {
        /* A new life without what the old one had acknowledged: start from what it has now. */
        peer->vote_lost = true;
        peer->votes = false;
        peer->matched_index = 0;
        peer->moved_ms = rep->now_ms;
    }
    if (m->votes && peer->vote_lost)
        return; /* Late, of the old life. */
    peer->votes = m->votes;
    peer->apply_version = m->apply_version;
    peer->quarantined = m->quarantined;
    peer->clock_behind = m->behind;
    enum rep_verdict verdict = rep_outcome_compare(rep, m, out);
    peer_matched(rep, peer, m);
    if (m->refused)
        peer_rewind(rep, peer, m);
    if (m->round > peer->round_acked)
        peer->round_acked = m->round;
    rep_owner_commit(rep, out);
    rep_round_settle(rep, out);
    rep_pump(rep, out);
    rep_judge(rep, peer, &(struct rep_outcome){ m->applied_index, m->outcome }, verdict, out);
}

/* ---- Commit ---- */

/* What this member has made durable and counts; its own log counts once its disk says so. */
static uint64_t member_durable_index(const struct rep *rep, uint64_t replica)
{
    if (replica == rep->self)
        return rep->durable_index;
    const struct rep_peer *peer = rep_peer_find(rep, replica);
    return peer != NULL && peer->votes ? peer->matched_index : 0;
}

/* The greatest index that a majority has. */
static uint64_t majority_index(const struct rep *rep, const uint64_t *members, uint32_t count)
{
    uint64_t sorted[MEMBERS_MAX]; /* Descending. */

    CHECK(count > 0 && count <= MEMBERS_MAX);
    for (uint32_t n = 0; n < count; n++) {
        uint64_t index = member_durable_index(rep, members[n]);
        uint32_t at = n;
        for (; at > 0 && sorted[at - 1] < index; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = index;
    }
    return sorted[count / 2];
}

void rep_owner_commit(struct rep *rep, struct rep_out *out)
{
    const struct membership *m = &rep->membership;

    if (rep->role != REP_STARTING && rep->role != REP_OWNER)
        return;
    uint64_t index = majority_index(rep, m->members, m->count);
    if (m->new_count > 0) {
        uint64_t index_new = majority_index(rep, m->new_members, m->new_count);
        if (index_new < index)
            index = index_new;
    }
    /* Entries of earlier epochs are not committed by counting copies: a log with a greater last
     * dot may still replace them. START settles them (DESIGN section 4). */
    if (index < rep->start_index || index <= rep->commit_index)
        return;
    rep->commit_index = index;
    out->committed = true;
    if (rep->role == REP_STARTING)
        rep_role_set(rep, REP_OWNER, out);
}
