/*
 * rep_sim_state: what a simulation is in. rep_sim.h moves it on, rep_sim_check.h judges it,
 * rep_sim_chaos.h makes trouble.
 */
#ifndef NODE_CORE_REPLICATION_SIM_REP_SIM_STATE_H
#define NODE_CORE_REPLICATION_SIM_REP_SIM_STATE_H

#include "node/core/replication/rep.h"
#include "node/core/replication/sim/sim_disk.h"
#include "node/core/replication/sim/sim_queue.h"

#define SIM_UNIX_MS   1700000000000u
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
    SIM_CLIENT, /* This and the next: for `chaos`. */
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
    uint32_t program;     /* The greatest apply version that it knows; 0: 1. */
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
    /* Events SIM_CLIENT and above (rep_sim_chaos.h); NULL: none comes. */
    void (*chaos)(struct rep_sim *sim, const struct sim_event *event);
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

/* A promise is broken. Keeps the first one only, and the run goes on. */
void rep_sim_fail(struct rep_sim *sim, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
