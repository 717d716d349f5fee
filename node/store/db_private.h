/* db_private: what the parts of db share. */
#ifndef NODE_STORE_DB_PRIVATE_H
#define NODE_STORE_DB_PRIVATE_H

#include <pthread.h>
#include <rocksdb/c.h>
#include <stdatomic.h>

#include "node/store/db.h"

#define DB_SHARD_BYTES 2u

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
    pthread_mutex_t lock;   /* Of `damage` and `draft`. */
    struct db_draft *draft; /* Of the checkpoint before, for the next; NULL while in use. */
    bool damaged;
    char damage[DB_TEXT_BYTES];
    _Atomic uint64_t checkpoints, checkpoint_rows, checkpoint_bytes, flushes, gets, cached_gets,
        ranges;
};

/* Takes RocksDB's error (freed here): logs it, and keeps it if it is damage. */
NODISCARD err db_read_failed(struct db *db, const char *what, char *error);
/* Likewise, but anything other than damage stops the process. */
NODISCARD err db_write_failed(struct db *db, const char *what, char *error);

/* The shard's prefix and a row's key, in place of what `key` held. */
void db_put_key(struct buf *key, uint32_t shard, struct slice row_key);
/* Writes the batch, the caller's to destroy. */
NODISCARD err db_write_batch(struct db *db, rocksdb_writebatch_t *batch, const char *what);

/* db_checkpoint.c */
void db_draft_free(struct db_draft *draft);

#endif
