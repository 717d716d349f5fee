/* db_private: what the parts of db share. */
#ifndef NODE_STORE_DB_PRIVATE_H
#define NODE_STORE_DB_PRIVATE_H

#include <pthread.h>
#include <rocksdb/c.h>
#include <stdatomic.h>

#include "node/store/db.h"

#define DB_SHARD_BYTES    2u
#define DB_SHARDS_MAX     4096u
#define DB_GENERATIONS    15u
#define DB_POINTER_PREFIX 0xf000u /* Above every generation. */

struct db_draft;

struct db {
    rocksdb_t *rocks;
    rocksdb_options_t *options;
    rocksdb_cache_t *cache;
    rocksdb_writeoptions_t *write_options;
    rocksdb_readoptions_t *read_options;
    rocksdb_readoptions_t *cached_options; /* As read_options, but never from the disk. */
    rocksdb_flushoptions_t *flush_options;
    const struct log *log;
    char *directory;
    pthread_mutex_t lock;   /* Of `damage` and `draft`. */
    struct db_draft *draft; /* Of the checkpoint before, for the next; NULL while in use. */
    _Atomic uint8_t generations[DB_SHARDS_MAX]; /* Which rows of a shard count. */
    atomic_bool reset_due[DB_SHARDS_MAX];
    bool damaged;
    char damage[DB_TEXT_BYTES];
    _Atomic uint64_t checkpoints, checkpoint_rows, checkpoint_bytes, flushes, gets, cached_gets,
        ranges;
};

/* ---- db_write.c ---- */
/* Takes RocksDB's error (freed here): logs it, and keeps it if it is damage. */
NODISCARD err db_read_failed(struct db *db, const char *what, char *error);
/* Likewise, but anything other than damage stops the process. */
NODISCARD err db_write_failed(struct db *db, const char *what, char *error);

/* The first two bytes of a shard's keys, as a number. */
static inline uint16_t db_prefix_of(uint8_t generation, uint32_t shard)
{
    return (uint16_t)((uint32_t)generation << 12 | shard);
}
/* ... of the generation that counts. */
uint16_t db_prefix(const struct db *db, uint32_t shard);
/* A prefix and a row's key, in place of what `key` held. */
void db_put_key(struct buf *key, uint16_t prefix, struct slice row_key);
/* Adds the removal of every row under a prefix. */
void db_drop_prefix(rocksdb_writebatch_t *batch, uint16_t prefix);
/* Writes the batch, the caller's to destroy. */
NODISCARD err db_write_batch(struct db *db, rocksdb_writebatch_t *batch, const char *what);

/* ---- db_read.c ---- */
/* One page of the rows under prefix_number and `prefix`, above `after`. */
struct db_page {
    uint16_t prefix_number;
    struct slice prefix;
    struct slice after;
    uint32_t rows_max;
    size_t bytes_max;
    const rocksdb_snapshot_t *snapshot; /* NULL: as they are now; they are likely wanted again. */
};
NODISCARD err db_read_page(struct db *db, const struct db_page *page, struct db_rows *ret_rows);

/* ---- db_stage.c ---- */
/* Which generation of each shard counts, read when the database is opened. */
NODISCARD err db_pointers_load(struct db *db);

/* ---- db_checkpoint.c ---- */
void db_draft_free(struct db_draft *draft);

#endif
