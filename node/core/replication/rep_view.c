/* What others may ask of a replica between two steps. */
#include "node/core/replication/rep_internal.h"
#include "runtime/base/check.h"

enum rep_role rep_role(const struct rep *rep)
{
    return rep->role;
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

bool rep_is_removed(const struct rep *rep)
{
    return rep_is_tombstone(rep) && (rep->role != REP_DAMAGED || rep->buried) &&
           rep->ticket_persisted >= rep->promise_ticket;
}

bool rep_may_drop(const struct rep *rep)
{
    return rep_is_removed(rep) && rep->membership.config >= rep->promise.config &&
           !membership_names(&rep->membership, rep->self);
}

bool rep_is_mute(const struct rep *rep)
{
    return rep->role == REP_DAMAGED || rep->dropped || rep_is_empty_tombstone(rep);
}

bool rep_member_state(const struct rep *rep, uint64_t replica, uint64_t *ret_matched_index,
                      uint64_t *ret_heard_ms)
{
    const struct rep_peer *peer = rep_peer_find(rep, replica);

    if (peer == NULL && (replica != rep->self || !rep_leads(rep)))
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
    return rep_leads(rep) ? rep->now_ms : rep->owner_heard_ms;
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

bool rep_is_outgrown(const struct rep *rep)
{
    return rep->role == REP_OWNER && rep->outgrown_ms != 0 &&
           (rep->start_index == 1 || rep->now_ms - rep->outgrown_ms >= rep->limits.raise_after_ms);
}

bool rep_is_quarantined(const struct rep *rep)
{
    return rep->quarantined;
}

bool rep_differs(const struct rep *rep)
{
    return rep->differs;
}

bool rep_wants_rows(const struct rep *rep)
{
    return rep->rows_wanting;
}
