/* What is known of the other members: who counts, what they can apply, what they still need. */
#include "node/core/replication/rep_internal.h"
#include "runtime/base/check.h"

bool rep_leads(const struct rep *rep)
{
    return rep->role >= REP_SEALING && rep->role <= REP_OWNER;
}

struct rep_peer *rep_peer_find(const struct rep *rep, uint64_t replica)
{
    for (uint32_t i = 0; i < rep->peer_count; i++)
        if (rep->peers[i].replica == replica)
            return &rep->peers[i];
    return NULL;
}

static void count_vote(const struct membership *m, uint64_t replica, uint32_t *acks,
                       uint32_t *new_acks)
{
    for (uint32_t i = 0; i < m->count; i++)
        if (m->members[i] == replica)
            *acks |= 1u << i;
    for (uint32_t i = 0; i < m->new_count; i++)
        if (m->new_members[i] == replica)
            *new_acks |= 1u << i;
}

static bool is_member(const struct membership *m, uint64_t replica)
{
    bool found = m->learner == replica;

    for (uint32_t i = 0; i < m->count; i++)
        found |= m->members[i] == replica;
    for (uint32_t i = 0; i < m->new_count; i++)
        found |= m->new_members[i] == replica;
    return found;
}

void rep_peers_check(const struct rep *rep)
{
    CHECK(rep->peer_count <= REP_PEERS_MAX);
    CHECK(IMPLIES(rep->peer_count > 0, rep_leads(rep)));
    for (uint32_t i = 0; i < rep->peer_count; i++) {
        const struct rep_peer *peer = &rep->peers[i];

        CHECK(peer->replica != 0 && peer->replica != rep->self);
        CHECK(is_member(&rep->membership, peer->replica));
        CHECK(IMPLIES(peer->probing, peer->mode == REP_PEER_PROBE));
        CHECK(IMPLIES(peer->probing, peer->probe_prev <= peer->probe_last));
        CHECK(IMPLIES(peer->diverged, peer->differs_index > 0));
        CHECK(peer->matched_index <= rep->window.last_index);
        CHECK(peer->round_sent <= rep->round_started);
        for (uint32_t j = 0; j < i; j++)
            CHECK(rep->peers[j].replica != peer->replica);
    }
}

static bool is_set(uint32_t acks, uint32_t place)
{
    return (acks >> place & 1u) != 0;
}

/* Those for whom `holds` says yes, by place among the members, and among the new ones. */
static void count_votes(const struct rep *rep, bool self_holds, bool all,
                        bool (*holds)(const struct rep *rep, const struct rep_peer *peer),
                        uint32_t ret_acks[2])
{
    ret_acks[0] = ret_acks[1] = 0;
    if (self_holds)
        count_vote(&rep->membership, rep->self, &ret_acks[0], &ret_acks[1]);
    for (uint32_t i = 0; i < rep->peer_count; i++) {
        const struct rep_peer *peer = &rep->peers[i];
        if ((all || peer->votes) && holds(rep, peer))
            count_vote(&rep->membership, peer->replica, &ret_acks[0], &ret_acks[1]);
    }
}

bool rep_quorum(const struct rep *rep, bool self_holds,
                bool (*holds)(const struct rep *rep, const struct rep_peer *peer))
{
    uint32_t acks[2];

    count_votes(rep, self_holds, false, holds, acks);
    return membership_quorum(&rep->membership, acks[0], acks[1]);
}

bool rep_may_be_quorum(const struct rep *rep, bool self_may,
                       bool (*may)(const struct rep *rep, const struct rep_peer *peer))
{
    const struct membership *m = &rep->membership;
    uint32_t acks[2], count = 0;

    count_votes(rep, self_may, true, may, acks);
    for (uint32_t i = 0; i < m->count; i++)
        count += is_set(acks[0], i);
    return count > m->count / 2;
}

/* Of a member that has not answered: as the last owner told under the same members, or else of the
 * program that applies no more than what is in force. */
static uint32_t apply_version_silent(const struct rep *rep)
{
    bool told = rep->members_version != 0 && rep->members_config == rep->membership.config;

    return told ? rep->members_version : rep->apply_version;
}

uint32_t rep_apply_version_min(const struct rep *rep)
{
    uint32_t version = rep->apply_version_max;

    for (uint32_t i = 0; i < rep->peer_count; i++) {
        uint32_t theirs = rep->peers[i].apply_version;
        if (theirs == 0 && rep->peers[i].learner)
            continue; /* It becomes a member when it has caught up: its version is known then. */
        if (theirs == 0)
            theirs = apply_version_silent(rep);
        if (theirs < version)
            version = theirs;
    }
    return version;
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

    if (!rep_leads(rep) && rep->retain_index < index)
        return rep->retain_index;
    for (uint32_t i = 0; i < rep->peer_count; i++)
        if (rep->peers[i].matched_index < index && holds_log(rep, &rep->peers[i]))
            index = rep->peers[i].matched_index;
    return index;
}
