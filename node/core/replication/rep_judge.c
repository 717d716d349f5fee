/*
 * Whose outcomes are wrong (DESIGN section 4, Determinism). Replicas apply one log and must come to
 * one running hash of outcomes. Where they do not, the owner counts those who agree with each
 * other. A replica that differs from such a majority, the owner included, is wrong and is
 * quarantined: it goes on storing and voting, since its log is right, but never owns the shard,
 * serves nothing and gives its rows to no other. A restart does not end that: its promise says it.
 * Without a majority of one mind no one can tell, however many differ from the owner.
 */
#include <string.h>

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
static bool is_witness(const struct rep_peer *peer)
{
    return peer->differs_index > 0 && !peer->diverged && !peer->quarantined;
}

static uint32_t bit_of(const struct rep *rep, const struct rep_peer *peer)
{
    return 1u << (peer - rep->peers);
}

/* One of those who came to the same outcomes as the witness that is looked at. */
static bool is_of_one_mind(const struct rep *rep, const struct rep_peer *peer)
{
    return is_witness(peer) && (rep->witnesses & bit_of(rep, peer)) != 0;
}

/* A majority differs from us, and agrees with each other. */
static bool is_outvoted(struct rep *rep)
{
    for (uint32_t i = 0; i < rep->peer_count; i++) {
        rep->witnesses = rep->peers[i].same_as | 1u << i;
        if (is_witness(&rep->peers[i]) && rep_quorum(rep, false, is_of_one_mind))
            return true;
    }
    return false;
}

/* Compares what it came to, which differs from ours, with the others who differ. */
static void compare_told(struct rep *rep, struct rep_peer *peer, const struct rep_outcome *theirs)
{
    uint32_t place = (uint32_t)(peer - rep->peers);

    if (rep->told == NULL)
        rep->told = mem_zalloc(REP_PEERS_MAX * REP_TOLD_MAX * sizeof rep->told[0]);
    rep->told[place * REP_TOLD_MAX + theirs->index % REP_TOLD_MAX] = *theirs;
    for (uint32_t i = 0; i < rep->peer_count; i++) {
        struct rep_peer *other = &rep->peers[i];
        const struct rep_outcome *told =
            &rep->told[i * REP_TOLD_MAX + theirs->index % REP_TOLD_MAX];

        if (other == peer || told->index != theirs->index)
            continue;
        peer->same_as &= ~bit_of(rep, other);
        other->same_as &= ~bit_of(rep, peer);
        if (!hash128_equal(told->hash, theirs->hash))
            continue;
        peer->same_as |= bit_of(rep, other);
        other->same_as |= bit_of(rep, peer);
    }
}

void rep_judge_forget(struct rep *rep, struct rep_peer *peer)
{
    size_t place = (size_t)(peer - rep->peers);

    CHECK(place < rep->peer_count);
    peer->differs_index = 0;
    peer->diverged = false;
    peer->same_as = 0;
    for (uint32_t i = 0; i < rep->peer_count; i++)
        rep->peers[i].same_as &= ~bit_of(rep, peer);
    if (rep->told != NULL)
        memset(&rep->told[place * REP_TOLD_MAX], 0, REP_TOLD_MAX * sizeof rep->told[0]);
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

void rep_judge(struct rep *rep, struct rep_peer *peer, const struct rep_outcome *theirs,
               enum rep_verdict verdict, struct rep_out *out)
{
    if (verdict == REP_SAME_OUTCOME) {
        if (theirs->index > peer->agreed_index)
            peer->agreed_index = theirs->index;
        /* It got its state from somebody else since: a running hash never comes back by itself. */
        if (peer->differs_index > 0)
            rep_judge_forget(rep, peer);
    } else if (verdict == REP_OTHER_OUTCOME) {
        if (peer->differs_index == 0) {
            peer->differs_index = theirs->index;
            if (theirs->index > rep->differs_index)
                rep->differs_index = theirs->index;
        }
        compare_told(rep, peer, theirs);
    }
    if (verdict == REP_UNKNOWN_OUTCOME || rep->differs_index == 0)
        return;
    if (is_outvoted(rep)) {
        rep_quarantine(rep, out);
        return;
    }
    if (!rep_quorum(rep, true, agrees))
        return;
    for (uint32_t i = 0; i < rep->peer_count; i++)
        rep->peers[i].diverged |= rep->peers[i].differs_index > 0;
}
