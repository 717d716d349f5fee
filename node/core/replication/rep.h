/*
 * rep: replicates one shard's log at one replica. Pure: it decides, its shell sends, writes and
 * reads. Vertical Paxos with etcd's ownership record as configuration master, in version-vector
 * notation (DESIGN section 4; Lamport, Malkhi, Zhou, "Vertical Paxos", 2009).
 *
 * rep knows nothing of what entries mean: shard.h applies what rep says is committed.
 */
#ifndef NODE_CORE_REPLICATION_REP_H
#define NODE_CORE_REPLICATION_REP_H

#include <stdbool.h>
#include <stdint.h>

#include "node/core/entry/entry.h"
#include "node/core/entry/start.h"
#include "node/core/entry/vector.h"
#include "node/core/replication/rep_message.h"

/* clang-format off */
/*    field                  unit default     min   max      meaning                            */
#define REP_LIMITS(X)                                                                            \
    X(heartbeat_ms,                150,        10,   5000, "owner says that it lives")           \
    X(retry_ms,                    300,        20,  10000, "SEAL, FETCH and APPEND are repeated") \
    X(append_entries_max,          256,         1,   4096, "entries in one APPEND")              \
    X(append_bytes_max,         524288,      4096, 4194304, "bytes in one APPEND")               \
    X(inflight_entries_max,       8192,         1, 1048576, "proposed, not committed")           \
    X(inflight_bytes_max,     67108864,      4096, 1073741824, "proposed, not committed")        \
    X(recent_bytes_max,         262144,      4096, 67108864, "applied, but a member lacks them") \
    X(lag_ms_max,               120000,        10, 86400000, "a member silent for longer holds no log") \
    X(raise_after_ms,           600000,        10, 86400000, "every member applies a later version") \
    X(clock_ahead_ms_max,         2000,        10,  60000, "what moves the time further is refused")
/* clang-format on */

#define REP_FIELD(name, def, min, max, doc) uint32_t name;
struct rep_limits {
    REP_LIMITS(REP_FIELD)
};
#undef REP_FIELD
struct rep_limits rep_limits_default(void);

/* A durable vote: no entry and no seal of a lower (config, epoch) is accepted after it. */
struct promise {
    uint64_t config;
    uint64_t epoch;
    uint64_t owner; /* 0: none; this replica was removed (a tombstone). */
};

/* The ownership record as etcd has it (/shards/<n>). */
struct rep_record {
    uint64_t generation;
    uint64_t epoch;
    uint64_t owner;
    struct membership membership;
    /* None that was written before this process began is newer: nothing that an earlier life of
     * this replica promised came from a later one, and what a damaged log forgot, this one covers.
     */
    bool confirmed;
};

/* What recovery found in log and database. Entries run from applied_index + 1 to the end, and
 * have been made durable again (DESIGN section 4, Damage). */
struct rep_image {
    bool votes;       /* False: wiped or learning; its word counts for nothing. */
    bool damaged;     /* REP_DAMAGED: accepts entries, votes and serves nothing. */
    bool quarantined; /* It cannot apply its log: it stores and votes, and never owns the shard. */
    /* A majority found its outcomes wrong, in this life or an earlier one: quarantined, too, and no
     * source of rows. Durable with the promise, until rows of another replica take their place. */
    bool differs;
    /* It was REP_SEALING or REP_ADOPTING under this promise when a snapshot took its place, so it
     * made no START of that epoch and may go on. False after a crash, which knows no better. */
    bool resumes;
    /* It was removed and dropped all that it held, and does not hold all again that was committed:
     * what it lacks proves nothing, so it gives no promise to an owner that seals. */
    bool dropped;
    struct promise promise;
    uint64_t applied_index;       /* Included in the database. */
    struct hash128 applied_hash;  /* Hash of that entry. */
    uint64_t applied_ms;          /* owner_ms of that entry. */
    uint64_t commit_index;        /* Known committed; replay stops here. */
    uint64_t log_first_index;     /* Oldest entry the log still holds. */
    struct vector vector;         /* Up to applied_index. */
    struct membership membership; /* In force at applied_index. */
    uint64_t generation;          /* Of the START in force at applied_index; 0: none. */
    uint32_t apply_version;       /* Likewise; at least 1. */
    uint32_t apply_version_max;   /* The greatest that this program can apply. */
    /* A START of this program says at least this, whatever members told: those whose program
     * applies less take no entries from then on. 0: there are no such programs. */
    uint32_t apply_version_floor;
    struct entry **entries; /* Borrowed; rep takes references. */
    uint32_t entry_count;
};

enum rep_role {
    REP_FOLLOWER, /* Stores what the owner sends.                                */
    REP_SEALING,  /* Named in the record; collecting promises.                   */
    REP_ADOPTING, /* Fetching the log with the greatest last dot.                */
    REP_STARTING, /* START appended, not yet committed.                          */
    REP_OWNER,    /* START committed: serves.                                    */
    REP_DAMAGED   /* Lost part of its log: may not vote or claim absence.        */
};

enum rep_event_type {
    REP_RECORD,    /* record                 the ownership record changed or was read again */
    REP_RECEIVE,   /* from, message          borrowed until the step returns                */
    REP_PERSISTED, /* ticket                 writes up to it are durable                    */
    REP_LOG_READ,  /* index (its from_index), entries, entry_count: answer to a log_read;
                      borrowed; without gaps; may be fewer (stop near append_bytes_max);
                      none: the log no longer holds them                                    */
    REP_PROPOSE,   /* kind, body             owner only                                    */
    REP_FLUSH,     /*                        end of a round: send and write what gathered;
                      also begins the confirmation round that reads wait for                */
    REP_READ,      /*                        join a confirmation round; ret in out          */
    REP_APPLIED,   /* index, outcome         shard.h applied up to index; step it for every
                      index, or outcomes are compared more rarely                           */
    REP_TICK       /*                        at least every 10 ms of virtual or real time   */
};

struct rep_event {
    enum rep_event_type type;
    uint64_t now_ms;  /* Monotonic. */
    uint64_t unix_ms; /* Wall clock, for owner_ms. */
    const struct rep_record *record;
    uint64_t from;
    const struct rep_message *message;
    uint64_t ticket;
    struct entry **entries;
    uint32_t entry_count;
    enum entry_kind kind;
    struct slice body;
    uint64_t index;
    struct hash128 outcome; /* Running hash of outcomes at `index`. */
};

enum rep_write_type { REP_WRITE_ENTRY, REP_WRITE_PROMISE, REP_WRITE_TRUNCATE };

/* Made durable in order. All writes of one step share a ticket; tickets rise by shard. */
struct rep_write {
    enum rep_write_type type;
    uint64_t ticket;
    struct entry *entry;    /* ENTRY: a reference, the receiver's to drop. */
    uint64_t commit_index;  /* ENTRY: known committed when written, for replay. */
    struct promise promise; /* PROMISE */
    bool dropped;           /* PROMISE: see rep_image. */
    bool differs;           /* PROMISE: likewise. */
    uint64_t keep_index;    /* TRUNCATE: entries above it are orphans: audit, then drop. */
};

/* `message.entries` hold references, the receiver's to drop (rep_out_clear does). */
struct rep_send {
    uint64_t to;
    struct rep_message message;
};

struct rep_log_read {
    uint64_t from_index;
    uint64_t to_index; /* Inclusive. */
};

/* Filled by a step; grown as needed; emptied by rep_out_clear. A zeroed one is valid. */
struct rep_out {
    struct rep_send *sends;
    uint32_t send_count, send_capacity;
    struct rep_write *writes;
    uint32_t write_count, write_capacity;
    struct rep_log_read *log_reads;
    uint32_t log_read_count, log_read_capacity;
    uint64_t proposed_index; /* REP_PROPOSE: where the entry stands. */
    struct dot proposed_dot;
    uint64_t read_round;   /* REP_READ: the round that was joined. */
    uint64_t rounds_done;  /* Every round up to this one is confirmed; 0: none this step. */
    uint64_t rounds_index; /* ... and may be answered once this index is applied. */
    uint64_t rounds_ms, rounds_unix_ms; /* ... and the last of them began then. */
    bool committed;                     /* rep_commit_index rose. */
    bool role_changed;
    bool too_new;  /* The owner's log is of an apply version above ours: this process must end. */
    bool diverged; /* A peer's outcome hash differs at the same index. */
    bool quarantined;  /* ... and a majority says that it is ours that is wrong. */
    bool rows_wanting; /* rep_wants_rows from this step on. */
    /* Entries of a deposed owner that were truncated, the last first; REP_ORPHANS_MAX at most. */
    struct entry **orphans;
    uint32_t orphan_count, orphan_capacity;
};
#define REP_ORPHANS_MAX 256u

struct rep;

/* Never NULL. Takes references on image->entries. */
struct rep *rep_new(uint32_t shard, uint64_t self, const struct rep_limits *limits,
                    const struct rep_image *image);
void rep_free(struct rep *rep);

/*
 * Advances by one event. `out` is appended to, never cleared.
 *
 * Reads that wait for a round fail when the role changes: the round is then never done.
 *
 * ERR_NOT_OWNER   PROPOSE or READ at a replica that does not serve, or PROPOSE where
 *                 rep_clock_is_ahead; nothing changed.
 * ERR_FULL        PROPOSE past inflight_entries_max or inflight_bytes_max; nothing changed.
 * ERR_TOO_LARGE   PROPOSE over ENTRY_BODY_BYTES_MAX; nothing changed.
 */
NODISCARD err rep_step(struct rep *rep, const struct rep_event *event, struct rep_out *out);
void rep_out_clear(struct rep_out *out);
/* Adds a message; takes over its references and its body. */
void rep_send(struct rep_out *out, uint64_t to, const struct rep_message *message);
void rep_out_deinit(struct rep_out *out);

enum rep_role rep_role(const struct rep *rep);
/* CHECKs what it knows of the other members, one by one. For tests; rep_step checks the rest. */
void rep_peers_check(const struct rep *rep);
/* Its outcomes differ from those of a majority: it stores and votes, and never owns the shard. What
 * it has applied must not be shown to anybody. Until its state came from somebody else. */
bool rep_is_quarantined(const struct rep *rep);
/* The same, but not of one that is right as far as it goes, and cannot apply the next entry. Its
 * rows must not be given to other replicas either. Survives restarts. */
bool rep_differs(const struct rep *rep);
/* Its promotion waits: only quarantined replicas that answer have what it lacks, and give no rows.
 */
bool rep_wants_rows(const struct rep *rep);
/* Greatest record or promise known: who owns the shard now; 0 when unknown. A replica that is
 * named here but stays a REP_FOLLOWER has promised this epoch in an earlier life, and might give
 * one dot to two entries: the coordinator must raise the epoch. 0 to a removed replica. */
uint64_t rep_owner(const struct rep *rep);
uint64_t rep_epoch(const struct rep *rep);
uint64_t rep_generation(const struct rep *rep);
/* The greatest of any START in the log. Above apply_version_max only after rep_new: such a replica
 * must not be used. */
uint32_t rep_apply_version(const struct rep *rep);
/* The greatest number of a configuration that was promised or read in a record. */
uint64_t rep_config(const struct rep *rep);
const struct membership *rep_membership(const struct rep *rep);
uint64_t rep_last_index(const struct rep *rep);
uint64_t rep_commit_index(const struct rep *rep);
/* The highest that an owner said is committed, since this start; 0: none was heard, or we are it.
 */
uint64_t rep_owner_commit_index(const struct rep *rep);
/* Up to it this log is known to be the present owner's; 0: it was not compared yet, or we are it.
 */
uint64_t rep_verified_index(const struct rep *rep);
struct dot rep_last_dot(const struct rep *rep);
const struct vector *rep_vector(const struct rep *rep);
/* An entry above the applied index that is in memory: every committed, unapplied one is. Borrowed.
 */
struct entry *rep_entry(const struct rep *rep, uint64_t index);
/* How many replicas have `index` fsynced, as far as the owner knows. */
uint32_t rep_fsynced_count(const struct rep *rep, uint64_t index);
/* Every entry up to it is durable here. The commit index may be ahead: a majority without this
 * replica suffices. A checkpoint of an index above it must wait, or after a crash the database is
 * ahead of a log that then has a gap, and cannot help a member that is behind. */
uint64_t rep_durable_index(const struct rep *rep);
/* What the entries in memory take, about. */
uint64_t rep_memory_bytes(const struct rep *rep);
/* The log may be cut up to this index as far as the members need it. One that was not heard for
 * lag_ms_max needs a snapshot when it is back, and holds nothing. */
uint64_t rep_retain_index(const struct rep *rep);
/* The same when the log's disk is full: a replica that is behind gets a snapshot. */
uint64_t rep_final_index(const struct rep *rep);
/* The logs of the others no longer reach back to ours: the replica to ask for a snapshot; 0:
 * none. */
uint64_t rep_snapshot_source(const struct rep *rep);
/* Whether a snapshot up to that entry helps, and our log may be dropped for it: above `index` there
 * are orphans at most (docs/membership.md, step 5). */
bool rep_snapshot_fits(const struct rep *rep, uint64_t index, struct hash128 hash);
/* The snapshot that was offered does not fit: rep_snapshot_source is 0 until an owner says once
 * more that our log is behind. Else a replica told so by a deposed owner would ask forever, and
 * leave no turn to others that ask the same source. */
void rep_snapshot_useless(struct rep *rep);
/* A record named neither a member nor a learner of this id, and that is promised durably:
 * earlier owners of the shard are refused for ever, so rows and log may go, all but the promise. A
 * damaged replica may have lost promises, and takes the word of no tombstone: it must have seen a
 * confirmed record in this life. */
bool rep_is_removed(const struct rep *rep);
/* The same, be it not durable yet. */
bool rep_is_tombstone(const struct rep *rep);
/* It was removed, and knows (rep_membership) whom the record names that removed it: until then,
 * after a restart, its log says more than what would be left. A later record that names it, after
 * an accepted etcd restore, counts on its log. */
bool rep_may_drop(const struct rep *rep);
/* It may have stored a START under members that it does not know any more: it is damaged, or was
 * removed and dropped all. It tells what it knows of the shard's records, but does not count as one
 * that would know of later ones. */
bool rep_is_mute(const struct rep *rep);
/* Owner only, of another member: committed entries that it has not made durable; UINT64_MAX until
 * it has this epoch's START. */
uint64_t rep_member_lag(const struct rep *rep, uint64_t replica);
/* Per member or learner: last matched index (owner only; 0 unknown) and ms since it was heard. */
bool rep_member_state(const struct rep *rep, uint64_t replica, uint64_t *ret_matched_index,
                      uint64_t *ret_heard_ms);
/* REP_STARTING and REP_OWNER: for how long this member has acknowledged no entry, though there are
 * some that it has not; a snapshot that it gets acknowledges nothing before it is whole. 0: it has
 * all that this replica's own disk has, or it is no other member. Exact to the period of ticks. */
uint64_t rep_member_stalled_ms(const struct rep *rep, uint64_t replica);
/* REP_STARTING and REP_OWNER: the log no longer holds what this member needs; it must get a
 * snapshot. While STARTING too: START may need this member's majority to commit. */
bool rep_member_needs_snapshot(const struct rep *rep, uint64_t replica);
/* Owner only, of the record's learner: committed entries that it has not made durable. UINT64_MAX
 * until it has this epoch's START, and all before it: a short log is no proof that it holds any. */
uint64_t rep_learner_lag(const struct rep *rep);
/* Milliseconds (event clock) at which the current owner was last heard; for early claims. */
uint64_t rep_owner_heard_ms(const struct rep *rep);
/* Milliseconds since then, at the last event; 0 for the owner itself. */
uint64_t rep_owner_silent_ms(const struct rep *rep);
/* A record names it owner under an epoch that it had before, in another life or until it stepped
 * down: it never begins under that one again. To be told to the coordinator, which names the next,
 * as it does by itself after a restart; but not if etcd went back and gave it again since. */
bool rep_declines(const struct rep *rep);
/* It owns a log whose entries are of an earlier apply version than every member has had for
 * raise_after_ms, in which an upgrade can still be taken back; at once in a shard's first epoch,
 * which began before all of them had said so. Only another START raises the version: to be told
 * to the coordinator, which names the same owner under the next epoch. */
bool rep_is_outgrown(const struct rep *rep);
/* Owner, or about to be one: members without which there is no majority say that their clocks are
 * more than clock_ahead_ms_max behind ours, or behind the date of an entry. PROPOSE is refused, and
 * another member must be named. */
bool rep_clock_is_ahead(const struct rep *rep);

#endif
