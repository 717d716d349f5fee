/*
 * rep_message: what replicas of a shard say to each other, and its bytes. DESIGN section 4.
 * Travels as MESSAGE frames on the peer link; lost, repeated and reordered messages are harmless.
 */
#ifndef NODE_CORE_REPLICATION_REP_MESSAGE_H
#define NODE_CORE_REPLICATION_REP_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "node/core/entry/entry.h"
#include "node/core/entry/start.h"
#include "node/core/entry/vector.h"

#define REP_BODY_BYTES_MAX 3145728u /* A part of a snapshot: less than a frame holds. */

enum rep_message_type {
    REP_MSG_APPEND = 1, /* Entries that follow prev_index/prev_hash; none: a heartbeat.      */
    REP_MSG_APPEND_ACK, /* matched_index is durable here and on the owner's log; or a refusal:
                           the greater promise, or the follower's vector when the request's
                           prev_index (given back) does not match.                           */
    REP_MSG_SEAL,       /* Promise me (config, epoch, owner).                                */
    REP_MSG_SEAL_ACK,   /* Promised, durably; my vector and last dot. Or refused: my promise. */
    REP_MSG_FETCH,      /* Send entries above the point our vectors share.                   */
    REP_MSG_FETCH_ACK,  /* Entries that follow prev_index/prev_hash; last_dot of the sender. */
    /* A snapshot (docs/membership.md), part after part; not rep's own: shard_snapshot.c. */
    REP_MSG_SNAPSHOT_PULL, /* Send `part` of `snapshot`; `chain` is that of the parts before.  */
    REP_MSG_SNAPSHOT_PART  /* `body`, `chain` with it, `last`; or refused: busy, or not known. */
};

struct rep_message {
    enum rep_message_type type;
    uint32_t shard;
    uint64_t generation;
    uint64_t config;
    uint64_t epoch; /* Of the sender's view; replies repeat the request's, but a
                       refusal that comes from a greater promise tells that one. */
    uint64_t owner;
    uint64_t cut_id;  /* DESIGN section 7: every message carries its sender's. */
    bool refused;     /* APPEND: the receiver's outcomes differ from those of a majority. */
    bool quarantined; /* ACKs: the sender's outcomes were found to differ from a majority's. */
    bool votes;       /* ACKs: the sender's word counts towards a majority. */
    /* APPEND, FETCH_ACK: the sender's log no longer has what the receiver lacks. APPEND_ACK: the
     * sender's clock is behind the receiver's, or behind the date of its next entry, by more than
     * clock_ahead_ms_max. */
    bool behind;
    uint64_t prev_index;
    struct hash128 prev_hash;
    uint64_t commit_index;
    uint64_t retain_index; /* Lowest index some member may still need. */
    uint64_t round;        /* Read confirmation: sent in APPEND, given back in its ACK. */
    uint64_t matched_index;
    uint64_t unix_ms; /* APPEND, which has no matched_index, in its place: the sender's wall clock;
                         0: it is of a program that does not tell it. */
    uint64_t applied_index; /* With `outcome`: running hash of outcomes there. */
    struct hash128 outcome;
    struct dot last_dot;
    uint32_t apply_version; /* ACKs: the sender's greatest. APPEND: the least of all members',
                               0 while one is unknown. */
    struct vector vector;   /* SEAL_ACK, FETCH, refused APPEND_ACK. */
    struct entry **entries; /* References held by the message. */
    uint32_t entry_count;
    uint64_t snapshot; /* SNAPSHOT_*: which one; 0: a new one. */
    uint32_t part;
    bool last;
    struct hash128 chain; /* Over every part up to this one; of no part: zero. */
    struct buf body;      /* The message's own. */
};

/* Appends the encoded message to `out`. */
void rep_message_encode(const struct rep_message *message, struct buf *out);
/* Entries are new; release them with rep_message_deinit. ERR_CORRUPT: malformed. */
NODISCARD err rep_message_decode(struct slice bytes, struct rep_message *ret_message);
/* The shard alone, of bytes that may be malformed behind it. ERR_CORRUPT: before it already. */
NODISCARD err rep_message_peek_shard(struct slice bytes, uint32_t *ret_shard);
/* Drops the entries' references, frees the array and the body. */
void rep_message_deinit(struct rep_message *message);

#endif
