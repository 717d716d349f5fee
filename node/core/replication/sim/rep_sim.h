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

#include "node/core/replication/rep.h"
#include "node/core/replication/sim/sim_disk.h"
#include "node/core/replication/sim/sim_queue.h"

#define SIM_NODES_MAX 8u /* Replica ids are 1 .. node_count. */
#define SIM_READS_MAX 64u
#define SIM_MARKS     1024u

/* Reach counters: what a run has exercised. */
/* clang-format off */
#define SIM_COUNTS(X)                                                                              \
    X(steps) X(promotions) X(starts_committed) X(adoptions) X(deposed) X(truncations)              \
    X(seal_refusals) X(append_refusals) X(mismatches) X(log_reads) X(snapshots) X(commits)         \
    X(acknowledged) X(rounds) X(reads) X(crashes) X(lost_writes) X(wipes) X(partitions) X(joins)   \
    X(leaves) X(aborts) X(joint_commits) X(learns) X(learned) X(removals) X(forgotten)             \
    X(dropped) X(duplicated) X(cuts) X(full)
/* clang-format on */

struct sim_counts {
#define SIM_COUNT(name) uint64_t name;
    SIM_COUNTS(SIM_COUNT)
#undef SIM_COUNT
};

enum sim_kind {
    SIM_MESSAGE,
    SIM_TICK,
    SIM_SYNCED,
    SIM_LOG_READ, /* number: from << 32 | to. */
    SIM_APPLY,
    SIM_FLUSH,
    SIM_RECORD, /* number: place in `records`. */
    SIM_RESTART,
    SIM_CLIENT, /* This and the next: rep_sim_chaos.c. */
    SIM_TROUBLE,
    SIM_CRASH,
    SIM_DUEL, /* node, from: the two; number: turns left. */
    SIM_MONITOR
};

struct sim_read {
    uint64_t round;
    uint64_t must_see; /* Acknowledged before the read began. */
};

struct sim_node {
    uint64_t id;
    uint64_t life;
    struct rep *rep; /* NULL while down. */
    struct sim_disk disk;
    struct sim_checkpoint applied; /* The state machine. */
    bool wiped;
    struct sim_disk lost; /* What a wipe took: it counted when it was acknowledged. */
    bool forgot;          /* It was removed, and dropped all but its promise; see `lost`. */
    bool disk_held;       /* Nothing becomes durable while it is set. */
    bool blind;           /* Cut off from the ownership record. */
    bool syncing;
    bool apply_due, flush_due;
    int64_t skew_ms;
    uint64_t slow_ms; /* Its disk takes up to so much longer. */
    uint64_t commit_seen;
    struct sim_read reads[SIM_READS_MAX];
    uint32_t read_count;
    struct membership membership; /* Of its epoch, while it leads. */
};

struct sim_faults {
    uint32_t drop_per_thousand;
    uint32_t duplicate_per_thousand;
    uint64_t delay_ms_max;
    uint64_t sync_ms_max;
    uint64_t apply_ms_max;
    uint32_t crash_per_thousand; /* Soon after a promise, an acknowledgement or START. */
};

struct rep_sim {
    struct sim_random random;
    struct sim_queue queue;
    uint64_t now_ms;
    uint32_t node_count;
    struct sim_node nodes[SIM_NODES_MAX]; /* Id less one. */
    struct rep_limits limits;
    struct sim_faults faults;
    bool cut[SIM_NODES_MAX][SIM_NODES_MAX]; /* [from][to] */
    uint64_t trouble_ms_max;                /* Between two troubles. */
    bool healing;
    bool verbose;
    /* Ownership records, newest last. */
    struct rep_record *records;
    uint32_t record_count, record_capacity;
    uint64_t serving_ms; /* When the record's owner was last seen to serve. */
    /* What is committed, by index less one; acknowledged up to. */
    struct hash128 *committed;
    uint64_t committed_count, committed_capacity;
    uint64_t acknowledged_index;
    struct {
        uint64_t ms, index;
    } marks[SIM_MARKS]; /* A ring: when that rose, and to what. */
    uint64_t mark_count;
    uint64_t reads_answered;
    struct sim_counts counts;
    struct rep_out out;
    char failure[256]; /* Empty: no promise is broken. */
};

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
void rep_sim_fail(struct rep_sim *sim, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* rep_sim_check.c: the promises. */
void rep_sim_check_commit(struct rep_sim *sim, struct sim_node *node);
void rep_sim_check_reads(struct rep_sim *sim, struct sim_node *node, const struct rep_out *out);
/* All members of the newest record hold one log, applied alike. */
bool rep_sim_converged(const struct rep_sim *sim);

/* rep_sim_chaos.c: events SIM_CLIENT and above. */
void rep_sim_chaos_event(struct rep_sim *sim, const struct sim_event *event);
void rep_sim_chaos_begin(struct rep_sim *sim, uint64_t seed);
/* Ends all faults; false (and `failure`) when the shard does not serve and converge. */
bool rep_sim_heal(struct rep_sim *sim);

#endif
