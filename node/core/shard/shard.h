/*
 * shard: one shard at one replica: replication (rep.h) under the state machine (apply.h), with
 * the callers who wait. Pure: the shell (node/io in production, tests/sim in the simulator)
 * gives it events and carries out its actions. DESIGN sections 4 to 6, 8, 13.
 *
 * One request's way: MUTATE -> prepared, proposed -> FLUSH -> WRITE and SEND -> PERSISTED and
 * acknowledgements -> committed -> applied (NEED_ROWS when cold) -> REPLY.
 */
#ifndef NODE_CORE_SHARD_SHARD_H
#define NODE_CORE_SHARD_SHARD_H

#include "node/core/apply/apply.h"
#include "node/core/replication/rep.h"
#include "node/core/shard/incident.h"
#include "node/core/shard/shard_erasure.h"
#include "node/core/shard/shard_snapshot.h"
#include "runtime/base/budget.h"

/* clang-format off */
/*    field                  unit default     min   max      meaning                            */
#define SHARD_LIMITS(X)                                                                            \
    X(waiting_calls_max, 65536, 1, 1048576, "calls not answered yet")                              \
    X(waiters_per_player_max, 16, 1, 1024, "StartSession WAITs of one player")                     \
    X(reads_ahead_max, 4096, 1, 65536, "reads that wait for a version that is not here yet")       \
    X(reads_waiting_max, 256, 1, 65536, "reads that wait until no transaction holds their player")  \
    X(writes_waiting_max, 1024, 1, 65536, "writes that wait until reads of their players are done") \
    X(read_hold_ms, 200, 1, 10000, "a write waits for reads of its players, at most")               \
    X(apply_batch_max, 1024, 1, 65536, "entries applied in one step")                              \
    X(answers_round_bytes, 1048576, 1, 67108864, "answers to reads between two flushes, about")    \
    X(watermark_tell_ms, 5000, 1, 60000, "a watermark that no batch takes along leaves after")     \
    X(settle_wait_ms, 50, 0, 5000, "decisions that no caller waits for are logged together after")     \
    X(erasure_rows_max, 128, 1, 256, "edges and additions that one entry erases, or brings back")    \
    X(snapshot_part_bytes, 262144, 256, 1048576, "rows in one part of a snapshot, about")          \
    X(snapshot_bytes_per_s, 16777216, 1024, 1073741824, "given to a replica that is behind")       \
    X(snapshot_idle_ms, 10000, 100, 3600000, "one that is not pulled, or answered, is given up")     \
    X(snapshot_hold_ms, 30000, 100, 3600000, "the log keeps what follows a snapshot for so long")
/* clang-format on */

#define SHARD_FIELD(name, def, min, max, doc) uint32_t name;
struct shard_limits {
    SHARD_LIMITS(SHARD_FIELD)
    uint32_t shard_count; /* Of the cluster, for ever the same; 0: nothing is sent to others. */
    uint32_t apply_version_max; /* What this program applies: APPLY_VERSION, but in tests. */
    struct rep_limits rep;
};
#undef SHARD_FIELD
struct shard_limits shard_limits_default(void);

enum shard_event_type {
    SHARD_RECORD,    /* record                     */
    SHARD_RECEIVE,   /* from, message              */
    SHARD_PERSISTED, /* ticket                     */
    SHARD_LOG_READ,  /* index (its from_index), entries, entry_count (0: the log no longer has them)
                      */
    SHARD_ROWS,      /* load_generation, rows, row_count, range (or NULL), complete */
    SHARD_CALL,      /* call, method, request, deadline_ms: any METHOD_MUTATION, _READ, _SHARD,
                        _SHARD_WRITE                */
    SHARD_CANCEL,    /* call: its caller has gone   */
    SHARD_FLUSH,     /* the round ends              */
    SHARD_TICK,      /* every 10 to 50 ms           */
    SHARD_DELIVERED, /* call: a delivery's token; status, request: its answer's body */
    SHARD_SNAPSHOT_PAGE,   /* failed, or rows, row_count, complete; request: a fresh view's meta
                              row  */
    SHARD_SNAPSHOT_STORED, /* failed            */
    SHARD_SNAPSHOT_DROPPED /* failed            */
};

enum reply_status {
    REPLY_OK,        /* body: the response                                                  */
    REPLY_REFUSED,   /* body: Refusal                                                       */
    REPLY_NOT_OWNER, /* not carried out; `owner` and `epoch` say whom to ask, 0 if unknown  */
    REPLY_UNKNOWN    /* OUTCOME_UNKNOWN: proposed, then deposed or timed out; repeat it     */
};

/* value.data NULL: absent. */
struct shard_row {
    struct slice key;
    struct slice value;
    bool absent;
};

struct shard_event {
    enum shard_event_type type;
    uint64_t now_ms;  /* Monotonic. */
    uint64_t unix_ms; /* Wall clock. */
    const struct rep_record *record;
    uint64_t from;
    const struct rep_message *message;
    uint64_t ticket;
    uint64_t index;
    struct entry **entries;
    uint32_t entry_count;
    uint64_t load_generation;
    const struct shard_row *rows;
    uint32_t row_count;
    const struct state_range *range;
    bool complete;
    uint64_t call; /* The shell's name for the call; given back in REPLY. Never 0. */
    uint32_t method;
    struct slice request;
    uint64_t deadline_ms; /* On the event clock. */
    int64_t pulled_ms;    /* Of a SHARD_TICK: puller_pulled_ms (node/core/top). */
    bool stale;           /* A read that need not be confirmed. */
    bool failed;
    enum reply_status status;
};

/* Body is in out->bytes at [offset, offset + size). */
struct shard_reply {
    uint64_t call;
    enum reply_status status;
    uint32_t offset;
    uint32_t size;
    uint32_t held; /* Of shard_image.answers: the shell gives it back once the body has left. */
    uint64_t owner;
    uint64_t epoch;
};

/*
 * A batch for another shard (DESIGN section 7): CHANNEL_DELIVER to its present owner.
 * The shell answers each with SHARD_DELIVERED and the token, soon: whatever was not carried out or
 * is not known is sent again. The request is in out->bytes at [offset, offset + size).
 */
struct shard_delivery {
    uint64_t token;
    uint32_t destination;
    uint32_t offset;
    uint32_t size;
};

/* Actions of one step. The shell carries out `rep` (sends, writes, log_reads), then replies,
 * then loads `need`, then clears. A zeroed one is valid. */
struct shard_out {
    struct rep_out rep;
    struct shard_reply *replies;
    uint32_t reply_count, reply_capacity;
    struct shard_delivery *deliveries;
    uint32_t delivery_count, delivery_capacity;
    struct buf bytes;
    struct need need; /* Rows to load; answer with SHARD_ROWS. */
    struct snapshot_actions snapshot;
    struct incident *incidents; /* What operators may ask about; INCIDENTS_STEP_MAX at most. */
    uint32_t incident_count, incident_capacity;
    struct shard_erasure *erasures; /* That changed; before the replies. */
    uint32_t erasure_count, erasure_capacity;
    bool role_changed; /* shard_role and shard_owner may differ now. */
    bool unreadable;   /* A row or an entry was met that cannot be read; the shard goes on. */
};

struct shard;

/* What recovery found: the log's image, and from the database the meta row (empty: a new shard)
 * and every TABLE_TIMER row. */
struct shard_image {
    uint32_t number; /* The shard's. */
    struct rep_image rep;
    uint64_t halt_index; /* Entries from here on are not applied, and `rep` is quarantined; 0: all
                            are. */
    struct slice meta_row;
    const struct shard_row *timers;
    uint32_t timer_count;
    struct snapshot_stats snapshot; /* Of the shard whose place it takes. */
    struct arena_pool *arenas;      /* Borrowed for the shard's life; NULL: memory of its own. */
    /* Borrowed likewise. Every reply's bytes are held in it from before they are packed into `out`:
     * a read whose answer has no room is refused as THROTTLED; the outcome of a write never is, but
     * a StartSession waits with its profile. NULL: answers are not counted. */
    struct budget *answers;
};

/* ERR_CORRUPT: the meta row or an entry contradicts the image. ERR_TOO_NEW: they are of an apply
 * version that this program does not know. */
NODISCARD err shard_new(uint64_t self, const struct shard_limits *limits,
                        const struct handler_table *handlers, const struct shard_image *image,
                        struct shard **ret_shard);
void shard_free(struct shard *shard);

/* The entry that is being applied by the step under way; 0: none is. For a process that is about to
 * end. */
uint64_t shard_applying_index(const struct shard *shard);

/* Advances by one event; appends to `out`. Never fails: what is wrong is answered in a reply. */
void shard_step(struct shard *shard, const struct shard_event *event, struct shard_out *out);
void shard_out_clear(struct shard_out *out);
void shard_out_deinit(struct shard_out *out);

/* Checkpoint (DESIGN section 8): rows and meta as of one applied index, to be written in one
 * batch once rep_durable_index has reached that index. False when one is open or nothing changed
 * since the last. */
struct shard_checkpoint {
    uint64_t index;
    const struct state_write *writes; /* Valid until shard_checkpoint_end. */
    uint32_t write_count;
    struct buf meta_row; /* The caller's to deinit. */
};
bool shard_checkpoint_begin(struct shard *shard, struct shard_checkpoint *ret_checkpoint);
void shard_checkpoint_end(struct shard *shard, bool written);
/* The log must keep what is above this index for a replica that has or gets a snapshot;
 * UINT64_MAX: none does. */
uint64_t shard_snapshot_pin(const struct shard *shard, uint64_t now_ms);
/* Backups (docs/backup.md): from here on the shard stops before the entry that first takes a cut at
 * or above `cut`, until it is told to pass. 0: it does not. */
void shard_arm(struct shard *shard, uint64_t cut);
/* It stands there: a checkpoint begun now shows the shard as of the cut. */
bool shard_at_cut(const struct shard *shard);
/* Goes on with the next step, and is armed no more. */
void shard_pass_cut(struct shard *shard);
/*
 * While its disk is full a replica proposes nothing (DESIGN section 4, Disks): callers' writes are
 * refused as THROTTLED, "nothing was done", and `why` is told to them; what is on its way goes on,
 * reads are answered, START is appended. NULL: there is room again.
 */
#define SHARD_FULL_BYTES 192u
void shard_set_full(struct shard *shard, const char *why);
/* Drops clean rows down to `bytes_max`. */
void shard_evict(struct shard *shard, size_t bytes_max);

uint32_t shard_number(const struct shard *shard);
const struct rep *shard_rep(const struct shard *shard);
const struct meta *shard_meta(const struct shard *shard);
uint64_t shard_applied_index(const struct shard *shard);
/* Owner and serving. */
bool shard_serves(const struct shard *shard);
/* Serves every call. Without its first policy a shard knows no currency and no limit, and sends
 * away all that would change something. */
bool shard_is_open(const struct shard *shard);
/* What rep_image.resumes must be in the shard that takes the place of this one. */
bool shard_resumes(const struct shard *shard);
/* True when SHARD_FLUSH has something to do. */
bool shard_wants_flush(const struct shard *shard);

/* Walks all that the shard keeps, rows too: CHECKs that it fits together. For tests and the
 * simulator, between steps. */
void shard_check(const struct shard *shard);

struct shard_stats {
    uint64_t proposed, committed, applied, refused, duplicates, reads, rounds;
    uint64_t promotions, truncated_entries, need_rounds, waiting_calls, waiters;
    uint64_t stale_writes_refused, steals, diverged;
    uint64_t rates_refused;     /* Operations refused because a player passed a rate rule. */
    uint64_t rows_unreadable;   /* Times that apply or a read met a row that cannot be read. */
    uint64_t entries_unapplied; /* Entries of the log that this program could not make sense of. */
    uint64_t unread_rows;       /* Changes of rows that could not be decoded (meta.h). */
    uint64_t quarantined;       /* Players held back. */
    uint64_t refused_full;      /* Writes refused because the disk is full. */
    uint64_t transfers_open;    /* Records in the outbox. */
    uint64_t transfers_oldest_ms; /* Since the oldest of them that is known was opened. */
    uint64_t transfers_sent, transfers_settled, transfers_refunded, transfers_retried;
    uint64_t read_runs;                     /* Times that a read looked at its rows. */
    uint64_t reads_aged;                    /* Reads with a greatest age that needed no round. */
    uint64_t reads_waiting, writes_waiting; /* Now: for a transaction's end, for reads' end. */
    uint64_t reads_waited;                  /* Times that a read met a transaction, and waited. */
    uint64_t reads_timed_out;               /* Of those: until shortly before its deadline. */
    uint64_t reads_turned_away;             /* Too many waited already. */
    uint64_t writes_yielded;                /* Writes that waited for reads. */
    uint64_t prepares_later;  /* Parts of transactions that were sent again for that. */
    uint64_t read_holds;      /* Times that a read made writes of a player wait, */
    uint64_t read_held_ms;    /* and for how long, added up. */
    uint64_t oldest_write_ms; /* Since the oldest of the writes that wait came in. */
    struct snapshot_stats snapshot;
    struct state_stats state;
};
void shard_stats_get(const struct shard *shard, struct shard_stats *ret_stats);
/* One of them, at the price of one. */
uint64_t shard_reads_turned_away(const struct shard *shard);

#endif
