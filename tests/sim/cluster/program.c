/* Which program a node runs: from some life on a later one, which applies one version more, and
 * seldom the earlier one again. That refuses what the later one served. Chosen without a draw of
 * the run's chance, so that kept seeds stay as they were. */
#include "node/core/apply/apply.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"
#include "tests/sim/faults/backup.h"
#include "tests/sim/cluster/node_claim.h"
#include "tests/sim/oracle/oracle.h"

#define UPGRADED   300u /* Of a thousand starts. */
#define TAKEN_BACK 150u
#define OF         1000u
#define REST_MS    5000u /* Within which an owner that may ask for its next epoch does. */

static uint32_t chance(const struct sim *sim, const struct sim_node *node)
{
    uint8_t bytes[24];

    store_u64(bytes, sim->seed);
    store_u64(bytes + 8, node->id);
    store_u64(bytes + 16, node->life);
    return (uint32_t)(hash_u64((struct slice){ bytes, sizeof bytes }) % OF);
}

void program_choose(struct sim *sim, struct sim_node *node)
{
    uint32_t drawn = chance(sim, node);

    if (node->apply_version_max == 0)
        node->apply_version_max = APPLY_VERSION;
    if (node->apply_version_max == APPLY_VERSION && (node->refused_program || drawn < UPGRADED)) {
        node->apply_version_max = SIM_APPLY_VERSION_MAX;
        node->ran_later = true;
        sim->counts.upgrades++;
        sim_say(sim, "node %u   runs the later program", node->id);
    } else if (node->apply_version_max == SIM_APPLY_VERSION_MAX && drawn >= OF - TAKEN_BACK) {
        node->apply_version_max = APPLY_VERSION;
        sim->counts.programs_taken_back++;
        sim_say(sim, "node %u   runs the earlier program again", node->id);
    }
    node->refused_program = false;
}

void program_refused(struct sim *sim, struct sim_node *node)
{
    CHECK(node->apply_version_max == APPLY_VERSION);
    sim->counts.programs_refused++;
    sim_say(sim, "node %u   has been served by the later program: the earlier one refuses",
            node->id);
    node->apply_version_max = SIM_APPLY_VERSION_MAX;
}

void program_stop(struct sim *sim, const struct sim_node *node)
{
    sim_later(sim, 0,
              &(struct sim_event){ .kind = EV_TOO_OLD, .node = node->id, .life = node->life });
}

/* A member's version counts: only one that was taken for a later program may meet more, or one that
 * left and comes back, whatever an etcd of before says of it. */
void program_meets_later(struct sim *sim, const struct sim_node *node, uint32_t shard)
{
    const struct rep *rep = shard_rep(node->slots[shard].shard);

    if (!node->ran_later && membership_has(rep_membership(rep), node->id) &&
        members_hold(sim, shard, node) && oracle_names(sim, shard, node))
        sim_fail(sim, shard, "node %u is a member, and is sent entries that it cannot apply",
                 node->id);
    program_stop(sim, node);
}

void program_too_old(struct sim *sim, struct sim_node *node)
{
    sim->counts.programs_stopped++;
    sim_say(sim, "node %u   stops: its log goes on with the later program", node->id);
    node->refused_program = true;
    node_crash(sim, node);
    sim_later(sim, 100, &(struct sim_event){ .kind = EV_RESTART, .node = node->id });
}

void program_look(struct sim *sim, const struct slot *slot)
{
    if (rep_apply_version(shard_rep(slot->shard)) == SIM_APPLY_VERSION_MAX)
        sim->counts.promotions_upgraded++;
}

/* What every member could apply; 0: one is down, or is about to change. */
static uint32_t least_of_members(struct sim *sim, const struct rep *rep)
{
    const struct membership *membership = rep_membership(rep);
    uint32_t least = membership->new_count == 0 ? UINT32_MAX : 0;

    for (uint32_t i = 0; i < membership->count; i++) {
        const struct sim_node *node = node_get(sim, (uint32_t)membership->members[i]);
        uint32_t version = node->up ? node->apply_version_max : 0;
        if (version < least)
            least = version;
    }
    return least;
}

uint32_t program_left(struct sim *sim)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < sim->shard_count && sim->raise_ms < REST_MS; i++) {
        const struct sim_node *owner = owner_find(sim, i);
        const struct rep *rep = owner != NULL ? shard_rep(owner->slots[i].shard) : NULL;
        left += rep != NULL && rep_apply_version(rep) < least_of_members(sim, rep);
    }
    return left;
}
