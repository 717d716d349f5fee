/*
 * token: the context that a caller gets with a record and gives back with reads and writes: what it
 * saw. Opaque to it and authenticated, since a forged counter would cover an actor's future writes.
 * It holds for one record of one shard, generation and erasure.
 */
#ifndef NODE_CORE_MERGEABLE_TOKEN_H
#define NODE_CORE_MERGEABLE_TOKEN_H

#include "node/core/mergeable/key.h"
#include "node/core/mergeable/record.h"

#define MERGE_TOKEN_BYTES_MAX   512u
#define MERGE_TOKEN_MAC_BYTES   16u
#define MERGE_TOKEN_ENTRIES_MAX 24u
#define MERGE_TOKEN_OWN_MAX     2u

/* HMAC-SHA-256 of the message under the cluster's key, cut to MERGE_TOKEN_MAC_BYTES. The shell has
 * the key: a core links no library for it. */
struct merge_mac {
    void (*sign)(void *user, struct slice message, uint8_t ret_mac[MERGE_TOKEN_MAC_BYTES]);
    void *user;
};

/* Where a token holds. */
struct merge_place {
    uint64_t shard, generation;
    uint64_t erasure; /* Of the entity. */
    const struct merge_key *key;
};

struct merge_token {
    uint64_t hlc; /* The latest hybrid time that the caller saw. */
    uint32_t count;
    struct causal_entry entries[MERGE_TOKEN_ENTRIES_MAX]; /* Ascending actors. */
    /* Writes of the caller's own since it read. An entry would say more: that it also saw what
     * others wrote under that actor before. */
    uint32_t own_count;
    struct merge_dot own[MERGE_TOKEN_OWN_MAX];
};

/* Appends the token's bytes, at most MERGE_TOKEN_BYTES_MAX. */
void merge_token_seal(const struct merge_mac *mac, const struct merge_place *place,
                      const struct merge_token *token, struct buf *out);
/* ERR_INVALID: malformed, forged, or of another shard or record. ERR_STALE_EPOCH: of another
 * generation or before an erasure: what the caller saw is no more (VERSION_LOST). ERR_UNAVAILABLE:
 * of a later erasure, which this replica has not heard of. *ret_token untouched on error. */
NODISCARD err merge_token_open(const struct merge_mac *mac, const struct merge_place *place,
                               struct slice bytes, struct merge_token *ret_token);

#endif
