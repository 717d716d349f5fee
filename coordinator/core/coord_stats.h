/* coord_stats: what the coordinator counts of itself; its metrics are made of these tables. */
#ifndef COORDINATOR_CORE_COORD_STATS_H
#define COORDINATOR_CORE_COORD_STATS_H

#include <stdint.h>

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
    X(declined,               "owners named again, since they had that epoch before")               \
    X(outgrown,               "owners named again, since their members apply a later version")     \
    X(clocks_ahead,           "shards moved because their owner's clock is ahead of its members'")   \
    X(evacuations,            "shards moved because their owner's disk is full")                   \
    X(quarantined,            "shards moved because their owner's replica is quarantined")         \
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
    X(shards_unowned,         "shards whose owner has no live lease, or a quarantined replica")    \
    X(changes_open,           "shards whose members change just now")                              \
    X(replicas_damaged,       "members of shards that their live nodes found damaged")             \
    X(replicas_quarantined,   "members of shards that may not own: a majority differs from them")  \
    X(shards_unownable,       "shards of which no live member may own")                            \
    X(repairs_open,           "shards that are repaired just now")                                 \
    X(nodes_leaving,          "nodes that are drained or removed")                                 \
    X(servers_known,          "registered game servers")                                           \
    X(servers_gone,           "registered game servers whose lease is gone")                       \
    X(servers_expiring,       "game servers being expired")                                        \
    X(server_hold,            "1 while expiry is held")                                            \
    X(policy_pending,         "shards that have not confirmed the policy")                         \
    X(definitions,            "definitions that are not deleted")                                  \
    X(definitions_pending,    "shards that have not logged all definitions")                       \
    X(definitions_lag_seconds, "since when some shard has not")                                    \
    X(transactions_open,      "transactions in flight")                                            \
    X(calls_open,             "calls in flight")
/*    counter of the audit    meaning                                                             */
#define AUDIT_COUNTERS(X)                                                                          \
    X(audit_cuts,             "cuts in which every unit and item was counted")                     \
    X(audit_inconclusive,     "cuts given up: a shard did not answer, or transfers stayed open")   \
    X(audit_violations,       "imbalances found, each counted once")                               \
    X(audit_searches,         "searches for who holds what is too much")                           \
    X(audit_unexplained,      "imbalances given up: no player was found to hold too much")          \
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

#endif
