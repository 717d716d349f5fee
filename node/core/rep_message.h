/*
 * rep_message: what replicas of a shard say to each other, and its bytes. DESIGN section 4.
 * Travels as MESSAGE frames on the peer link; lost, repeated and reordered messages are harmless.
 */
#ifndef NODE_CORE_REP_MESSAGE_H
#define NODE_CORE_REP_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "node/core/entry.h"
#include "node/core/start.h"
#include "node/core/vector.h"

enum rep_message_type {
    REP_MSG_APPEND = 1, /* Entries that follow prev_index/prev_hash; none: a heartbeat.      */
    REP_MSG_APPEND_ACK, /* matched_index is durable here and on the owner's log; or a refusal:
                           the greater promise, or the follower's vector when the request's
                           prev_index (given back) does not match.                           */
    REP_MSG_SEAL,       /* Promise me (config, epoch, owner).                                */
    REP_MSG_SEAL_ACK,   /* Promised, durably; my vector and last dot. Or refused: my promise. */
    REP_MSG_FETCH,      /* Send entries above the point our vectors share.                   */
    REP_MSG_FETCH_ACK   /* Entries that follow prev_index/prev_hash; last_dot of the sender. */
};

struct rep_message {
    enum rep_message_type type;
    uint32_t shard;
    uint64_t generation;
    uint64_t config;
    uint64_t epoch; /* Of the sender's view; replies repeat the request's, but a
                       refusal that comes from a greater promise tells that one. */
    uint64_t owner;
    uint64_t cut_id; /* DESIGN section 7: every message carries its sender's. */
    bool refused;
    bool votes; /* ACKs: the sender's word counts towards a majority. */
    uint64_t prev_index;
    struct hash128 prev_hash;
    uint64_t commit_index;
    uint64_t retain_index; /* Lowest index some member may still need. */
    uint64_t round;        /* Read confirmation: sent in APPEND, given back in its ACK. */
    uint64_t matched_index;
    uint64_t applied_index; /* With `outcome`: running hash of outcomes there. */
    struct hash128 outcome;
    struct dot last_dot;
    uint32_t apply_version; /* ACKs: the sender's greatest. APPEND: the least of all members',
                               0 while one is unknown. */
    struct vector vector;   /* SEAL_ACK, FETCH, refused APPEND_ACK. */
    struct entry **entries; /* References held by the message. */
    uint32_t entry_count;
};

/* Appends the encoded message to `out`. */
void rep_message_encode(const struct rep_message *message, struct buf *out);
/* Entries are made anew; release them with rep_message_deinit. ERR_CORRUPT: malformed. */
NODISCARD err rep_message_decode(struct slice bytes, struct rep_message *ret_message);
/* The shard alone, of bytes that may be malformed behind it. ERR_CORRUPT: before it already. */
NODISCARD err rep_message_peek_shard(struct slice bytes, uint32_t *ret_shard);
/* Drops the entries' references and frees the array. */
void rep_message_deinit(struct rep_message *message);

#endif
