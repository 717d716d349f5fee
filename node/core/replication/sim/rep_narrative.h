/*
 * rep_narrative: what the narratives of rep_*_test.c have in common: one simulated shard without
 * faults, which the test then troubles by hand. Include it after cmocka.h.
 */
#ifndef NODE_CORE_REPLICATION_SIM_REP_NARRATIVE_H
#define NODE_CORE_REPLICATION_SIM_REP_NARRATIVE_H

#include <stdlib.h>

#include "node/core/replication/sim/rep_sim.h"
#include "node/core/replication/sim/rep_sim_check.h"
#include "runtime/base/check.h"

static inline struct rep_sim *begin(uint32_t node_count)
{
    struct rep_sim *sim = mem_alloc(sizeof *sim);

    rep_sim_init(sim, 1, node_count);
    return sim;
}

/* Every narrative ends here: no promise was broken on the way. */
static inline void end(struct rep_sim *sim)
{
    assert_string_equal(sim->failure, "");
    rep_sim_deinit(sim);
    free(sim);
}

/* The record names `owner`; replicas 1 .. members hold the shard. */
static inline void promote(struct rep_sim *sim, uint64_t owner, uint32_t members)
{
    struct membership m = rep_sim_members(1, members);

    rep_sim_record(sim, owner, &m);
    rep_sim_run(sim, 30);
}

static inline enum rep_role role(struct rep_sim *sim, uint64_t id)
{
    return rep_role(rep_sim_rep(sim, id));
}

static inline uint64_t commit_index(struct rep_sim *sim, uint64_t id)
{
    return rep_commit_index(rep_sim_rep(sim, id));
}

static inline uint64_t last_index(struct rep_sim *sim, uint64_t id)
{
    return rep_last_index(rep_sim_rep(sim, id));
}

static inline void propose(struct rep_sim *sim, uint64_t id, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(rep_sim_propose(sim, id, "grant a sword"), ERR_OK);
}

/* Cuts a replica off from the others, and from the record: it goes on believing. */
static inline void isolate(struct rep_sim *sim, uint64_t id, bool cut)
{
    sim->nodes[id - 1].blind = cut;
    for (uint64_t peer = 1; peer <= sim->node_count; peer++)
        if (peer != id)
            rep_sim_cut(sim, id, peer, cut);
}

/* Starts every replica again, under the limits as they are now. */
static inline void restart_all(struct rep_sim *sim)
{
    for (uint64_t id = 1; id <= sim->node_count; id++) {
        rep_sim_crash(sim, id);
        rep_sim_restart(sim, id);
    }
}

#endif
