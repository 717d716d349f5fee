/*
 * space: whether the disks under the log and the database have room (DESIGN section 4, Disks). It
 * asks the file systems every SPACE_PERIOD_MS, on libuv's pool.
 *
 *   SPACE_LOW   less than twice `free_min` is free: the coordinator is asked to give this node's
 *               shards to others, while there is still room for what is on its way; the database
 *               merges no more files
 *   SPACE_FULL  less than `free_min`, or the log can take no more: shards refuse writes, too; if it
 *               is the disk, nothing is written to the database until there is room
 *
 * Each state is left a quarter of `free_min` later than it was entered, by itself. What is left is
 * for the log, and for what RocksDB had begun: that of Debian 12 stops the process by an assertion
 * when a write finds no room, so none of ours may.
 */
#ifndef NODE_IO_DISK_SPACE_H
#define NODE_IO_DISK_SPACE_H

#include <stdint.h>

#include "node/core/shard/shard.h"
#include "runtime/base/log.h"
#include "runtime/loop/loop.h"

#define SPACE_PERIOD_MS 200u
/* A log that is at its limit for so long: before, the next checkpoint may make room. */
#define SPACE_LOG_MS_MAX 1000u

enum space_state { SPACE_OK, SPACE_LOW, SPACE_FULL };

/* What follows from so much free disk. Pure. `free_min` 0: it is never short. */
enum space_state space_next(enum space_state now, uint64_t free_bytes, uint64_t free_min);

struct space;

struct space_options {
    struct loop *loop;
    const struct log *log;
    const char *log_path, *db_path; /* Directories. Copied. */
    uint64_t free_min;              /* Bytes. */
    /* False: the log has no room beyond what it is writing. Any thread. */
    bool (*log_has_room)(void *user);
    /* Merges no more files, or does again. On libuv's pool. */
    void (*database_rests)(void *user, bool rests);
    void *user;
};

struct space *space_new(const struct space_options *options);
/* Waits for a look on its way. NULL is allowed. */
void space_free(struct space *space);

/* Any thread. NULL: SPACE_OK. */
enum space_state space_state(const struct space *space);
/* The disk is full: nothing may be written to the database. Any thread. */
bool space_disk_full(const struct space *space);
/* Which disk, what is free, what is needed; for callers. Any thread. */
void space_why(struct space *space, char ret_text[SHARD_FULL_BYTES]);
uint64_t space_free_bytes(const struct space *space);

#endif
