#include "node/core/mergeable/members.h"

#include "node/core/mergeable/absorb.h"
#include "node/core/mergeable/log_record.h"
#include "runtime/base/check.h"

/* ---- configurations ---- */

static void peers_drop(struct merge_replica *replica, const uint64_t *wanted, uint32_t count)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < replica->peer_count; i++) {
        bool stays = false;

        for (uint32_t j = 0; j < count; j++)
            stays |= wanted[j] == replica->peers[i].member;
        if (stays)
            replica->peers[kept++] = replica->peers[i];
        else
            merge_peer_deinit(&replica->peers[i]);
    }
    replica->peer_count = kept;
}

static void want(const struct merge_replica *replica, uint64_t member, uint64_t *wanted,
                 uint32_t *count)
{
    for (uint32_t i = 0; i < *count; i++)
        if (wanted[i] == member)
            return;
    if (member != replica->options.member)
        wanted[(*count)++] = member;
}

err merge_configure(struct merge_replica *replica, const struct merge_members *members)
{
    const struct membership *membership = &members->membership;
    uint64_t wanted[MERGE_PEERS_MAX];
    uint32_t count = 0;

    if (membership->count == 0 || membership->count > MEMBERS_MAX ||
        membership->new_count > MEMBERS_MAX || members->departing_count > MERGE_DEPARTING_MAX)
        return ERR_INVALID;
    if (membership->config < replica->members.membership.config)
        return ERR_OK;
    for (uint32_t i = 0; i < membership->count; i++)
        want(replica, membership->members[i], wanted, &count);
    for (uint32_t i = 0; i < membership->new_count; i++)
        want(replica, membership->new_members[i], wanted, &count);
    for (uint32_t i = 0; i < members->departing_count; i++)
        want(replica, members->departing[i], wanted, &count);
    peers_drop(replica, wanted, count);
    for (uint32_t i = 0; i < count; i++)
        if (merge_peer_find(replica, wanted[i]) == NULL)
            replica->peers[replica->peer_count++] = (struct merge_peer){ .member = wanted[i] };
    replica->members = *members;
    merge_sync_settle(replica);
    return ERR_OK;
}

/* ---- to have everything again ---- */

static bool is_in(const uint64_t *members, uint32_t count, uint64_t member)
{
    for (uint32_t i = 0; i < count; i++)
        if (members[i] == member)
            return true;
    return false;
}

/* Old members from which everything was pulled under this configuration. */
static uint32_t pulled_old(const struct merge_replica *replica)
{
    const struct membership *m = &replica->members.membership;
    uint32_t count = 0;

    for (uint32_t i = 0; i < replica->peer_count; i++)
        count += replica->peers[i].pulled_config == m->config && m->config != 0 &&
                 is_in(m->members, m->count, replica->peers[i].member);
    return count;
}

/* No other old member is left to ask: what each of them has, though it may take everything in
 * itself, was pulled under this configuration. */
static bool took_all(const struct merge_replica *replica)
{
    const struct membership *m = &replica->members.membership;
    bool all = m->config != 0;

    for (uint32_t i = 0; i < replica->peer_count; i++)
        all &= replica->peers[i].taken_config == m->config ||
               !is_in(m->members, m->count, replica->peers[i].member);
    return all;
}

void merge_sync_begin(struct merge_replica *replica)
{
    replica->syncing = true;
    for (uint32_t i = 0; i < replica->peer_count; i++)
        replica->peers[i].pulled_config = replica->peers[i].taken_config = 0;
    merge_log_sync(replica, true);
}

static void take_known(void *user, struct merge_dot dot, struct merge_key *key)
{
    merge_take_dot(user, dot, key); /* The index has it already. */
}

void merge_sync_announce(struct merge_replica *replica)
{
    replica->dots_above = false;
    dot_index_each(&replica->index, take_known, replica);
    for (uint32_t i = 0; i < replica->store.count; i++) {
        struct merge_row *row = &replica->store.rows[i];

        for (uint32_t j = 0; j < row->record.count; j++)
            merge_take_dot(replica, row->record.cells[j]->dot, row->key);
        for (uint32_t j = 0; j < row->record.recent.count; j++) {
            struct causal_entry entry = row->record.recent.entries[j];

            merge_take_dot(replica, (struct merge_dot){ entry.actor, entry.upto }, row->key);
        }
    }
}

void merge_sync_settle(struct merge_replica *replica)
{
    const struct membership *m = &replica->members.membership;
    uint32_t need = m->count - (m->count / 2 + 1) + 1;

    if (!replica->syncing || m->count == 0)
        return;
    if (is_in(m->members, m->count, replica->options.member) && need > m->count - 1)
        need = m->count - 1; /* It was alone: what it lost was there only. */
    if (pulled_old(replica) < need && !took_all(replica))
        return;
    merge_sync_announce(replica);
    replica->syncing = false;
    merge_log_sync(replica, false);
    merge_follow_era(replica); /* What its peers may have forgotten must not be its own. */
}

uint64_t merge_ready_config(const struct merge_replica *replica)
{
    const struct membership *m = &replica->members.membership;
    uint32_t have = pulled_old(replica);

    if (replica->syncing)
        return 0;
    have += is_in(m->members, m->count, replica->options.member);
    return have >= m->count / 2 + 1 ? m->config : 0;
}

bool merge_member_is_ready(const struct merge_replica *replica, uint64_t member)
{
    uint64_t config = replica->members.membership.config;

    if (member == replica->options.member)
        return merge_ready_config(replica) == config;
    for (uint32_t i = 0; i < replica->peer_count; i++) {
        const struct merge_peer *peer = &replica->peers[i];

        if (peer->member == member)
            return peer->reported && !peer->syncing && peer->ready_config == config;
    }
    return false;
}

bool merge_may_leave(const struct merge_replica *replica)
{
    const struct membership *m = &replica->members.membership;
    uint32_t ready = 0;

    for (uint32_t i = 0; i < m->new_count; i++)
        ready += merge_member_is_ready(replica, m->new_members[i]);
    return m->new_count > 0 && ready == m->new_count;
}

bool merge_may_delete(const struct merge_replica *replica)
{
    if (merge_is_member(replica, replica->options.member) || replica->syncing)
        return false;
    for (uint32_t i = 0; i < replica->peer_count; i++) {
        const struct merge_peer *peer = &replica->peers[i];

        if (merge_is_member(replica, peer->member) && peer->reported && !peer->syncing &&
            mclock_includes(&peer->clock, &replica->clock))
            return true;
    }
    return false;
}

/* ---- ends of actors ---- */

/* Nothing tells any more whose actor it was: a write came by a third member, and those that knew
 * the process lost it with their logs' ends. So none of the present ones may be it. Every peer has
 * named it in a report of its present process (all_agree), so it is none that they will go to. */
static bool is_of_none(const struct merge_replica *replica, uint64_t actor)
{
    bool none = actor != replica->actor;

    for (uint32_t i = 0; i < replica->peer_count; i++) {
        uint64_t theirs = replica->peers[i].actor;

        none &= theirs != 0 && theirs != actor && merge_actor_era(actor) <= merge_actor_era(theirs);
    }
    return none;
}

/* Its process has ended: its member has another one, or is gone. */
static bool is_ended(struct merge_replica *replica, const struct mclock_actor *actor)
{
    const struct merge_peer *peer = merge_peer_find(replica, actor->member);

    if (actor->member == 0)
        return is_of_none(replica, actor->actor);
    if (actor->member == replica->options.member)
        return actor->actor != replica->actor;
    /* An actor of a later era than the peer's is one that it has gone to since it was heard. */
    return peer == NULL || (peer->actor != 0 && peer->actor != actor->actor &&
                            merge_actor_era(actor->actor) <= merge_actor_era(peer->actor));
}

/* Each names it, too: one that has never heard of it may not know that it begins just now. */
static bool all_agree(const struct merge_replica *replica, uint64_t actor)
{
    if (!merge_peers_agree(replica))
        return false;
    for (uint32_t i = 0; i < replica->peer_count; i++) {
        const struct merge_peer *peer = &replica->peers[i];

        if (mclock_find(&peer->clock, actor) == NULL ||
            !mclock_agrees(&peer->clock, &replica->clock, actor))
            return false;
    }
    return true;
}

void merge_close_actors(struct merge_replica *replica)
{
    if (replica->syncing || replica->restoring)
        return;
    for (uint32_t i = 0; i < replica->clock.count; i++) {
        const struct mclock_actor *actor = &replica->clock.actors[i];

        if (actor->closed || !is_ended(replica, actor) || !all_agree(replica, actor->actor))
            continue;
        mclock_close(&replica->clock, actor->actor);
        merge_log_close(replica, actor->actor);
        replica->closed_log = replica->log_end;
    }
}

/* ---- eras ---- */

void merge_take_actor(struct merge_replica *replica, uint16_t era)
{
    uint64_t actor = merge_actor_make(era, replica->options.random);

    CHECK(replica->actor == 0 || merge_actor_era(replica->actor) < era);
    replica->actor = actor;
    replica->counter = 0;
    /* Over the limit of actors a write looks again. */
    if (mclock_name(&replica->clock, actor, replica->options.member) == ERR_OK)
        merge_log_name(replica, actor, replica->options.member);
}

void merge_follow_era(struct merge_replica *replica)
{
    uint16_t era = merge_actor_era(replica->actor), latest = mclock_era_latest(&replica->clock);
    uint32_t closed = 0;

    if (replica->syncing || replica->actor == 0)
        return;
    for (uint32_t i = 0; i < replica->clock.count; i++)
        closed += replica->clock.actors[i].closed &&
                  merge_actor_era(replica->clock.actors[i].actor) == era;
    if (latest > era)
        merge_take_actor(replica, latest);
    else if (closed > replica->options.closed_max && era < MERGE_ERA_MAX)
        merge_take_actor(replica, (uint16_t)(era + 1));
}

/* The peer has closed all actors of lower eras, those of this replica's clock among them. */
static bool has_closed(const struct merge_replica *replica, const struct merge_peer *peer,
                       uint16_t era)
{
    for (uint32_t i = 0; i < replica->clock.count; i++) {
        uint64_t actor = replica->clock.actors[i].actor;

        if (merge_actor_era(actor) < era && mclock_floor(&peer->clock, actor) != UINT64_MAX)
            return false;
    }
    return mclock_may_forget(&peer->clock, era);
}

void merge_forget_actors(struct merge_replica *replica)
{
    uint16_t era = merge_actor_era(replica->actor);

    if (!merge_peers_agree(replica))
        return;
    for (uint32_t i = 0; i < replica->peer_count; i++) {
        uint16_t theirs = merge_actor_era(replica->peers[i].actor);

        era = theirs < era ? theirs : era;
    }
    if (era <= replica->clock.era || !mclock_may_forget(&replica->clock, era))
        return;
    for (uint32_t i = 0; i < replica->peer_count; i++)
        if (!has_closed(replica, &replica->peers[i], era))
            return;
    mclock_forget(&replica->clock, era);
    merge_log_era(replica, era);
}

static bool is_everywhere(void *user, struct merge_dot dot, const struct merge_key *key)
{
    (void)key;
    return merge_all_have(user, dot);
}

/* What a member that is away has heard of last bounds what all have: what was written since, which
 * may be a million dots, need not be asked about each time. */
static uint64_t everywhere_upto(void *user, uint64_t actor)
{
    const struct merge_replica *replica = user;
    uint64_t upto = UINT64_MAX;

    for (uint32_t i = 0; i < replica->peer_count; i++) {
        const struct mclock *clock = &replica->peers[i].clock;
        const struct mclock_actor *known = mclock_find(clock, actor);
        uint64_t top = mclock_floor(clock, actor);

        if (top != UINT64_MAX && known != NULL)
            top = mclock_top(known);
        upto = top < upto ? top : upto;
    }
    return upto;
}

void merge_prune_index(struct merge_replica *replica)
{
    if (replica->syncing) /* What only it may hold is announced when it has everything. */
        return;
    dot_index_prune(
        &replica->index,
        &(struct dot_pruning){ .gone = is_everywhere, .upto = everywhere_upto, .user = replica });
    merge_rows_settle(replica);
}
