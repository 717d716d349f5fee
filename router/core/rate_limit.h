/*
 * rate_limit: token buckets, and a table of them of a fixed size (DESIGN section 11). A bucket
 * holds what may be done at once, a second's worth, and fills at its rate. Pure: the time is told.
 */
#ifndef ROUTER_CORE_RATE_LIMIT_H
#define ROUTER_CORE_RATE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#define RATE_TABLE_BUCKETS   16384u
#define RATE_RETRY_AFTER_MAX 10000u /* Milliseconds. */

/* A zeroed bucket is full. */
struct rate_bucket {
    uint64_t full_at_us;  /* When it is full again; the farther off, the emptier. */
    uint64_t promised_us; /* When the token comes that the newest refused caller was told of. */
};

/*
 * Takes one token; always true for rate_per_s 0, which is no limit. False: there is none, and
 * *ret_retry_after_ms says in how long there will be one. The clock may be any that never goes
 * back.
 */
bool rate_take(struct rate_bucket *bucket, uint32_t rate_per_s, uint64_t now_ms,
               uint32_t *ret_retry_after_ms);
/* Takes that many tokens whether they are there or not: a call that turned out to be heavy. The
 * next call waits for them, RATE_RETRY_AFTER_MAX at most. */
void rate_charge(struct rate_bucket *bucket, uint32_t rate_per_s, uint32_t count, uint64_t now_ms);
/* Whether there is a token, without taking it. */
bool rate_has(const struct rate_bucket *bucket, uint32_t rate_per_s, uint64_t now_ms,
              uint32_t *ret_retry_after_ms);

/* Of callers that were refused and wait for one bucket: each is told of a later token than those
 * before it, so that they come back one by one and not together. At most RATE_TURN_MS_MAX, which
 * callers share who find a longer queue, unless the bucket itself has no token before. */
#define RATE_TURN_MS_MAX 2000u
uint32_t rate_turn_ms(struct rate_bucket *bucket, uint32_t rate_per_s, uint64_t now_ms);

/* Buckets by a 64-bit name, such as the hash of an address. Where more names come than there is
 * room, the fullest of a few buckets is given up: a held back name stays held back. */
struct rate_table;

struct rate_table *rate_table_new(void);
void rate_table_free(struct rate_table *table);
/* Never NULL; good until the next call. */
struct rate_bucket *rate_table_get(struct rate_table *table, uint64_t name);

/* CHECKs that each name has one bucket, where it is looked for. For tests. */
void rate_table_check(const struct rate_table *table);

#endif
