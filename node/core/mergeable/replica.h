/*
 * replica: the state of one mergeable shard at one member, and what it asks of its shell. The other
 * files of this room work on it: absorb.h (a record comes in), write.h, read.h, pull.h
 * (anti-entropy), receive.h (messages), rounds.h (time), members.h (configurations, ends of
 * actors), disk.h (recovery).
 *
 * The shell appends out.log to its log in order, sends a message once the log is on disk up to the
 * position that the message names, and says how far the disk is by merge_durable. It gives time,
 * boots and actors; the replica reads no clock and draws no number.
 */
#ifndef NODE_CORE_MERGEABLE_REPLICA_H
#define NODE_CORE_MERGEABLE_REPLICA_H

#include "node/core/entry/start.h"
#include "node/core/mergeable/lacking.h"
#include "node/core/mergeable/store.h"
#include "node/core/mergeable/token.h"

#define MERGE_DEPARTING_MAX MEMBERS_MAX
/* Old members, new members, members on their way out. */
#define MERGE_PEERS_MAX   (2 * MEMBERS_MAX + MERGE_DEPARTING_MAX)
#define MERGE_PENDING_MAX 1024u
/* Of the records that wait for a majority, each as often as calls wait for it; but a first one
 * waits, and the oldest read takes what it is told, however large it is. */
#define MERGE_PENDING_BYTES_MAX (32u * 1024u * 1024u)

#define MERGE_REPORT_MS      2000u
#define MERGE_PULL_MS_MAX    3000u /* A step of a pull without an answer is asked for again then, */
#define MERGE_LACKING_MS_MAX 10000u /* and what it asked for is looked up again. */
#define MERGE_HEARD_MS_MAX   6000u  /* A peer that was not heard for longer is taken for away. */
#define MERGE_CLOCK_MS_MAX   1000u  /* Of its peers' median: beyond, no writes. */
#define MERGE_WAIT_MS_MAX    10000u /* A wait for a majority ends then; the outcome is unknown. */
#define MERGE_SWEEP_LATE_MS  4000u  /* So long after its end a value is swept. */
/* Beyond the window of operations: two members' clocks, and a caller's, may be off as much each. */
#define MERGE_OP_LATE_MS (4u * MERGE_CLOCK_MS_MAX)

#define MERGE_BOOT_MAX (UINT64_MAX / 2)

enum merge_durability { MERGE_MEMORY, MERGE_ONE, MERGE_MAJORITY };

struct merge_options {
    uint64_t shard, generation;
    uint64_t member; /* This replica's id. */
    /* Rises with each start of a process of this member. One that begins too low, on a lost disk by
     * a clock that was set back, raises it as soon as a peer tells of its former process. */
    uint64_t boot;
    uint64_t random; /* 64 random bits drawn at this start: actors are made of them. */
    uint32_t index_dots_max;
    uint32_t chunk_records_max; /* Records in one message of anti-entropy. */
    uint32_t closed_max; /* With more closed actors in its clock a process goes to the next era. */
    /* So long after an operation's time a retry of it still counts once; later it is refused. */
    uint64_t op_window_ms;
    struct merge_mac mac;
};

/* Who holds the shard, as the strict log says. */
struct merge_members {
    struct membership membership;
    uint32_t departing_count; /* Removed, and not said to be gone: their records may be unique. */
    uint64_t departing[MERGE_DEPARTING_MAX];
};

struct merge_message {
    uint64_t to;
    uint64_t after_log; /* Not before the log is durable up to here. 0: at once. */
    struct buf bytes;
};

struct merge_done {
    uint64_t ticket;
    err result; /* ERR_TIMEOUT: the outcome of a write is unknown. */
    uint32_t replicas;
    struct merge_record *record; /* Of a read: full; the shell frees it. NULL: of a write. */
};

/* What the shell takes away after each call. */
struct merge_out {
    struct buf log; /* Records, each behind its u32 length. */
    uint32_t message_count, message_capacity;
    struct merge_message *messages;
    uint32_t done_count, done_capacity;
    struct merge_done *done;
};

/* One walk over what a peer has and this replica lacks. */
struct merge_pull {
    bool active, full, started;
    uint64_t id;           /* Of the request that is out. */
    uint64_t boot, config; /* Of the peer's process; of this replica as the pull began. */
    uint64_t moved_ms;
    struct merge_key *after; /* Chunks came up to here. */
    struct mclock mine;      /* This replica's clock as the pull began. */
    struct mclock theirs;    /* The peer's at the first chunk: joined at the end. */
};

struct merge_peer {
    uint64_t member;
    uint64_t boot,
        actor; /* Of its latest process that was heard; 0: none. The actor of its report. */
    uint64_t heard_ms;
    bool reported; /* This process has said the following: */
    bool syncing;
    uint64_t config, ready_config;
    uint64_t view;     /* merge_processes_view as it saw it. */
    int64_t offset_ms; /* Its wall clock less ours. */
    uint64_t told_ms;  /* Its wall clock when it said so: before it, it took no write later. */
    struct mclock clock;
    uint64_t clock_hash; /* Of its bytes; 0: none. */
    uint64_t echoed;     /* The hash of our clock that it has. */
    /* Everything was pulled from it while this was our configuration and its; of the second it may
     * have been taking everything in itself. */
    uint64_t pulled_config, taken_config;
    struct merge_pull pull;
    struct lacking lacking; /* What it pulls. */
};

/* A write that waits for its durability, or a read for its majority. */
struct merge_pending {
    uint64_t ticket, began_ms, sent_ms;
    uint64_t bytes; /* Of its record, if it waits for a majority. */
    bool is_read;
    enum merge_durability durability;
    struct merge_key *key;
    struct merge_dot dot;
    uint64_t log_position;
    uint64_t config; /* Acknowledgements of other configurations do not count. */
    uint32_t acks, new_acks;
    struct merge_record merged; /* Of a read. */
    struct merge_token token;   /* What its caller had seen. */
};

struct merge_replica {
    struct merge_options options;
    struct merge_members members;
    struct mclock clock;
    struct merge_store store;
    struct dot_index index;
    uint64_t actor;   /* Under which this process writes; 0: not started. */
    uint64_t counter; /* The last dot of that actor. */
    uint64_t hlc;     /* The latest hybrid time seen. */
    /* It does not have all that it once acknowledged: a lost or old disk, a voided clock, a new
     * member. It takes in everything of its peers first, and until then writes nothing and answers
     * no read. */
    bool syncing;
    /* Its shard is being restored: what the backup has under one actor comes in parts, and no
     * member ends that actor before the last one. */
    bool restoring;
    /* Rows that could not be read: of these records nothing was taken in, whatever the clock says.
     * With `damage_unnamed` it may be any that has no row. */
    bool damage_unnamed;
    uint32_t damaged_count;
    struct merge_key **damaged; /* References; until the clock is voided. */
    /* Stored records have dots that were too far above the clock's base to be in it. They are taken
     * in when a pull has raised it. */
    bool dots_above;
    uint64_t log_end, log_durable; /* Records appended; of these on disk. */
    uint64_t closed_log;           /* Up to the last actor that it closed itself. */
    uint64_t ticket_last, pull_last;
    uint64_t reported_ms;
    uint32_t peer_count;
    struct merge_peer peers[MERGE_PEERS_MAX];
    uint32_t pending_count;
    struct merge_pending *pending; /* Ascending tickets. */
    uint64_t pending_bytes;
    uint64_t resent; /* The ticket that was sent again last. */
    struct merge_out out;
};

struct merge_replica *merge_new(const struct merge_options *options);
void merge_free(struct merge_replica *replica);
/* Forgets what the shell has carried out. */
void merge_out_clear(struct merge_out *out);

/* ---- for the other files of this room ---- */
/* Adds a message; the caller fills it in. Valid until the next one. It waits for the disk until
 * that has all closings: contexts of records show those, so a crash would undo them here alone. */
struct buf *merge_out_message(struct merge_replica *replica, uint64_t to, uint64_t after_log);
void merge_out_done(struct merge_replica *replica, struct merge_done done);
/* Appends one record to the log. */
void merge_out_log(struct merge_replica *replica, struct slice record);
/* NULL: no peer has that id. */
struct merge_peer *merge_peer_find(struct merge_replica *replica, uint64_t member);
void merge_peer_deinit(struct merge_peer *peer);
void merge_pull_end(struct merge_pull *pull);
/* Its latest process reported, under this configuration: one that knows of other members says
 * nothing of what all of them have. */
bool merge_peer_speaks(const struct merge_replica *replica, const struct merge_peer *peer);
/* Which processes of which members and departing ones this replica takes messages from, as one
 * number. Only replicas that see the same can agree on what an ended process wrote: one that has
 * not heard of the end may still take in more of it. */
uint64_t merge_processes_view(const struct merge_replica *replica);
/* All peers speak, none takes everything in, and all see the same processes. */
bool merge_peers_agree(const struct merge_replica *replica);
/* Every peer has said that its disk has that dot. */
bool merge_all_have(const struct merge_replica *replica, struct merge_dot dot);
/* Whether the clock speaks for the record that is stored, or is not, under this key. */
bool merge_clock_speaks_for(const struct merge_replica *replica, const struct merge_key *key);
bool merge_is_member(const struct merge_replica *replica, uint64_t member);

#endif
