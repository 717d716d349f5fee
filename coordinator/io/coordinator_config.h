/* coordinator_config: every option of holdfast-coordinator, in one table. See
 * runtime/config/config.h. */
#ifndef COORDINATOR_IO_COORDINATOR_CONFIG_H
#define COORDINATOR_IO_COORDINATOR_CONFIG_H

#include "runtime/config/process_config.h"

/* clang-format off */
/*    field                 type      default                  min   max       unit         doc */
#define COORDINATOR_CONFIG(X)                                                                              \
    X(name,                 TEXT,     "coordinator",           1,    63,       "",          "name in logs and in cluster status; each coordinator its own") \
    X(cluster,              TEXT,     "dev",                   1,    63,       "",          "cluster name: prefix of its etcd keys") \
    X(listen,               ADDRESS,  "127.0.0.1:7301",        3,    255,      "host:port", "where nodes connect") \
    X(advertise,            ADDRESS,  "",                      0,    255,      "host:port", "address that others use; empty: as listened") \
    PROCESS_CONFIG(X) \
    X(lease_ttl,            DURATION, "4s",                    1000, 60000,    "ms",        "another coordinator takes over after so long a silence") \
    X(shard_count,          U32,      "64",                    1,    4096,     "",          "new cluster: shards, a power of two, fixed for ever") \
    X(replication_factor,   U32,      "3",                     1,    7,        "",          "new cluster: replicas of each shard") \
    X(placement_nodes,      U32,      "0",                     0,    256,      "",          "new cluster: nodes to wait for; 0: replication_factor") \
    X(currencies,           LIST,     "",                      0,    64,       "name[:min:max]", "new cluster: currencies of its first policy") \
    X(rebalance,            BOOL,     "true",                  0,    1,        "",          "spread ownership over the nodes") \
    X(rebalance_period,     DURATION, "200ms",                 1,    600000,   "ms",        "one shard changes hands in this time, at most") \
    X(rebalance_up,         DURATION, "10s",                   0,    600000,   "ms",        "only when every node is up for so long") \
    X(rebalance_load,       DURATION, "10s",                   0,    3600000,  "ms",        "one exchange of shards by what they have to do in this time, at most; 0: by number alone") \
    X(rebalance_load_floor, U32,      "2000",                  1,    1000000,  "operations/s", "owners that differ by less exchange nothing") \
    X(claim_closed,         DURATION, "300ms",                 10,   60000,    "ms",        "early claim: owner closed for so long") \
    X(claim_silent,         DURATION, "1500ms",                10,   60000,    "ms",        "early claim: owner silent for so long") \
    X(claim_calm,           DURATION, "5s",                    0,    600000,   "ms",        "no claim or hand-over of a shard so soon after a change") \
    X(server_wait,          DURATION, "10s",                   0,    600000,   "ms",        "a newly elected coordinator expires no game server before") \
    X(server_hold_percent,  U32,      "30",                    1,    100,      "percent",   "more game servers gone at once: hold their expiry") \
    X(server_hold_min,      U32,      "4",                     1,    65536,    "",          "fewer gone never hold") \
    X(server_hold_max,      DURATION, "2m",                    0,    86400000, "ms",        "longest hold; 0: never hold") \
    X(audit_interval,       DURATION, "1s",                    0,    3600000,  "ms",        "every item and unit of the cluster is counted this often; 0: never") \
    PROCESS_LOG_CONFIG(X)
/* clang-format on */

CONFIG_STRUCT(coordinator_config, COORDINATOR_CONFIG)

#endif
