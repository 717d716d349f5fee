/* coord_limits: what an operator may set of the coordinator's decisions, with defaults and bounds.
 */
#ifndef COORDINATOR_CORE_COORD_LIMITS_H
#define COORDINATOR_CORE_COORD_LIMITS_H

#include <stdint.h>

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
    X(server_wait_ms,           10000,    0,  600000, "a new coordinator expires none before")   \
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
    X(audit_timeout_ms,          5000,  100,  600000, "a cut that takes longer is given up")       \
    X(define_ask_ms,            60000,  100, 3600000, "a shard is asked so often how far it has "  \
                                                      "followed the definitions")                  \
    X(define_write_ms,           5000,  100,   60000, "a change of a definition is answered by then") \
    X(definitions_gone_kept,     1024,    1,    4096, "deleted definitions that are remembered")
/* clang-format on */

#define COORD_FIELD(name, def, min, max, doc) uint32_t name;
struct coord_limits {
    COORD_LIMITS(COORD_FIELD)
};
#undef COORD_FIELD
struct coord_limits coord_limits_default(void);
/* Within the bounds above. */
void coord_limits_check(const struct coord_limits *limits);

#endif
