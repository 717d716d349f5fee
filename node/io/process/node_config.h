/* node_config: every option of holdfast-node, in one table. See runtime/config/config.h. */
#ifndef NODE_IO_PROCESS_NODE_CONFIG_H
#define NODE_IO_PROCESS_NODE_CONFIG_H

#include "runtime/config/process_config.h"

/* For tests of upgrades alone: stands for a program that knows one apply version more. */
#ifdef HOLDFAST_DEBUG_INJECT
#define NODE_DEBUG_CONFIG(X) X(apply_version_max, U32, "10", 10, 11, "", "greatest apply version")
#else
#define NODE_DEBUG_CONFIG(X)
#endif

/* clang-format off */
/*    field                type      default                  min      max            unit         doc */
#define NODE_CONFIG(X)                                                                                     \
    X(name,                TEXT,     "node",                  1,       63,            "",          "name in logs and in cluster status") \
    X(cluster,             TEXT,     "dev",                   1,       63,            "",          "cluster name: prefix of its etcd keys") \
    X(zone,                TEXT,     "",                      0,       63,            "",          "failure zone; replicas are spread over zones") \
    X(data_dir,            PATH,     "data",                  1,       4000,          "",          "directory of the log and the database") \
    X(listen,              ADDRESS,  "127.0.0.1:7401",        3,       255,           "host:port", "where routers and coordinators connect") \
    X(node_transport,      TEXT,     "nng",                   3,       4,             "",          "what serves `listen`: nng or peer (libuv); the other side may differ") \
    X(peer_listen,         ADDRESS,  "127.0.0.1:7402",        3,       255,           "host:port", "where other nodes connect") \
    X(advertise,           ADDRESS,  "",                      0,       255,           "host:port", "address that others use; empty: as listened") \
    X(peer_advertise,      ADDRESS,  "",                      0,       255,           "host:port", "peer address that others use; empty: as listened") \
    PROCESS_CONFIG(X) \
    X(lease_ttl,           DURATION, "3s",                    1000,    60000,         "ms",        "how long the cluster waits for a silent node") \
    X(cache_size,          SIZE,     "0",                     0,       1099511627776, "bytes",     "rows and recent log entries kept in memory, heap overhead included; 0: a sixteenth of the machine's")  \
    X(block_cache_size,    SIZE,     "0",                     0,       1099511627776, "bytes",     "RocksDB's block cache; 0: a 64th of the machine's memory") \
    X(answers_size_max,    SIZE,     "0",                     0,       1099511627776, "bytes",     "answers on their way to callers, together; past it reads are THROTTLED; 0: a sixteenth of the memory, else at least 1MiB") \
    X(write_buffer_size,   SIZE,     "32MiB",                 1048576, 1073741824,    "bytes",     "RocksDB's write buffer") \
    X(database_rate,       SIZE,     "32MiB",                 1048576, 1099511627776, "bytes",     "written a second by the database, its merging included, at most") \
    X(log_segment_size,    SIZE,     "64MiB",                 4194304, 1073741824,    "bytes",     "size of one pre-written log file") \
    X(log_size_max,        SIZE,     "16GiB",                 8388608, 1099511627776, "bytes",     "the log may take this much disk") \
    X(log_lag_max,         DURATION, "2m",                    100,     86400000,      "ms",        "a replica silent for longer holds no log back; it gets a snapshot") \
    X(snapshot_rate,       SIZE,     "16MiB",                 1024,    1073741824,    "bytes",     "given to a replica that is behind, a second and shard") \
    X(disk_free_min,       SIZE,     "256MiB",                0,       1099511627776, "bytes",     "below it shards refuse writes, below twice as much others get them; 0: only a log that is full counts") \
    X(checkpoint_interval, DURATION, "30s",                   100,     3600000,       "ms",        "every shard is checkpointed this often") \
    X(scrub_period,        DURATION, "7d",                    0,       7776000000,    "ms",        "everything on the disk is read this often, to find what it changed; 0: never, else at least 1s") \
    X(scrub_rate,          SIZE,     "8MiB",                  65536,   1073741824,    "bytes",     "read a second by that, at most") \
    X(tick,                DURATION, "20ms",                  5,       1000,          "ms",        "how often shards look at their timers") \
    X(report_closed,       DURATION, "300ms",                 50,      60000,         "ms",        "an owner closed for so long is reported") \
    X(report_silent,       DURATION, "1500ms",                100,     60000,         "ms",        "an owner silent for so long is reported") \
    X(calls_max,           U32,      "65536",                 16,      1048575,       "",          "calls of routers waiting for an answer") \
    X(calls_key_share,     U32,      "50",                    1,       100,           "percent",   "of the calls that may be open, and of the room for answers to reads, what one API key or native client may hold over all routers, or all players' tokens") \
    X(bulk_calls_max,      U32,      "512",                   16,     65536,         "",          "bulk calls on their way at once; more wait, lest purchases wait behind them") \
    X(loads_max,           U32,      "64",                    1,       65536,         "",          "batches of cold rows being read at once") \
    X(slow_request,        DURATION, "1s",                    1,       3600000,       "ms",        "calls slower than this are logged, with where their time went; log writes, too") \
    X(workers,             U32,      "1",                     1,       64,            "",          "threads that own shards; shard n belongs to worker n % workers") \
    NODE_DEBUG_CONFIG(X) \
    PROCESS_LOG_CONFIG(X)
/* clang-format on */

CONFIG_STRUCT(node_config, NODE_CONFIG)

#endif
