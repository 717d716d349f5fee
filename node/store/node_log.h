/*
 * node_log: the durable log of a node: one set of pre-written segment files for all its shards,
 * one writer thread, one fdatasync per batch (DESIGN sections 4 and 8). It stores what rep.h
 * tells it to and finds it again; it knows nothing of epochs, votes or what entries mean.
 *
 * One request's way: worker: node_log_submit_list -> writer: gather, pwrite, fdatasync -> client's
 * `done`, on the writer's thread, once per fdatasync -> worker: REP_PERSISTED(ticket).
 *
 * The bytes on disk are described in log_format.h. An error of write or fdatasync stops the
 * process; it is never retried. Damage is reported, never skipped: see node_log_damage.
 */
#ifndef NODE_STORE_NODE_LOG_H
#define NODE_STORE_NODE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "node/core/replication/rep.h"
#include "runtime/base/log.h"

#define NODE_LOG_TEXT_BYTES 320u

struct node_log;

struct node_log_config {
    const char *directory;      /* Exists. Nothing but the log's files may be in it. */
    uint64_t replica_id;        /* Folded into every checksum: another replica's file is damage. */
    uint32_t shard_count;       /* 1 to 4096; fixed for the life of the directory. */
    uint32_t segment_bytes;     /* Multiple of 4096, at least 4 MiB. */
    uint64_t bytes_max;         /* All segments together; at least 3 of them. */
    uint32_t spare_segments;    /* Kept ready ahead of the writer; 1 to 16. */
    uint32_t batch_records_max; /* Per write. */
    uint32_t batch_bytes_max;   /* Per write; a single larger record still goes. */
    bool direct_io;             /* O_DIRECT, where the file system has it. */
    const struct log *log;      /* Events; outlives the node_log. */
    /* What the database has of each shard: the scan keeps the entries above it in memory for
     * node_log_recover. Only for the time of node_log_open. NULL: keep none. */
    const uint64_t *applied_indexes;
    /* By shard: what the database had of it is lost, so it is damaged, like one whose log is, if
     * the log knows it at all. Durable when node_log_open returns. NULL: of none. */
    const bool *lost;
};
/* 64 MiB segments, 4 GiB in all, 2 spare, batches of 256 records or 1 MiB, O_DIRECT. */
struct node_log_config node_log_config_default(void);

/*
 * Opens or creates the log, scans it, rewrites and syncs what is not known to be durable at its
 * tail, and starts the writer. Returns when a first spare segment is ready. A torn tail is cut off;
 * damage does not fail the call (see node_log_damage), so that the node can serve its other shards.
 * ERR_INVALID: config. ERR_IO: the directory cannot be read or written. Both are logged. ERR_FULL:
 * there is no room to say which shards are `lost`.
 */
NODISCARD err node_log_open(const struct node_log_config *config, struct node_log **ret_log);
/* Writes what was submitted, completes it, stops the threads, frees. No reader may be inside. */
void node_log_close(struct node_log *log);

/* ---- writing ------------------------------------------------------------------------------ */

enum node_log_request_type {
    NODE_LOG_WRITES, /* `writes` in order.                                                    */
    NODE_LOG_COMMIT, /* `commit_index` is known committed: replay may go that far.            */
    NODE_LOG_RESET   /* Forget the shard's entries and its damage, keep its promise: the shard
                        is filled from a peer. Entries that no record names as committed go to
                        the audit file.                                                       */
};

/* Memory of the caller, untouched by it from submit until `done`. Entries in `writes` are lent:
 * the log takes and drops no references. */
struct node_log_request {
    struct node_log_request *next; /* The log's, then the list given to `done`. */
    struct node_log_client *client;
    enum node_log_request_type type;
    uint32_t shard;
    uint64_t ticket; /* The caller's; not looked at. */
    const struct rep_write *writes;
    uint32_t write_count;
    uint64_t commit_index;
};

/* One per worker. `done` is called on the writer's thread once per fdatasync, with every request
 * of this client that became durable, in the order submitted. It must hand the list over to the
 * worker without blocking (mailbox_push) and not call the log. */
struct node_log_client {
    void (*done)(struct node_log_client *client, struct node_log_request *first);
    void *user;
    struct node_log_request *first; /* The log's. */
    struct node_log_request *last;
    struct node_log_client *next;
};

/* Any thread; never blocks. Requests of one thread become durable in the order submitted. The
 * caller bounds what is in flight (rep_limits.inflight_entries_max). Waits in the log while there
 * is no space (node_log_space_ok), then goes on: never lost, never failed. They are linked by
 * `next` from the newest to the oldest: the writer wakes to all of them and makes them one batch.
 */
void node_log_submit_list(struct node_log *log, struct node_log_request *newest,
                          struct node_log_request *oldest);

/* Entries of the shard at or below `cut_index` are dead: covered by a finished db_flush and not
 * needed by any member. Segments without live records are used again. Any thread. */
void node_log_retain(struct node_log *log, uint32_t shard, uint64_t cut_index);

/* False when no segment is ready beyond the one being written: the disk or `bytes_max` is full.
 * There is still room then for what is in flight; accept no new writes, checkpoint, retain. */
bool node_log_space_ok(struct node_log *log);

/* ---- reading ------------------------------------------------------------------------------ */

/*
 * Reads entries [from, to] of a shard for a peer that is behind, at most `bytes_max` but at least
 * one. Blocks on the disk: reader threads only. Entries are new ones with one reference each, the
 * caller's; the array of *ret_count pointers is the caller's to free().
 * ERR_NOT_FOUND: `from` is not in the log (never was, cut, or truncated).
 * ERR_CORRUPT: the bytes changed on disk; the shard is marked damaged.
 */
struct node_log_range {
    uint32_t shard;
    uint64_t from_index;
    uint64_t to_index; /* Inclusive; clipped to what the log has. */
    uint32_t bytes_max;
};
NODISCARD err node_log_read(struct node_log *log, const struct node_log_range *range,
                            struct entry ***ret_entries, uint32_t *ret_count);

/* ---- scrubbing ---------------------------------------------------------------------------- */

/*
 * A pass over the segments that the writer is done with, in small steps, beside all other work.
 * Looks at every byte that the next start's scan will look at, and calls damage what that would.
 * Zeroed: before its beginning. What is cut or used again meanwhile is passed over.
 */
struct node_log_scrub {
    uint32_t segment;           /* The one being read; 0: none yet. */
    uint32_t offset;            /* In it: the next batch, or what stands behind the last one. */
    uint64_t last_sequence;     /* Of the batch before; 0: not known. */
    uint64_t accepted_sequence; /* What the next batch may name instead of it; 0: nothing. */
    uint64_t read_bytes;
    bool complete; /* Nothing is left to read. */
};
/* About bytes_max more, but a whole batch at least. Blocks on the disk. ERR_CORRUPT: there is
 * damage that was not known; the shards are marked, *ret_shard is one of them (node_log_damage says
 * more). The pass may go on. */
NODISCARD err node_log_scrub_step(struct node_log *log, struct node_log_scrub *scrub,
                                  uint32_t bytes_max, uint32_t *ret_shard);

/* ---- recovery ----------------------------------------------------------------------------- */

/* What the log knows of a shard. Zero for a shard it never saw. */
struct node_log_shard {
    struct promise promise;
    bool dropped;          /* See rep_image. */
    bool differs;          /* Likewise. */
    uint64_t first_index;  /* Oldest entry held, last_index + 1 when none is. */
    uint64_t last_index;   /* 0 when the log never held an entry. */
    uint64_t commit_index; /* Greatest one any record named. */
    bool damaged;
};
void node_log_shard_get(struct node_log *log, uint32_t shard, struct node_log_shard *ret_shard);

/* One shard to recover. */
struct node_log_recovery {
    uint32_t shard;
    uint64_t applied_index;  /* What the database has. */
    struct rep_image *image; /* Filled. */
    err result;
};

/*
 * Fills from the log what each rep_image needs of it: promise, commit_index, log_first_index,
 * entries above `applied_index` (read now, chain verified), entry_count. Leaves the other fields
 * alone. Free with node_log_image_deinit, after rep_new or shard_new took its references.
 * What the scan kept is not read again. Shards stand mixed in the log: the rest is read once, in
 * its own order, for all shards of the list. A result of ERR_CORRUPT: the shard is damaged
 * (node_log_damage says how). The image is filled with what is left, for repair; it must not be
 * served, vote, or claim that an entry is absent.
 */
void node_log_recover(struct node_log *log, struct node_log_recovery *list, uint32_t count);
/* The same for one shard; returns its result. */
NODISCARD err node_log_recover_shard(struct node_log *log, uint32_t shard, uint64_t applied_index,
                                     struct rep_image *image);
void node_log_image_deinit(struct rep_image *image);

/* Whether the shard is damaged, and if so where: file, offset, shard, what was found. */
bool node_log_damage(struct node_log *log, uint32_t shard, char ret_text[NODE_LOG_TEXT_BYTES]);

struct node_log_stats {
    uint64_t records, entries, batches, syncs, written_bytes, sync_ns, sync_ns_max;
    uint64_t segments, spare_segments, log_bytes, bytes_max;
    uint64_t recycled, orphans, torn_batches, damaged_shards, space_waits;
    uint32_t pinning_shard; /* Its entries keep the oldest segment; UINT32_MAX: none. */
    uint64_t pinned_bytes;  /* In segments that only the oldest live record keeps. */
    bool direct_io;
};
void node_log_stats_get(struct node_log *log, struct node_log_stats *ret_stats);

#endif
