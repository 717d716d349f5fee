/*
 * What a wrong clock may not do. An owner whose clock is ahead proposes nothing, since its members
 * refuse what it dates, and another one is named (DESIGN section 4, Time at apply). What it had
 * dated before it knew goes with it where a majority is known to lack it; what may be committed
 * stays, with its date: it moves the time of the shard once, and stops nothing.
 */
#include "node/core/replication/rep_internal.h"
#include "runtime/base/check.h"

/* A member silent for longer, or for three heartbeats, says nothing of this clock. */
#define CLOCK_HEARD_MS 1500u

/* ---- The owner ---- */

static bool is_heard(const struct rep *rep, const struct rep_peer *peer)
{
    uint64_t bound_ms = 3u * rep->limits.heartbeat_ms;

    return rep->now_ms - peer->heard_ms <= (bound_ms > CLOCK_HEARD_MS ? bound_ms : CLOCK_HEARD_MS);
}

static bool takes_our_dates(const struct rep *rep, const struct rep_peer *peer)
{
    return !peer->clock_behind && is_heard(rep, peer);
}

bool rep_clock_is_ahead(const struct rep *rep)
{
    bool told = false;

    if (rep->role != REP_STARTING && rep->role != REP_OWNER)
        return false;
    for (uint32_t i = 0; i < rep->peer_count; i++)
        told |=
            rep->peers[i].clock_behind && !rep->peers[i].learner && is_heard(rep, &rep->peers[i]);
    return told && !rep_quorum(rep, true, takes_our_dates);
}

/* ---- The follower ---- */

bool rep_clock_takes(const struct rep *rep, const struct rep_message *m, const struct entry *entry)
{
    if (entry->owner_ms <= rep->unix_ms + rep->limits.clock_ahead_ms_max)
        return true;
    return entry->owner_ms <= rep_log_last_ms(rep) || entry->index <= m->commit_index ||
           entry->dot.epoch < m->epoch;
}

bool rep_clock_is_behind(const struct rep *rep)
{
    return rep->owner_unix_ms > rep->unix_ms + rep->limits.clock_ahead_ms_max ||
           rep->refused_index > rep->window.last_index;
}

/* ---- The next owner ---- */

/* Behind what is committed, the first entry that moves the time too far; 0: none does. */
static uint64_t first_ahead(const struct rep *rep)
{
    const struct rep_slot *final = rep_log_slot(rep, rep->commit_index);
    uint64_t final_ms = final != NULL ? final->entry->owner_ms : rep->window.base_ms;
    uint64_t unix_ms_max = rep->unix_ms + rep->limits.clock_ahead_ms_max;

    if (unix_ms_max < final_ms)
        unix_ms_max = final_ms;
    for (uint64_t index = rep->commit_index + 1; index <= rep->window.last_index; index++) {
        if (rep_log_slot(rep, index)->entry->owner_ms > unix_ms_max)
            return index;
    }
    return 0;
}

/* By its length, which is never told too small: where vectors part may be. */
static bool may_have(const struct rep *rep, const struct rep_peer *peer)
{
    bool lacks = peer->votes && peer->sealed && !peer->given_up &&
                 vector_index(&peer->sealed_vector) < rep->ahead_index;

    return !lacks;
}

/* Those that promised us their votes without that entry never had it, nor will they take it from
 * another owner. If the others are no quorum, it was not committed, and will not be. */
bool rep_clock_settle(struct rep *rep, struct rep_out *out)
{
    rep->ahead_index = first_ahead(rep);
    if (rep->ahead_index == 0)
        return true;
    if (rep_may_be_quorum(rep, rep->sealed_index >= rep->ahead_index, may_have))
        return false;
    CHECK(rep->durable_index == rep->window.last_index);
    rep->verified_index = 0;
    rep_log_truncate(rep, rep->ahead_index - 1, out);
    return true;
}
