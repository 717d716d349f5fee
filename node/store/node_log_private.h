/*
 * node_log_private: what the parts of node_log share. Which thread may touch what is said at each
 * field; locks are taken in the order shard, then segments.
 */
#ifndef NODE_STORE_NODE_LOG_PRIVATE_H
#define NODE_STORE_NODE_LOG_PRIVATE_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "node/store/log_audit.h"
#include "node/store/log_format.h"
#include "node/store/log_index.h"
#include "node/store/log_kept.h"
#include "node/store/log_segment.h"
#include "node/store/node_log.h"

/* Between two syncs at most this much is written. */
#define LOG_ROUND_BYTES_MAX (8u * 1024u * 1024u)

struct log_shard {
    pthread_mutex_t lock; /* Of everything here. */
    struct log_index index;
    struct log_kept kept; /* From the scan to recovery. */
    uint64_t last_index;
    uint64_t commit_index;
    uint64_t cut_index;
    struct promise promise;
    bool dropped;            /* With the promise: rep_image.dropped. */
    bool differs;            /* Likewise: rep_image.differs. */
    uint32_t sticky_segment; /* Holds its newest PROMISE record; 0: the shard was never seen. */
    struct log_place reset;  /* Where it was last emptied; what stands before it is of no use. */
    bool damaged;
    bool damage_unwritten; /* A PROMISE record must say so, lest recycling forgets it. */
    bool damage_writing;   /* One that says so is on its way. */
    char *damage_text;
};

/* Records on their way into one batch. Payloads are borrowed; those of promises are kept here. */
struct log_batch {
    struct record *records;
    uint8_t (*promises)[PROMISE_BYTES];
    uint32_t capacity;
    uint32_t count;
    size_t payload_bytes;
};

struct log_requests {
    struct node_log_request *first, *last;
};

/* Only the writer's thread, after open. */
struct log_writer {
    struct log_segment *active;
    uint32_t offset; /* In it: where the next batch goes. */
    uint32_t reserve_bytes;
    uint64_t last_sequence;
    uint64_t durable_sequence;
    uint64_t sequence_floor; /* The next sequence is above this too. */
    uint32_t round_bytes;    /* Written, not synced. */
    bool short_of_space;     /* Something pending waits for disk. */
    uint8_t *buffer;
    size_t buffer_bytes;
    struct log_requests pending;  /* Not gathered, or not whole. */
    uint32_t pending_at;          /* Writes of the first one gathered. */
    struct log_requests gathered; /* Their last records are in `batch`. */
    struct log_requests written;  /* Wait for the sync. */
    struct log_batch batch;
    struct log_batch sticky;
    struct log_audit audit;
};

/* Where the log ends, as the scan found it. */
struct log_tail {
    struct log_segment *segment; /* NULL: there is no segment at all. */
    uint32_t offset;
    uint32_t durable_offset; /* In the segment: what stands before it was synced once. */
    uint64_t last_sequence;
    uint64_t sequence_max; /* Greatest one seen anywhere, torn ones included. */
    bool torn;             /* Something torn stands behind the end. */
};

struct node_log {
    struct node_log_config config;
    struct log_segments segments;
    struct log_shard *shards;
    struct log_writer writer;
    pthread_t thread;
    bool started;
    sem_t wake;
    _Atomic(struct node_log_request *) inbox; /* Newest first. */
    atomic_bool closing;
    atomic_bool retain_changed; /* A cut index rose: some segment may be dead. */
    atomic_bool damage_found;   /* Some shard has damage_unwritten. */
    pthread_mutex_t stats_lock;
    struct node_log_stats stats; /* Counters only. */
};

/* log_open.c: opens and scans, and changes nothing: for checking a log offline. Only reading and
 * recovery functions may be called on it. config->segment_bytes may be any multiple of 4096. */
NODISCARD err node_log_inspect(const struct node_log_config *config, struct node_log **ret_log,
                               struct log_tail *ret_tail);

/* log_shard.c */
void log_shards_init(struct node_log *log);
void log_shards_deinit(struct node_log *log);
/* Takes in a record that stands at `place`: by the scan, and by the writer once it is written. */
void log_shard_record(struct node_log *log, const struct record *record, struct log_place place);
/* Keeps an entry for recovery, which the scan has just taken in. Takes over the reference. */
void log_shard_keep(struct node_log *log, uint32_t number, struct entry *entry);
/* Marks a shard damaged and logs it; the first text stays. */
void log_shard_damage(struct node_log *log, uint32_t shard, const char *text);
/* Whether what stands at `place`, of this shard if of any, is damage that was not known: the shard
 * was not emptied behind it. */
bool log_shard_is_hit(struct node_log *log, uint32_t shard, struct log_place place);
/* The segment that the shard's oldest live entry is in; UINT32_MAX when it has none. */
uint32_t log_shard_oldest_segment(struct log_shard *shard);
/* A PROMISE record with all that must outlive a segment. */
struct record log_shard_sticky(struct node_log *log, uint32_t number, uint8_t flags,
                               uint8_t payload[PROMISE_BYTES]);

/* log_scan.c: fills shards from the segments; says where the log ends. ERR_IO: logged. */
NODISCARD err log_scan(struct node_log *log, struct log_tail *ret_tail);

/* log_writer.c */
void log_writer_init(struct node_log *log, const struct log_tail *tail);
void log_writer_deinit(struct node_log *log);
void *log_writer_run(void *context);

/* log_batch.c: records into batches, batches into segments. */
void log_batch_init(struct log_batch *batch, uint32_t records_max);
void log_batch_deinit(struct log_batch *batch);
/* True when a record with such a payload still fits; an empty batch takes any. */
bool log_batch_fits(const struct log_batch *batch, size_t payload_bytes, uint32_t bytes_max);
void log_batch_add(struct log_batch *batch, const struct record *record);
/* Where the payload of the next record to be added may be kept. */
uint8_t *log_batch_promise(struct log_batch *batch);
enum log_room {
    LOG_ROOM_USUAL, /* Leaves what sticky records need, unless another segment is ready. */
    LOG_ROOM_ALL
};
/* Writes the batch, even an empty one, and empties it. False: no segment has room; nothing was
 * done. */
bool log_batch_write(struct node_log *log, struct log_batch *batch, enum log_room room);
/* Syncs what was written since the last time. */
void log_batch_sync(struct node_log *log);

/* log_recycle.c: on the writer's thread, when nothing gathered waits to be taken in. */
/* Writes PROMISE records for damage found since. */
bool log_damage_write(struct node_log *log);
/* Frees the oldest segments that hold nothing live, after copying promises forward. True when
 * anything was freed. */
bool log_recycle(struct node_log *log);

/* log_read.c */
struct log_want {
    uint32_t shard;
    uint64_t index;
    struct log_place place;
};
/* Reads the records of `wants`, in order, as entries; ret_entries[i] is NULL where one could not
 * be read. ERR_CORRUPT or ERR_NOT_FOUND (segment gone): the first such; ret_text names it. */
NODISCARD err log_read_wants(struct node_log *log, const struct log_want *wants, uint32_t count,
                             struct entry **ret_entries, char ret_text[NODE_LOG_TEXT_BYTES]);
/* Says of a want that it cannot be read, and where it should be. */
void log_want_text(const struct node_log *log, const struct log_want *want,
                   char ret_text[NODE_LOG_TEXT_BYTES]);

#endif
