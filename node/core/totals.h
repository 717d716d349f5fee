/*
 * totals: what a shard holds against what was made and used up in it, kept while rows change: per
 * currency a sum, per bucket of item UIDs a count and a sum of hashes. Over all shards, at one
 * consistent cut, each of them is zero, or something was doubled or lost. DESIGN section 7.
 *
 * Held: players, items, mail, outboxes, escrow of transactions, by their rows. Made and used up:
 * ledger entries, and what transactions say that they make (NOTE_MADE). The two are counted from
 * different rows, so a mistake in one shows. On one shard both sides of a grant cancel, so buckets
 * fill only with what went to other shards.
 */
#ifndef NODE_CORE_TOTALS_H
#define NODE_CORE_TOTALS_H

#include <stdbool.h>
#include <stdint.h>

#include "node/core/rows.h"
#include "runtime/base/arena.h"

/* Second byte of a note's key (state_note). */
#define NOTE_MADE    'm' /* A TxnDelta: what a transaction makes, less what it uses up. */
#define NOTE_SETTLED 's' /* A record left the outbox (audit.h). */

#define TOTALS_BUCKETS        4096u
#define TOTALS_CURRENCIES_MAX 128u /* Ever seen in a shard; beyond it they are counted as one. */
#define TOTALS_NAME_SIZE      33u

struct totals_currency {
    char name[TOTALS_NAME_SIZE];
    int64_t net;
};

struct totals_bucket {
    int32_t count;
    uint64_t hashes; /* Sum, modulo 2^64. */
};

struct totals {
    uint32_t currency_count;
    struct totals_currency currencies[TOTALS_CURRENCIES_MAX]; /* Sorted by name. */
    int64_t count;                                            /* Sums over all buckets. */
    uint64_t hashes;
    struct totals_bucket *buckets; /* NULL: all are zero. Owned. */
};

void totals_deinit(struct totals *totals);
void totals_copy(struct totals *to, const struct totals *from);
/* Sum of both, in `to`. */
void totals_add(struct totals *to, const struct totals *from);
uint32_t totals_bucket_of(const uint8_t uid[ITEM_UID_BYTES]);

/* A row changed: `before` and `after` are its values, size 0 where there was none. Other tables
 * than those above are ignored. `arena` is for decoding; what is left in it means nothing. False: a
 * row could not be decoded, and was not counted, or not all of it. */
bool totals_row(struct totals *totals, struct arena *arena, struct slice key, struct slice before,
                struct slice after);
/* The goods of one record of an outbox; `sign` 1 or -1. False: as above. */
bool totals_record(struct totals *totals, struct slice row, int sign);
bool totals_are_zero(const struct totals *totals);

/* Of each bucket that is not zero: place and count (u32), hashes (u64). */
void totals_encode_buckets(const struct totals *totals, struct buf *out);

/* Buckets that are zero take no room. */
void totals_encode(const struct totals *totals, struct buf *out);
void totals_decode(struct reader *reader, struct totals *totals); /* Malformed: reader->bad. */

#endif
