/*
 * stores: a node's log and database, opened. A database that was found damaged, now or in an
 * earlier life, is salvaged first: what can be read of it, shard by shard, goes to a new one that
 * takes its place, and what cannot is marked damaged in the log, so that it is repaired from the
 * others (docs/membership.md). Each step may be the last one before a crash. Blocks on the disk,
 * and long when there is something to salvage.
 */
#ifndef NODE_IO_PROCESS_STORES_H
#define NODE_IO_PROCESS_STORES_H

#include "node/io/process/node_config.h"
#include "node/store/datadir.h"
#include "node/store/db.h"
#include "node/store/node_log.h"

#define STORES_TEXT_BYTES DATADIR_ERROR_BYTES

struct stores_options {
    const struct node_config *config;
    const struct log *log;
    struct datadir *datadir;
    uint32_t shard_count;
    uint64_t block_cache_bytes;
};

/* The caller closes what is not NULL, also on error. */
struct stores {
    struct db *db;
    struct node_log *log;
};

/* On error ret_text says which of them failed and why. */
NODISCARD err stores_open(const struct stores_options *options, struct stores *ret_stores,
                          char ret_text[STORES_TEXT_BYTES]);

#endif
