/*
 * coord: what the elected coordinator decides (DESIGN sections 2, 4, 5): creates the cluster,
 * places shards, names owners (failover, early claim, restarted owners, gentle rebalance), expires
 * game servers, carries the policy to every shard. Pure: no I/O, clock, threads, randomness. The
 * shell (coordinator/io in production, tests/sim in the simulator) feeds it etcd's records and
 * carries out its transactions and calls.
 *
 * It is a reconciler: every decision follows from the records as they stand, so a new coordinator,
 * or one that missed an answer, goes on where the last one stopped. Why an owner gets a new epoch:
 *
 *   its node record is gone            -> a live member at once, greatest reported dot first
 *   its node record is newer than the  -> the same node again, one epoch higher: it restarted (or
 *   shard record that names it            its lease lapsed) and lost what an owner holds in memory
 *   a majority without it reports it   -> the reporter with the greatest last dot (early claim)
 *   closed or silent
 *   it says that its disk is full      -> a live member that has room, if there is one
 *   ownership is uneven                -> a live member, one shard per rebalance_period_ms
 *   owners have unevenly much to do    -> a live member, in exchange for a less busy shard (load.c)
 *   it is drained or removed           -> a live member, one shard per drain_period_ms
 *   the shard's members change         -> the same node, unless it is the one who goes (change.c)
 *
 * A replica that its own node found damaged leaves its shard and comes back empty (repair.c).
 *
 * Nothing here is trusted for safety beyond the compares of its transactions: replicas fence. But
 * for one thing: numbers of configurations must not be given twice. So before a shard's members
 * change (or are chosen) a majority of them has to be heard, and nobody may know a later record:
 * etcd may have been restored from a backup (word.c).
 */
#ifndef COORDINATOR_CORE_COORD_H
#define COORDINATOR_CORE_COORD_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "runtime/base/arena.h"
#include "runtime/base/log.h"
#include "runtime/cluster/cluster_record.h"
#include "runtime/cluster/wire.h"

/* clang-format off */
/*    field                   default   min      max  meaning                                     */
#define COORD_LIMITS(X)                                                                            \
    X(txn_writes_max,              64,    1,      64, "records changed by one transaction")        \
    X(txns_max,                     8,    1,      64, "transactions in flight")                    \
    X(txn_retry_ms,               250,   10,   10000, "pause before a transaction is repeated")    \
    X(calls_max,                  256,    1,    4096, "calls to shards in flight")                 \
    X(call_timeout_ms,           2000,  100,   60000, "deadline of one call")                      \
    X(call_retry_ms,               50,   10,   60000, "pause before a shard is called again")      \
    X(call_refused_ms,           5000,   10,  600000, "the same after it refused")                 \
    X(placement_settle_ms,        400,    0,   60000, "no new node for so long before placement")  \
    X(claim_closed_ms,            300,   10,   60000, "early claim: owner closed for so long")     \
    X(claim_silent_ms,           1500,   10,   60000, "early claim: owner silent for so long")     \
    X(claim_calm_ms,             5000,    0,  600000, "no early claim or hand-over of a shard so " \
                                                      "soon after it changed")                     \
    X(report_valid_ms,           1500,   10,   60000, "a report counts for so long")               \
    X(rebalance,                    1,    0,       1, "spread ownership over the nodes (0: off)")  \
    X(rebalance_period_ms,        200,    1,  600000, "one hand-over in this time")                \
    X(load_ask_ms,               5000,  100,  600000, "an owner is asked so often what it did")    \
    X(load_exchange_ms,         10000,    0, 3600000, "one exchange of shards for their load in "  \
                                                      "this time (0: by number alone)")            \
    X(load_floor,                2000,    1, 1000000, "operations/s that nodes may differ by")     \
    X(load_percent,                25,    1,    1000, "the same, of the mean of all nodes")        \
    X(rebalance_up_ms,          10000,    0,  600000, "only to nodes up for so long")              \
    X(rebalance_shun_ms,        60000,    0, 3600000, "not to nodes claimed against so recently")  \
    X(server_wait_ms,           10000,    0,  600000, "a new coordinator expires nobody before")   \
    X(server_settle_ms,          1000,    0,   60000, "a server is gone for so long before expiry")\
    X(server_window_ms,         10000,    0,  600000, "servers gone within it count as at once")   \
    X(server_hold_percent,         30,    1,     100, "more gone at once: hold, our own fault?")   \
    X(server_hold_min,              4,    1,   65536, "fewer gone never hold")                     \
    X(server_hold_ms_max,      120000,    0, 86400000, "longest hold of a server; 0: never hold")  \
    X(servers_expiring_max,        32,    1,    1024, "game servers being expired at a time")      \
    X(changes_max,                  4,    1,    4096, "shards that change members at a time")       \
    X(change_ask_ms,              100,   10,   60000, "an owner is asked so often how a change is") \
    X(change_lag_entries,         256,    0, 1048576, "a learner this near may join")               \
    X(change_silent_ms,          2000,   10,   60000, "and heard within it")                        \
    X(word_retry_ms,             500,   10,   60000, "pause before a node is asked again what it knows") \
    X(stale_doubt_ms,           10000,  100,  600000, "the record that a refused write met comes within it") \
    X(change_abort_ms,          30000,   10, 3600000, "who comes may be gone for so long")          \
    X(repair_wait_ms,            5000,    0,  600000, "all members are up for so long before a "    \
                                                      "damaged one is repaired")                   \
    X(repair_upgrade_ms,      600000,    0, 86400000, "an upgrade is waited for so long, since the " \
                                                      "damaged one's node came up")                \
    X(removed_kept,                64,    0,     128, "removed nodes that are remembered when gone")  \
    X(drain_period_ms,             20,    1,   60000, "one hand-over of a drain in this time")      \
    X(audit_interval_ms,         1000,    0, 3600000, "a cut of all shards in this time; 0: none") \
    X(audit_timeout_ms,          5000,  100,  600000, "a cut that takes longer is given up")
/* clang-format on */

#define COORD_FIELD(name, def, min, max, doc) uint32_t name;
struct coord_limits {
    COORD_LIMITS(COORD_FIELD)
};
#undef COORD_FIELD
struct coord_limits coord_limits_default(void);

enum {
    COORD_TXN_WRITES_MAX = 64,
    COORD_SERVERS_MAX = 65536, /* Known game servers; beyond it new ones are not looked after. */
};

struct coord_options {
    const char *cluster;                  /* cluster_name_valid. Copied, as all here. */
    const struct coord_limits *limits;    /* NULL: the defaults. */
    const struct cluster_record *initial; /* Written if the cluster has no record. Valid. */
    struct slice initial_policy; /* Packed holdfast.v1.Policy, written with it; or empty. */
    uint32_t placement_nodes;    /* Nodes to wait for; 0: the replication factor. */
    const struct log *log;       /* Borrowed; may be NULL. */
};

enum coord_event_type {
    COORD_PUT,      /* key, value, create_revision, mod_revision   a record under the prefix     */
    COORD_DELETED,  /* key, mod_revision                            it is gone                    */
    COORD_SYNCED,   /*                                              the copy is complete          */
    COORD_ELECTED,  /* key, create_revision                         own election key              */
    COORD_LOST,     /*                                              or perhaps lost: stop acting  */
    COORD_HALT,     /*                                              etcd went back: do not act    */
    COORD_RESET,    /*                                              it was accepted: begin anew   */
    COORD_TXN_DONE, /* ticket, outcome, written, mod_revision       one for each txn action       */
    COORD_CALL_DONE, /* call, status, body                           one for each call action */
    COORD_REPORT, /* report                                       borrowed for the step         */
    COORD_TICK    /*                                              every 10 to 100 ms            */
};

enum coord_txn_outcome {
    COORD_TXN_ANSWERED, /* The election key stood; `written` says which writes were carried out. */
    COORD_TXN_DEPOSED,  /* The election key did not stand; nothing was written. */
    COORD_TXN_UNKNOWN   /* No answer, or not sent: the same transaction will be repeated. */
};

struct coord_event {
    enum coord_event_type type;
    uint64_t now_ms;  /* Monotonic; never goes back between events. */
    uint64_t wall_ms; /* ELECTED: this machine's clock, Unix time. Only to date holds. */
    struct slice key;
    struct slice value;
    int64_t create_revision;
    int64_t mod_revision; /* TXN_DONE: the store's revision in the answer. */
    uint64_t ticket;
    enum coord_txn_outcome outcome;
    const bool *written; /* As many as the transaction's writes. Only with ANSWERED. */
    uint64_t call;
    enum wire_status status; /* No answer: WIRE_UNKNOWN, never sent: WIRE_UNAVAILABLE. */
    struct slice body;       /* Of the answer; borrowed for the step. */
    const Holdfast__Internal__V1__ReportOwnerRequest *report;
};

/* Carried out if `key` still has mod_revision (0: is absent) and, unless empty, absent_key is
 * absent; each write on its own, as a nested transaction. */
struct coord_write {
    bool remove; /* Delete `key` instead of putting `value`. */
    struct slice key;
    struct slice value;
    int64_t mod_revision;
    struct slice absent_key;
};

/*
 * One transaction: if election_key (unless empty) has election_revision as its create revision,
 * then each write. Only creating the cluster's record comes without an election key: a listener
 * needs the cluster's id before it can campaign, and create-if-absent needs no leader.
 */
struct coord_txn {
    uint64_t ticket;
    struct slice election_key;
    int64_t election_revision;
    const struct coord_write *writes;
    uint32_t write_count; /* 1 to COORD_TXN_WRITES_MAX. */
};

/* A call to `node`, which the record names as owner of `shard`. */
struct coord_call {
    uint64_t call;
    uint64_t node;
    uint32_t shard;
    uint16_t method; /* EXPIRE_SERVER, APPLY_POLICY, TAKE_CUT, AUDIT_SEARCH, CONTAIN_PLAYER,
                      * MEMBER_STATE; GET_NODE_STATUS goes to any node, about all shards. */
    uint32_t timeout_ms;
    struct slice body;
};

/* Actions of one step; all memory is the core's or the out's, valid until the next step or
 * coord_out_clear. A zeroed one is valid. */
struct coord_out {
    struct coord_txn *txns;
    uint32_t txn_count, txn_capacity;
    struct coord_call *calls;
    uint32_t call_count, call_capacity;
    struct arena arena;
};

struct coord;

struct coord *coord_new(const struct coord_options *options);
void coord_free(struct coord *coord);

/* Advances by one event; appends to `out`. What is wrong is logged and left alone. Carry out the
 * actions after it returns: never call it from within. */
void coord_step(struct coord *coord, const struct coord_event *event, struct coord_out *out);
void coord_out_clear(struct coord_out *out);
void coord_out_deinit(struct coord_out *out);

/* Elected, synced, not halted: it decides. */
bool coord_is_active(const struct coord *coord);
/* etcd went back under it, or a live node says that etcd is older than it knows. */
bool coord_is_halted(const struct coord *coord);
/* Work that is under way: a transaction, call, search, change, expiry or hold. NULL: none, as after
 * each step in which coord_is_active is false. Looks at everything: for tests. */
const char *coord_work_left(const struct coord *coord);
/* NULL until the cluster has a record. */
const struct cluster_record *coord_cluster(const struct coord *coord);
/* NULL: no live record. Valid until the next step. */
const struct node_record *coord_find_node(const struct coord *coord, uint64_t replica_id);
/* Live nodes by rising replica id. `index` < coord_node_count. */
uint32_t coord_node_count(const struct coord *coord);
const struct node_record *coord_node(const struct coord *coord, uint32_t index);
/* NULL: no record. */
const struct shard_record *coord_find_shard(const struct coord *coord, uint32_t shard);

/* clang-format off */
/*    counter                 meaning                                                             */
#define COORD_COUNTERS(X)                                                                          \
    X(transactions,           "transactions sent, repeats included")                               \
    X(transactions_unknown,   "transactions without a definite answer")                            \
    X(writes_lost,            "writes whose compare failed")                                       \
    X(shards_placed,          "shards given their first owner")                                    \
    X(failovers,              "shards moved because their owner's lease was gone")                 \
    X(claims,                 "shards moved by an early claim")                                    \
    X(restarts,               "shards given a new epoch because their owner restarted")            \
    X(handovers,              "shards moved to spread ownership")                                  \
    X(exchanges,              "times shards were exchanged to spread what they have to do")        \
    X(changes_begun,          "changes of a shard's members begun")                                \
    X(changes_done,           "changes of a shard's members carried out")                          \
    X(changes_aborted,        "changes of a shard's members given up")                             \
    X(repairs_begun,          "damaged replicas that left their shard to come back empty")         \
    X(repairs_done,           "replicas that came back whole")                                     \
    X(repairs_given_up,       "repairs given up: the replica's node is gone, or does not drop it")  \
    X(drained,                "shards moved because their owner is drained or removed")            \
    X(declined,               "owners named anew, since they had that epoch before")               \
    X(evacuations,            "shards moved because their owner's disk is full")                   \
    X(reports,                "owner reports received")                                            \
    X(calls,                  "calls to shards")                                                   \
    X(calls_failed,           "calls to shards that were not answered well")                       \
    X(servers_marked,         "game servers marked as expiring")                                   \
    X(servers_expired,        "game servers expired in every shard")                               \
    X(server_holds,           "times expiry was held because too many servers vanished at once")   \
    X(records_malformed,      "records in etcd that could not be read")
/*    gauge                   meaning                                                             */
#define COORD_GAUGES(X)                                                                            \
    X(active,                 "1 while this coordinator decides")                                  \
    X(halted,                 "1 when etcd went back and writing stopped")                         \
    X(nodes_live,             "nodes with a live lease")                                           \
    X(nodes_doubting,         "live nodes that know a newer etcd than this one")                   \
    X(shards_doubted,         "shards of which a later record is known than etcd has")             \
    X(shards_unheard,         "shards whose members may not change: too few said what they know")  \
    X(nodes_full,             "live nodes whose disk is full or nearly so")                        \
    X(shards_placed_now,      "shards that have a record")                                         \
    X(shards_unowned,         "shards whose owner has no live lease")                              \
    X(changes_open,           "shards whose members change just now")                              \
    X(replicas_damaged,       "members of shards that their live nodes found damaged")             \
    X(repairs_open,           "shards that are repaired just now")                                 \
    X(nodes_leaving,          "nodes that are drained or removed")                                 \
    X(servers_known,          "registered game servers")                                           \
    X(servers_gone,           "registered game servers whose lease is gone")                       \
    X(servers_expiring,       "game servers being expired")                                        \
    X(server_hold,            "1 while expiry is held")                                            \
    X(policy_pending,         "shards that have not confirmed the policy")                         \
    X(transactions_open,      "transactions in flight")                                            \
    X(calls_open,             "calls in flight")
/*    counter of the audit    meaning                                                             */
#define AUDIT_COUNTERS(X)                                                                          \
    X(audit_cuts,             "cuts in which every unit and item was counted")                     \
    X(audit_inconclusive,     "cuts given up: a shard did not answer, or transfers stayed open")   \
    X(audit_violations,       "imbalances found, each counted once")                               \
    X(audit_searches,         "searches for who holds what is too much")                           \
    X(audit_unexplained,      "imbalances given up: nobody was found who holds too much")          \
    X(audit_contained,        "players quarantined because of the audit")
#define AUDIT_GAUGES(X)                                                                            \
    X(audit_cut,              "the last cut that was counted")                                     \
    X(audit_age_seconds,      "since then, or since this coordinator was elected")                 \
    X(audit_imbalance,        "1 while that cut did not come to zero: goods were doubled or lost")
/* clang-format on */

#define COORD_FIELD(name, doc) uint64_t name;
struct coord_stats {
    COORD_COUNTERS(COORD_FIELD)
    COORD_GAUGES(COORD_FIELD)
    AUDIT_COUNTERS(COORD_FIELD)
    AUDIT_GAUGES(COORD_FIELD)
};
#undef COORD_FIELD
void coord_stats_get(const struct coord *coord, struct coord_stats *ret_stats);

#endif
