/*
 * Whose outcomes are wrong (DESIGN section 4, Determinism). Replicas apply one log and must come to
 * one running hash of outcomes. Where they do not, the owner counts: those who differ from a
 * majority are wrong, itself included, and are quarantined: they go on storing and voting, since
 * their logs are right, but never own the shard and serve nothing. Without a majority no one can
 * tell.
 */
#include "node/core/replication/rep_internal.h"
#include "runtime/base/check.h"

static bool differs(const struct rep *rep, const struct rep_peer *peer)
{
    (void)rep;
    return peer->differs_index > 0;
}

/* At least as far as the difference goes: an older word says nothing about it. */
static bool agrees(const struct rep *rep, const struct rep_peer *peer)
{
    return peer->differs_index == 0 && peer->agreed_index >= rep->differs_index;
}

void rep_quarantine(struct rep *rep, struct rep_out *out)
{
    if (rep->quarantined)
        return;
    rep->quarantined = true;
    out->quarantined = true;
    out->role_changed = true;
    rep_step_down(rep, out);
}

void rep_judge(struct rep *rep, struct rep_peer *peer, uint64_t index, enum rep_verdict verdict,
               struct rep_out *out)
{
    if (verdict == REP_SAME_OUTCOME) {
        if (index > peer->agreed_index)
            peer->agreed_index = index;
        /* It got its state from somebody else since: a running hash never comes back by itself. */
        peer->differs_index = 0;
        peer->diverged = false;
    } else if (verdict == REP_OTHER_OUTCOME && peer->differs_index == 0) {
        peer->differs_index = index;
        if (index > rep->differs_index)
            rep->differs_index = index;
    }
    if (verdict == REP_UNKNOWN_OUTCOME || rep->differs_index == 0)
        return;
    if (rep_quorum(rep, false, differs)) {
        rep_quarantine(rep, out);
        return;
    }
    if (!rep_quorum(rep, true, agrees))
        return;
    for (uint32_t i = 0; i < rep->peer_count; i++)
        rep->peers[i].diverged |= rep->peers[i].differs_index > 0;
}
