/* audit_state: what the audit and its search know between two steps. */
#ifndef COORDINATOR_CORE_AUDIT_STATE_H
#define COORDINATOR_CORE_AUDIT_STATE_H

#include <stdbool.h>
#include <stdint.h>

#define AUDIT_CURRENCIES_MAX 256u
#define AUDIT_CUTS           2u
#define AUDIT_BUCKETS        4096u /* node/core/player/totals.h */
#define AUDIT_UID_BYTES      16u
#define AUDIT_PLAYER_SIZE    104u
#define AUDIT_REASON_SIZE    65u
#define AUDIT_OP_SIZE        72u

/* More than these are found by later searches. */
#define AUDIT_BAD_BUCKETS_MAX    64u
#define AUDIT_BAD_CURRENCIES_MAX 16u
#define AUDIT_FOUND_MAX          262144u
#define AUDIT_SUSPECTS_MAX       256u
#define AUDIT_TRIES_MAX          5u
#define AUDIT_HELD_MAX           4096u /* Contained for one imbalance, a search after the other. */

struct audit_currency {
    char name[33];
    int64_t net;
};

struct audit_bucket {
    int64_t count;
    uint64_t hashes;
};

/* What all shards hold at one cut, less what was made. */
struct audit_sum {
    uint64_t cut;  /* 0: none. */
    uint8_t *told; /* Per shard: it is in here, and will not change. */
    uint32_t left; /* Shards that are not. */
    uint32_t currency_count;
    struct audit_currency currencies[AUDIT_CURRENCIES_MAX]; /* In no order. */
    int64_t count;                                          /* Of items. */
    uint64_t hashes;
    uint32_t bucket_parts;        /* Of how many shards `buckets` is the sum. */
    struct audit_bucket *buckets; /* AUDIT_BUCKETS of them. */
};

/* An item that somebody holds. */
struct audit_found {
    uint8_t uid[AUDIT_UID_BYTES];
    uint64_t hash;
    uint32_t shard;
    char player[AUDIT_PLAYER_SIZE];
};

/* Somebody to be contained. */
struct audit_suspect {
    uint32_t shard;
    uint8_t ack;
    char player[AUDIT_PLAYER_SIZE];
    char reason[AUDIT_REASON_SIZE];
    char op_id[AUDIT_OP_SIZE];
};

enum search_state { SEARCH_NONE, SEARCH_PAGES, SEARCH_CONTAIN };

/* Who holds what is too much (audit_search.c). */
struct audit_search {
    enum search_state state;
    bool known;     /* `hash` was searched for, and what could be found is contained. */
    uint64_t hash;  /* The imbalance. */
    uint32_t tries; /* Searches for it. */
    uint64_t number, cut, next_ms;
    uint32_t bucket_count, currency_count;
    uint32_t buckets[AUDIT_BAD_BUCKETS_MAX];
    struct audit_bucket bad[AUDIT_BAD_BUCKETS_MAX];
    char currencies[AUDIT_BAD_CURRENCIES_MAX][33];
    uint8_t *acks; /* Per shard. */
    uint32_t acks_left;
    char (*cursors)[AUDIT_PLAYER_SIZE]; /* Per shard. */
    struct audit_found *found;
    uint32_t found_count, found_capacity;
    bool overflow; /* More was found than is kept. */
    uint32_t wallets, undecided;
    struct audit_suspect *suspects;
    uint32_t suspect_count;
    uint64_t *held; /* Hashes of those that searches for this imbalance have contained. */
    uint32_t held_count;
};

struct audit {
    bool running;        /* A round: each shard is asked to take `cut`. */
    uint64_t cut;        /* Of this round, or of the last one. */
    uint64_t started_ms; /* The round. */
    uint64_t next_ms;    /* No round earlier. */
    uint64_t counted_ms; /* When a cut was last counted. */
    uint8_t *acks;       /* Per shard. */
    uint32_t acks_left;
    struct audit_sum sums[AUDIT_CUTS]; /* Of the cuts before `cut`, the newer one first. */
    bool imbalance;                    /* At the cut counted last. */
    uint64_t imbalance_hash;           /* Of all of it: another one is another violation. */
    bool want_buckets;                 /* Items are wrong, and it is not known which. */
    struct audit_search search;
};

#endif
