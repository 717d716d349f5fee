/*
 * db: the rows of all shards of a node in one RocksDB, through its C API. It has no WAL: a
 * checkpoint is one atomic batch per shard, the log rebuilds what a crash took, and the log may be
 * cut only to an index covered by a finished db_flush. DESIGN section 8.
 *
 * Every function may be called from any thread, and may block on the disk: never on a loop.
 * A key in the database is the shard (12 bits) under a key generation (4 bits above them), then the
 * row's key. The generation changes when a snapshot takes the place of a shard's rows.
 *
 * Errors: ERR_CORRUPT: RocksDB found damage; logged and kept for db_damage, with the file's name.
 * Damage is never answered with "absent". ERR_FULL: a write or flush found the disk full; logged.
 * What it was to write may be there or not; write it again, and nothing is lost meanwhile that the
 * log has. A write or flush that fails in any other way stops the process; a read that does returns
 * ERR_IO, logged.
 */
#ifndef NODE_STORE_DB_H
#define NODE_STORE_DB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "node/core/shard/shard.h"
#include "runtime/base/log.h"

#define DB_TEXT_BYTES     320u
#define DB_PAGE_ROWS_MAX  65536u
#define DB_PAGE_BYTES_MAX (16u * 1024u * 1024u)

struct db;

struct db_config {
    const char *directory;
    uint64_t cache_bytes;        /* LRU of blocks, index and filter blocks included. */
    uint64_t write_buffer_bytes; /* Each of two. */
    uint64_t rate_bytes_per_s;   /* Flush and compaction; 0: no limit. */
    uint32_t open_files_max;
    uint32_t background_jobs;
    bool direct_io;        /* Flush and compaction, where the file system has O_DIRECT. */
    const struct log *log; /* Outlives the db. */
};
/* 64 MiB cache, 2 x 32 MiB write buffers, 32 MiB/s, 256 files, 2 jobs, direct I/O. */
struct db_config db_config_default(void);

/* ERR_CORRUPT, ERR_IO: as above; `ret_text` says what RocksDB said. */
NODISCARD err db_open(const struct db_config *config, struct db **ret_db,
                      char ret_text[DB_TEXT_BYTES]);
/* Flushes, closes, frees. No other call may be inside. */
void db_close(struct db *db);

/* Writes a shard's dirty rows and its meta row as one batch: after a crash either all or none of
 * them are there, and never without the batches before. Not durable until db_flush. Of two writes
 * of one key the later one holds. */
struct db_checkpoint {
    uint32_t shard;
    const struct state_write *writes;
    uint32_t write_count;
    struct slice meta_row;
};
NODISCARD err db_checkpoint_write(struct db *db, const struct db_checkpoint *checkpoint);

/* While `rests`, files are not merged, which takes disk for a time; reads get slower with it. What
 * is being merged goes on. */
void db_rest(struct db *db, bool rests);

/* Every checkpoint written before the call is durable when it returns ERR_OK. */
NODISCARD err db_flush(struct db *db);

/* Rows with the memory behind them. A zeroed one is valid; deinit leaves it so. */
struct db_rows {
    struct shard_row *rows; /* Keys without the shard. Pointers into `memory`. */
    uint32_t count;
    bool complete; /* db_range: no row follows under the prefix. */
    struct buf memory;
};
void db_rows_deinit(struct db_rows *rows);

/* Point reads: one row per key, in the order of `keys`, `absent` set where there is none.
 * On error *ret_rows is untouched. */
NODISCARD err db_get_many(struct db *db, uint32_t shard, const struct slice *keys, uint32_t count,
                          struct db_rows *ret_rows);

/* The same from memtables and cached blocks alone, so that it may run on a loop: ERR_NEED when a
 * row may be on disk and only db_get_many can tell. */
NODISCARD err db_find_cached(struct db *db, uint32_t shard, const struct slice *keys,
                             uint32_t count, struct db_rows *ret_rows);

/* One page, ascending: at most range->limit rows, DB_PAGE_ROWS_MAX and about DB_PAGE_BYTES_MAX.
 * On error *ret_rows is untouched. */
NODISCARD err db_range(struct db *db, uint32_t shard, const struct state_range *range,
                       struct db_rows *ret_rows);

/* The meta row of the shard's last checkpoint, appended to ret_row; ERR_NOT_FOUND: none yet. */
NODISCARD err db_load_meta(struct db *db, uint32_t shard, struct buf *ret_row);
/* Every row under a prefix, however many (TABLE_TIMER at start). ERR_TOO_LARGE: above rows_max. */
NODISCARD err db_load_prefix(struct db *db, uint32_t shard, struct slice prefix, uint32_t rows_max,
                             struct db_rows *ret_rows);
/* Removes every row of a shard, meta included, as one batch. */
NODISCARD err db_drop_shard(struct db *db, uint32_t shard);

/*
 * Staging: rows of a snapshot, under the generation after the one that counts. No caller may read
 * or write the shard's rows from switch to finish. begin drops what an earlier attempt left, if
 * anything, and needs next to no room; put
 * takes rows as snapshot_rows_next reads them; switch makes them and the meta row the shard's,
 * durably, and notes that the shard's log is to be emptied (db_reset_due); finish, called when that
 * is durable, takes the note away, durably too, and drops the old rows. One attempt a shard at a
 * time.
 */
NODISCARD err db_stage_begin(struct db *db, uint32_t shard);
/* False, too, where that cannot be read. */
bool db_stage_is_empty(struct db *db, uint32_t shard);
NODISCARD err db_stage_put(struct db *db, uint32_t shard, struct slice rows);
NODISCARD err db_stage_switch(struct db *db, uint32_t shard, struct slice meta_row);
NODISCARD err db_stage_finish(struct db *db, uint32_t shard);
bool db_reset_due(const struct db *db, uint32_t shard);

/* A shard's rows as they are now, whatever is written later; the meta row is among them. Compaction
 * keeps what it shows while it is open. Close it before the db. NULL may be closed. */
struct db_view;
struct db_view *db_view_open(struct db *db, uint32_t shard);
void db_view_close(struct db_view *view);
/* Rows above `after`, ascending, about bytes_max of them. On error *ret_rows is untouched. */
NODISCARD err db_view_page(const struct db_view *view, struct slice after, uint32_t bytes_max,
                           struct db_rows *ret_rows);
/* Appended to ret_row; ERR_NOT_FOUND: no checkpoint was written yet. */
NODISCARD err db_view_meta(const struct db_view *view, struct buf *ret_row);

/*
 * Copies every shard of `damaged` (NULL: it cannot be opened) that can be read whole to `to`, which
 * is new, and makes it durable; long. ret_lost[i]: shard i could not be read, or a snapshot was
 * being put in its place; `to` has nothing of it. A shard that has no rows is not lost, unless
 * nothing could be read. ERR_FULL: `to` is of no use.
 */
NODISCARD err db_salvage(struct db *damaged, struct db *to, uint32_t shard_count, bool *ret_lost);

/*
 * The same in small steps, beside all other work: a pass over every row, dropped ones that a merge
 * has still to take away included. begin lets go of the blocks and pages of the files that RocksDB
 * and the system hold in memory, so that the pass reads what the disk has now, or what was read of
 * it after begin; cold reads are slower for a while. Between steps no file is kept from going.
 * Not read: filters, which RocksDB does without when they are damaged, and what each file that is
 * open keeps in memory of its index.
 */
struct db_scrub {
    struct buf next;    /* The key to go on with. */
    uint64_t row_bytes; /* Keys and values that were read. */
    bool complete;      /* Nothing is left to read. */
};
/* Ends early, and the pass is of no use, when *stop becomes true. */
void db_scrub_begin(struct db *db, struct db_scrub *ret_scrub, const atomic_bool *stop);
/* About bytes_max more, less when *stop becomes true. ERR_CORRUPT: see db_damage; ERR_IO: this
 * part cannot be read. Both times the pass is over. */
NODISCARD err db_scrub_step(struct db *db, struct db_scrub *scrub, uint32_t bytes_max,
                            const atomic_bool *stop);
/* A zeroed one is valid; deinit leaves it so. */
void db_scrub_deinit(struct db_scrub *scrub);

/* The first damage found since open; false when there was none. */
bool db_damage(struct db *db, char ret_text[DB_TEXT_BYTES]);

struct db_stats {
    uint64_t memtable_bytes, cache_bytes, table_reader_bytes, live_bytes, files;
    uint64_t checkpoints, checkpoint_rows, checkpoint_bytes, flushes, gets, cached_gets, ranges;
};
void db_stats_get(struct db *db, struct db_stats *ret_stats);
/* One of RocksDB's own figures, such as "rocksdb.is-write-stopped"; 0 if it has none of that name.
 */
uint64_t db_property(struct db *db, const char *name);

#endif
