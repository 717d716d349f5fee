/*
 * Whose outcomes are wrong (DESIGN section 4, Determinism). Replicas apply one log and must come to
 * one running hash of outcomes. Where they do not, the owner counts: those who differ from a
 * majority are wrong, itself included, and are quarantined: they go on storing and voting, since
 * their logs are right, but never own the shard, serve nothing and give their rows to no other. A
 * restart does not end that: their promise says it. Without a majority no one can tell.
 */
#include "node/core/replication/rep_internal.h"
#include "runtime/base/check.h"

void rep_outcome_note(struct rep *rep, uint64_t index, struct hash128 hash, struct rep_out *out)
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

/* One that is known to be wrong is no witness against others: it differs from all. */
static bool differs(const struct rep *rep, const struct rep_peer *peer)
{
    (void)rep;
    return peer->differs_index > 0 && !peer->diverged && !peer->quarantined;
}

/* At least as far as the difference goes: an older word says nothing about it. */
static bool agrees(const struct rep *rep, const struct rep_peer *peer)
{
    return peer->differs_index == 0 && peer->agreed_index >= rep->differs_index;
}

void rep_quarantine(struct rep *rep, struct rep_out *out)
{
    if (rep->differs)
        return;
    rep->quarantined = true;
    rep->differs = true;
    rep_write_promise(rep, out); /* The next life has no majority to ask before it may own. */
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
