/*
 * rep_sim: replicas of one shard in virtual time: network, disks, state machine and ownership
 * record are simulated, and every commit, acknowledgement and read is checked against what the
 * promises of DESIGN section 1 allow. For tests only: narratives drive it by hand, rep_sim_test
 * drives it by seeds (rep_sim_chaos.h).
 *
 * A broken promise does not stop the run: it is kept in `failure`, the first one only.
 */
#ifndef NODE_CORE_REPLICATION_SIM_REP_SIM_H
#define NODE_CORE_REPLICATION_SIM_REP_SIM_H

#include "node/core/replication/sim/rep_sim_state.h"

/* Every node up, with an empty disk, no faults, fixed delays of 1 ms. */
void rep_sim_init(struct rep_sim *sim, uint64_t seed, uint32_t node_count);
void rep_sim_deinit(struct rep_sim *sim);
struct rep *rep_sim_rep(struct rep_sim *sim, uint64_t id);
/* Writes an ownership record; every node that is up sees it 1 ms later (faults: perhaps not). */
void rep_sim_record(struct rep_sim *sim, uint64_t owner, const struct membership *membership);
struct membership rep_sim_members(uint64_t config, uint32_t count);
void rep_sim_run(struct rep_sim *sim, uint64_t duration_ms);
/* False when the next event lies beyond `until_ms`. */
bool rep_sim_one(struct rep_sim *sim, uint64_t until_ms);
err rep_sim_propose(struct rep_sim *sim, uint64_t id, const char *text);
err rep_sim_read(struct rep_sim *sim, uint64_t id);
void rep_sim_crash(struct rep_sim *sim, uint64_t id);
void rep_sim_restart(struct rep_sim *sim, uint64_t id);
/* The disk is lost; the replica comes back under its id, without a vote. */
void rep_sim_wipe(struct rep_sim *sim, uint64_t id);
/* A removed replica drops its log and database; its promise stays. */
void rep_sim_forget(struct rep_sim *sim, uint64_t id);
/* Cuts or heals both directions between two nodes. */
void rep_sim_cut(struct rep_sim *sim, uint64_t a, uint64_t b, bool cut);
/* Nothing becomes durable at this node until it is released. */
void rep_sim_hold_disk(struct rep_sim *sim, uint64_t id, bool held);
void rep_sim_snapshot(struct rep_sim *sim, uint64_t from, uint64_t to);

#endif
