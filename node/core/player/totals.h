/*
 * totals: what a shard holds against what was made and used up in it, kept while rows change
 * (row_totals.h): per currency a sum, per bucket of item UIDs a count and a sum of hashes. Over all
 * shards, at one consistent cut, each of them is zero, or something was doubled or lost. DESIGN
 * section 7.
 */
#ifndef NODE_CORE_PLAYER_TOTALS_H
#define NODE_CORE_PLAYER_TOTALS_H

#include <stdbool.h>
#include <stdint.h>

#include "node/core/rows/rows.h"

#define TOTALS_BUCKETS        4096u /* A multiple of 64. */
#define TOTALS_CURRENCIES_MAX 128u  /* Not zero at once in a shard; more count as one. */
#define TOTALS_NAME_SIZE      33u

struct totals_currency {
    char name[TOTALS_NAME_SIZE];
    int64_t net;
};

struct totals_bucket {
    int32_t count;
    uint64_t hashes; /* Sum, modulo 2^64. */
};

struct totals_buckets {
    /* Which of them are not zero: a bit each. Most shards fill few, and each checkpoint and each
     * cut goes through those. */
    uint64_t filled[TOTALS_BUCKETS / 64u];
    struct totals_bucket each[TOTALS_BUCKETS];
};

/* A zeroed one is valid and empty. */
struct totals {
    uint32_t currency_count;
    struct totals_currency *currencies; /* Sorted by name; room for TOTALS_CURRENCIES_MAX. Owned; */
    struct totals_buckets *buckets;     /* so is this. NULL: none, and all are zero. */
    int64_t count;                      /* Sums over all buckets. */
    uint64_t hashes;
};

void totals_deinit(struct totals *totals);
void totals_copy(struct totals *to, const struct totals *from);
/* Sum of both, in `to`. */
void totals_add(struct totals *to, const struct totals *from);
uint32_t totals_bucket_of(const uint8_t uid[ITEM_UID_BYTES]);

/* `sign` 1 or -1: an item of this UID, and so much of a currency. */
void totals_add_uid(struct totals *totals, const uint8_t uid[ITEM_UID_BYTES], int sign);
void totals_add_amount(struct totals *totals, struct slice currency, int64_t amount, int sign);
bool totals_are_zero(const struct totals *totals);

/* Of each bucket that is not zero: place and count (u32), hashes (u64). */
void totals_encode_buckets(const struct totals *totals, struct buf *out);

/* Buckets that are zero take no room. */
void totals_encode(const struct totals *totals, struct buf *out);
void totals_decode(struct reader *reader, struct totals *totals); /* Malformed: reader->bad. */

#endif
