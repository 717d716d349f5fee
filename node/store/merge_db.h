/*
 * merge_db: what a node keeps of the mergeable class (node/core/mergeable/disk.h), for all shards:
 * rows, states and logs. A RocksDB of its own, beside that of the strict class: no reset,
 * truncation, snapshot, salvage or digest of a strict shard reaches it, and a program that does not
 * know it leaves it alone. The log's records are keys of it, under rising numbers; RocksDB's own
 * log (WAL) makes them durable, with one sync for a batch of all shards. So a checkpoint takes the
 * records that it covers away in the very batch that brings it, and nothing of a log is cut before
 * that.
 *
 * A torn tail of the WAL was never acknowledged, and is dropped. All other damage is ERR_CORRUPT:
 * the directory is of no more use, and merge_db_begin_again makes a new one, which says so. (Damage
 * within the last 32 KiB of a WAL that a crash left looks like a torn tail.)
 *
 * A failed write stops the process, like one of the node's log: what the disk then holds is not
 * known. Blocks on the disk; each function may be called from any thread, but one batch belongs to
 * one.
 *
 * Keys: u16 BE shard, a letter, and behind it: S nothing, the state; M nothing, the shell's own
 * record of members; R the key of a row; L u64 BE, a record's number.
 */
#ifndef NODE_STORE_MERGE_DB_H
#define NODE_STORE_MERGE_DB_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/buf.h"
#include "runtime/base/log.h"

#define MERGE_DB_TEXT_BYTES 320u
/* A log record is read back as it was written; no writer makes a longer one. */
#define MERGE_DB_RECORD_BYTES_MAX (64u * 1024u * 1024u)

struct merge_db;
struct merge_batch;

/* Whether there is one in the directory: a node that never needed it has none. */
bool merge_db_exists(const char *directory);
/* Opens it, or makes it. ERR_CORRUPT: damaged. ERR_IO. `ret_text` says what RocksDB said. */
NODISCARD err merge_db_open(const char *directory, const struct log *log, struct merge_db **ret_db,
                            char ret_text[MERGE_DB_TEXT_BYTES]);
/* Makes a new one in <directory>.new, which merge_db_lost says of for ever, renames the damaged one
 * to <directory>.damaged, in place of an earlier such one, and puts the new one in its place.
 * ERR_IO: as before; so does a crash leave it. */
NODISCARD err merge_db_begin_again(const char *directory, const struct log *log,
                                   struct merge_db **ret_db, char ret_text[MERGE_DB_TEXT_BYTES]);
/* NULL is allowed. No other call may be inside. */
void merge_db_close(struct merge_db *db);
/* An earlier one was given up: a shard without a state here may have had one. */
bool merge_db_lost(const struct merge_db *db);

/* ---- writing ---- */
struct merge_batch *merge_batch_new(void);
/* NULL is allowed. */
void merge_batch_free(struct merge_batch *batch);
void merge_batch_log(struct merge_batch *batch, uint32_t shard, uint64_t number,
                     struct slice record);
/* Takes the shard's log records below `end` away. */
void merge_batch_cut(struct merge_batch *batch, uint32_t shard, uint64_t end);
void merge_batch_state(struct merge_batch *batch, uint32_t shard, struct slice state);
void merge_batch_members(struct merge_batch *batch, uint32_t shard, struct slice members);
void merge_batch_row(struct merge_batch *batch, uint32_t shard, struct slice key, struct slice row);
void merge_batch_row_gone(struct merge_batch *batch, uint32_t shard, struct slice key);
/* Everything of the shard goes. */
void merge_batch_drop(struct merge_batch *batch, uint32_t shard);
size_t merge_batch_bytes(const struct merge_batch *batch);

/* All of the batch or nothing of it, behind all batches written before; durable on return. One
 * thread at a time. */
void merge_db_write(struct merge_db *db, struct merge_batch *batch);

/* ---- reading, at a start ---- */
struct merge_db_visit {
    /* Borrowed for the call. Of a shard in this order: members, state, rows, log. */
    void (*members)(void *user, struct slice members);
    void (*state)(void *user, struct slice state);
    void (*row)(void *user, struct slice key, struct slice row);
    void (*log)(void *user, uint64_t number, struct slice record);
    void *user;
};
/* Whether there is anything of that shard. ERR_CORRUPT. */
NODISCARD err merge_db_has(struct merge_db *db, uint32_t shard, bool *ret_has);
/* Shows all of a shard. ERR_CORRUPT: damaged; what was shown until then is of no use. */
NODISCARD err merge_db_read(struct merge_db *db, uint32_t shard,
                            const struct merge_db_visit *visit);

struct merge_db_stats {
    uint64_t writes, written_bytes;
};
void merge_db_stats_get(struct merge_db *db, struct merge_db_stats *ret_stats);

#endif
