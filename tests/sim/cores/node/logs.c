/*
 * The replicated log of one shard alone (node/core/replication/sim): replicas, network, disks and
 * the ownership record under every fault, with more seeds than whole clusters have. Each commit,
 * acknowledgement and read is judged there, and after the faults the replicas have to agree.
 */
#include <stdlib.h>

#include "node/core/replication/sim/rep_sim_chaos.h"
#include "runtime/base/check.h"
#include "tests/sim/cores/rsim.h"

#define CHAOS_MS_LEAST 300u
#define CHAOS_MS_MOST  900u

void room_logs(struct rsim *sim)
{
    struct rep_sim *replicas = mem_alloc(sizeof *replicas);
    uint64_t end_ms = rsim_between(sim, CHAOS_MS_LEAST, CHAOS_MS_MOST);

    rep_sim_chaos_begin(replicas, rsim_next(sim));
    while (replicas->failure[0] == '\0' && rep_sim_one(replicas, end_ms))
        ;
    bool good = replicas->failure[0] == '\0' && rep_sim_heal(replicas);
    PROMISE(sim, good, "%s", replicas->failure);
    sim->counts.logs_committed += replicas->counts.commits;
    rep_sim_deinit(replicas);
    free(replicas);
}
