/*
 * scrub: a thread that reads the database and the sealed part of the log once a period, slowly, so
 * that what the disk changed is found while the other replicas still have it, and not when it is
 * wanted. It finds, and tells; what follows is what follows any damage (docs/nodes.md).
 * Decides nothing of its pace (scrub_pace.h), and nothing of what is damage (db.h, node_log.h).
 */
#ifndef NODE_IO_DISK_SCRUB_H
#define NODE_IO_DISK_SCRUB_H

#include "node/store/db.h"
#include "node/store/node_log.h"
#include "runtime/loop/loop.h"

struct scrub;

struct scrub_options {
    struct loop *loop;
    const struct log *log;
    struct db *db; /* This and the log outlive the scrub. */
    struct node_log *store_log;
    uint64_t period_ms; /* Not 0. */
    uint64_t rate_bytes_per_s;
    /* On the loop: damage of the database (then db_damage says it, and `shard` is 0), or of this
     * shard's log. Once: the scrub ends with it, as the node will. */
    void (*damaged)(void *user, uint32_t shard, const char *text);
    void *user;
};

/* Starts the thread. The first pass comes after scrub_pace_first_ms. On the loop's thread, as free.
 */
struct scrub *scrub_new(const struct scrub_options *options);
/* Waits for the thread, which ends within a step, however short of its end. NULL is allowed. */
void scrub_free(struct scrub *scrub);

struct scrub_stats {
    uint64_t bytes;  /* Rows, and bytes of the log, since the start. */
    uint64_t passes; /* Whole ones. */
    uint64_t damage;
    uint64_t last_pass_ms; /* Since 1970: when the last whole one ended; 0: there was none. */
    uint64_t period_ms;    /* As in the options; 0: there is no scrub. */
};
/* Any thread. NULL: zeros. */
void scrub_stats_get(const struct scrub *scrub, struct scrub_stats *ret_stats);

#endif
