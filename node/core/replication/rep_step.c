#include "node/core/replication/rep.h"

#include <stdlib.h>

#include "node/core/replication/rep_internal.h"
#include "runtime/base/check.h"

struct rep_limits rep_limits_default(void)
{
#define REP_DEFAULT(name, def, min, max, doc) .name = (def),
    return (struct rep_limits){ REP_LIMITS(REP_DEFAULT) };
#undef REP_DEFAULT
}

static void limits_check(const struct rep_limits *limits)
{
#define REP_RANGE(name, def, min, max, doc) CHECK(limits->name >= (min) && limits->name <= (max));
    REP_LIMITS(REP_RANGE)
#undef REP_RANGE
}

struct rep *rep_new(uint32_t shard, uint64_t self, const struct rep_limits *limits,
                    const struct rep_image *image)
{
    struct rep *rep = mem_zalloc(sizeof *rep);

    CHECK(self != 0);
    limits_check(limits);
    rep->shard = shard;
    rep->self = self;
    rep->limits = *limits;
    rep->votes = image->votes && !image->damaged;
    rep->role = image->damaged ? REP_DAMAGED : REP_FOLLOWER;
    rep->promise = image->promise;
    rep->resumes = image->resumes;
    rep->quarantined = image->quarantined;
    rep->membership = image->membership;
    rep->generation = image->generation;
    rep->apply_version_max = image->apply_version_max;
    rep->apply_version_floor = image->apply_version_floor;
    rep_log_init(rep, image);
    rep->known = rep->promise;
    return rep;
}

void rep_free(struct rep *rep)
{
    if (rep == NULL)
        return;
    rep_log_deinit(rep);
    free(rep->peers);
    free(rep->outcomes);
    free(rep);
}

void rep_role_set(struct rep *rep, enum rep_role role, struct rep_out *out)
{
    CHECK(rep->role != REP_DAMAGED);
    CHECK(role != rep->role);
    rep->role = role;
    out->role_changed = true;
}

static bool leads(const struct rep *rep)
{
    return rep->role >= REP_SEALING && rep->role <= REP_OWNER;
}

/* Once a condition per line, before and after every step. */
static void rep_check(const struct rep *rep)
{
    struct dot last = rep_log_last_dot(rep);

    rep_log_check(rep);
    CHECK(rep->promise.epoch >= last.epoch);
    CHECK(rep->known.epoch >= rep->promise.epoch);
    CHECK(rep->ticket_persisted <= rep->ticket_last);
    CHECK(rep->promise_ticket <= rep->ticket_last);
    CHECK(leads(rep) == (rep->peers != NULL));
    CHECK(IMPLIES(leads(rep), rep->promise.owner == rep->self));
    CHECK(IMPLIES(leads(rep), rep->known.epoch == rep->promise.epoch));
    CHECK(IMPLIES(leads(rep), rep->votes));
    CHECK(IMPLIES(leads(rep), !rep->quarantined));
    CHECK(IMPLIES(rep->source != NULL, rep->role == REP_ADOPTING));
    CHECK(IMPLIES(rep->round_open, rep->role == REP_OWNER));
    if (rep->role != REP_STARTING && rep->role != REP_OWNER)
        return;
    CHECK(last.epoch == rep->promise.epoch);
    CHECK(last.owner == rep->self);
    CHECK(rep->ticket_persisted >= rep->promise_ticket);
    CHECK(rep->window.last_index - rep->start_index + 1 == last.counter);
    CHECK((rep->role == REP_OWNER) == (rep->commit_index >= rep->start_index));
}

static void outcome_note(struct rep *rep, uint64_t index, struct hash128 hash, struct rep_out *out)
{
    if (rep->outcomes == NULL)
        rep->outcomes = mem_zalloc(REP_OUTCOMES_MAX * sizeof rep->outcomes[0]);
    rep->outcomes[index % REP_OUTCOMES_MAX] = (struct rep_outcome){ index, hash };
    if (rep->expected.index == index && !hash128_equal(rep->expected.hash, hash))
        out->diverged = true;
}

enum rep_verdict rep_outcome_compare(struct rep *rep, const struct rep_message *m,
                                     struct rep_out *out)
{
    static const struct hash128 unknown = { { 0 } };

    if (m->applied_index == 0 || hash128_equal(m->outcome, unknown))
        return REP_UNKNOWN_OUTCOME;
    if (m->applied_index > rep->applied_index) {
        rep->expected = (struct rep_outcome){ m->applied_index, m->outcome };
        return REP_UNKNOWN_OUTCOME;
    }
    if (rep->outcomes == NULL)
        return REP_UNKNOWN_OUTCOME;
    const struct rep_outcome *own = &rep->outcomes[m->applied_index % REP_OUTCOMES_MAX];
    if (own->index != m->applied_index)
        return REP_UNKNOWN_OUTCOME;
    if (hash128_equal(own->hash, m->outcome))
        return REP_SAME_OUTCOME;
    out->diverged = true;
    return REP_OTHER_OUTCOME;
}

static void receive(struct rep *rep, uint64_t from, const struct rep_message *m,
                    struct rep_out *out)
{
    if (m->shard != rep->shard)
        return;
    switch (m->type) {
    case REP_MSG_APPEND:
        rep_append(rep, from, m, out);
        break;
    case REP_MSG_APPEND_ACK:
        rep_append_ack(rep, from, m, out);
        break;
    case REP_MSG_SEAL:
        rep_seal(rep, from, m, out);
        break;
    case REP_MSG_SEAL_ACK:
        rep_seal_ack(rep, from, m, out);
        break;
    case REP_MSG_FETCH:
        rep_fetch(rep, from, m, out);
        break;
    case REP_MSG_FETCH_ACK:
        rep_fetch_ack(rep, from, m, out);
        break;
    case REP_MSG_SNAPSHOT_PULL:
    case REP_MSG_SNAPSHOT_PART:
        break;
    }
}

static void persisted(struct rep *rep, uint64_t ticket, struct rep_out *out)
{
    rep_log_persisted(rep, ticket);
    rep_seal_settle(rep, out);
    switch (rep->role) {
    case REP_FOLLOWER:
    case REP_DAMAGED:
        rep_follower_settle(rep, out);
        break;
    case REP_ADOPTING:
        rep_follower_commit(rep, out);
        rep_promote(rep, out);
        break;
    case REP_SEALING:
        rep_promote(rep, out);
        break;
    case REP_STARTING:
    case REP_OWNER:
        rep_owner_commit(rep, out);
        break;
    }
}

static void flush(struct rep *rep, struct rep_out *out)
{
    rep_log_write(rep, out);
    rep_round_begin(rep, out);
    rep_pump(rep, out);
}

static void tick(struct rep *rep, struct rep_out *out)
{
    flush(rep, out);
    if (rep->role == REP_SEALING || rep->role == REP_ADOPTING)
        rep_promote_tick(rep, out);
    if (rep->role == REP_STARTING || rep->role == REP_OWNER)
        rep_owner_tick(rep, out);
}

static err dispatch(struct rep *rep, const struct rep_event *event, struct rep_out *out)
{
    switch (event->type) {
    case REP_RECORD:
        rep_record(rep, event->record, out);
        break;
    case REP_RECEIVE:
        receive(rep, event->from, event->message, out);
        break;
    case REP_PERSISTED:
        persisted(rep, event->ticket, out);
        break;
    case REP_LOG_READ:
        rep_log_read(rep, event, out);
        break;
    case REP_PROPOSE:
        return rep_propose(rep, event, out);
    case REP_FLUSH:
        flush(rep, out);
        break;
    case REP_READ:
        return rep_read(rep, out);
    case REP_APPLIED:
        rep_log_applied(rep, event->index);
        outcome_note(rep, event->index, event->outcome, out);
        break;
    case REP_TICK:
        tick(rep, out);
        break;
    }
    return ERR_OK;
}

err rep_step(struct rep *rep, const struct rep_event *event, struct rep_out *out)
{
    if (rep->now_ms == 0)
        rep->owner_heard_ms = event->now_ms; /* The first step: its silence begins here. */
    if (event->now_ms > rep->now_ms)
        rep->now_ms = event->now_ms;
    if (rep->owner_heard_ms == 0) /* Just started: silence counts from here. */
        rep->owner_heard_ms = event->now_ms;
    rep->unix_ms = event->unix_ms;
    rep->ticket_step = 0;
    err e = dispatch(rep, event, out);
    rep_check(rep);
    return e;
}

enum rep_role rep_role(const struct rep *rep)
{
    return rep->role;
}

bool rep_can_propose(const struct rep *rep)
{
    uint64_t last = rep->window.last_index;

    return rep->role == REP_OWNER && last - rep->commit_index < rep->limits.inflight_entries_max &&
           rep_log_bytes(rep, rep->commit_index + 1, last) < rep->limits.inflight_bytes_max &&
           rep_log_has_room(rep);
}

uint64_t rep_owner(const struct rep *rep)
{
    return rep_is_removed(rep) ? 0 : rep->known.owner;
}

uint64_t rep_epoch(const struct rep *rep)
{
    return rep->known.epoch;
}

uint64_t rep_generation(const struct rep *rep)
{
    return rep->generation;
}

uint32_t rep_apply_version(const struct rep *rep)
{
    return rep->apply_version;
}

uint64_t rep_config(const struct rep *rep)
{
    uint64_t config = rep->known.config;

    if (rep->promise.config > config)
        config = rep->promise.config;
    return rep->membership.config > config ? rep->membership.config : config;
}

const struct membership *rep_membership(const struct rep *rep)
{
    return &rep->membership;
}

uint64_t rep_last_index(const struct rep *rep)
{
    return rep->window.last_index;
}

uint64_t rep_commit_index(const struct rep *rep)
{
    return rep->commit_index;
}

uint64_t rep_owner_commit_index(const struct rep *rep)
{
    return rep->owner_commit_index;
}

uint64_t rep_verified_index(const struct rep *rep)
{
    return rep->verified_index;
}

struct dot rep_last_dot(const struct rep *rep)
{
    return rep_log_last_dot(rep);
}

const struct vector *rep_vector(const struct rep *rep)
{
    return &rep->vector;
}

struct entry *rep_entry(const struct rep *rep, uint64_t index)
{
    const struct rep_slot *slot = rep_log_slot(rep, index);

    return slot != NULL ? slot->entry : NULL;
}

uint32_t rep_fsynced_count(const struct rep *rep, uint64_t index)
{
    uint32_t count = rep->durable_index >= index ? 1 : 0;

    for (uint32_t i = 0; i < rep->peer_count; i++)
        if (rep->peers[i].votes && !rep->peers[i].learner && rep->peers[i].matched_index >= index)
            count++;
    return count;
}

uint64_t rep_durable_index(const struct rep *rep)
{
    return rep->durable_index;
}

uint64_t rep_final_index(const struct rep *rep)
{
    /* An owner's own disk may lack what the others' have: after a crash it needs it from them. */
    return rep->commit_index < rep->durable_index ? rep->commit_index : rep->durable_index;
}

/* It is there, and the log still has what it lacks. */
static bool holds_log(const struct rep *rep, const struct rep_peer *peer)
{
    return !peer->needs_snapshot && rep->now_ms - peer->heard_ms <= rep->limits.lag_ms_max;
}

uint64_t rep_retain_index(const struct rep *rep)
{
    uint64_t index = rep_final_index(rep);

    if (!leads(rep) && rep->retain_index < index)
        return rep->retain_index;
    for (uint32_t i = 0; i < rep->peer_count; i++)
        if (rep->peers[i].matched_index < index && holds_log(rep, &rep->peers[i]))
            index = rep->peers[i].matched_index;
    return index;
}

uint64_t rep_snapshot_source(const struct rep *rep)
{
    return rep->snapshot_source;
}

bool rep_snapshot_fits(const struct rep *rep, uint64_t index, struct hash128 hash)
{
    if (rep->role > REP_ADOPTING || index <= rep->commit_index)
        return false;
    return rep->window.last_index <= index || !hash128_equal(rep_log_hash(rep, index), hash);
}

void rep_snapshot_useless(struct rep *rep)
{
    rep->snapshot_source = 0;
}

bool rep_is_tombstone(const struct rep *rep)
{
    return rep->promise.epoch > 0 && rep->promise.owner == 0;
}

bool rep_is_removed(const struct rep *rep)
{
    return rep_is_tombstone(rep) && (rep->role != REP_DAMAGED || rep->buried) &&
           rep->ticket_persisted >= rep->promise_ticket;
}

bool rep_may_drop(const struct rep *rep)
{
    return rep_is_removed(rep) && rep->membership.config >= rep->promise.config;
}

bool rep_is_mute(const struct rep *rep)
{
    return rep->role == REP_DAMAGED || (rep_is_tombstone(rep) && rep->window.last_index == 0);
}

bool rep_member_state(const struct rep *rep, uint64_t replica, uint64_t *ret_matched_index,
                      uint64_t *ret_heard_ms)
{
    const struct rep_peer *peer = rep_peer_find(rep, replica);

    if (peer == NULL && (replica != rep->self || !leads(rep)))
        return false;
    *ret_matched_index = peer != NULL ? peer->matched_index : rep->durable_index;
    *ret_heard_ms = peer != NULL ? rep->now_ms - peer->heard_ms : 0;
    return true;
}

uint64_t rep_member_stalled_ms(const struct rep *rep, uint64_t replica)
{
    const struct rep_peer *peer = rep_peer_find(rep, replica);

    if (peer == NULL || (rep->role != REP_STARTING && rep->role != REP_OWNER) ||
        peer->matched_index >= rep->written_index)
        return 0;
    return rep->now_ms - peer->moved_ms;
}

bool rep_member_needs_snapshot(const struct rep *rep, uint64_t replica)
{
    const struct rep_peer *peer = rep_peer_find(rep, replica);

    return peer != NULL && peer->needs_snapshot;
}

uint64_t rep_learner_lag(const struct rep *rep)
{
    return rep_member_lag(rep, rep->membership.learner);
}

uint64_t rep_member_lag(const struct rep *rep, uint64_t replica)
{
    const struct rep_peer *peer = rep_peer_find(rep, replica);

    CHECK(peer != NULL && rep->role == REP_OWNER);
    if (peer->matched_index < rep->start_index || peer->needs_snapshot)
        return UINT64_MAX;
    return rep->commit_index > peer->matched_index ? rep->commit_index - peer->matched_index : 0;
}

uint64_t rep_owner_heard_ms(const struct rep *rep)
{
    return leads(rep) ? rep->now_ms : rep->owner_heard_ms;
}

uint64_t rep_owner_silent_ms(const struct rep *rep)
{
    return rep->now_ms - rep_owner_heard_ms(rep);
}

bool rep_declines(const struct rep *rep)
{
    return rep->role == REP_FOLLOWER && rep->votes && !rep->resumes && !rep->quarantined &&
           rep->known.owner == rep->self && rep->promise.owner == rep->self &&
           rep->known.epoch == rep->promise.epoch;
}

bool rep_is_quarantined(const struct rep *rep)
{
    return rep->quarantined;
}
