/*
 * row_totals: what a row counts for in a shard's totals (totals.h).
 *
 * Held: players, items, mail, outboxes, escrow of transactions, by their rows. Made and used up:
 * ledger entries, and what transactions say that they make (NOTE_MADE). The two are counted from
 * different rows, so a mistake in one shows. On one shard both sides of a grant cancel, so buckets
 * fill only with what went to other shards.
 */
#ifndef NODE_CORE_GOODS_ROW_TOTALS_H
#define NODE_CORE_GOODS_ROW_TOTALS_H

#include "node/core/player/totals.h"
#include "runtime/base/arena.h"

/* Second byte of a note's key (state_note). */
#define NOTE_MADE    'm' /* A TxnDelta: what a transaction makes, less what it uses up. */
#define NOTE_SETTLED 's' /* A record left the outbox (audit.h). */

/* A row changed: `before` and `after` are its values, size 0 where there was none. Other tables
 * than those above are ignored. `arena` is for decoding; what is left in it means nothing. False: a
 * row could not be decoded, and was not counted, or not all of it. */
bool row_totals_add(struct totals *totals, struct arena *arena, struct slice key,
                    struct slice before, struct slice after);
/* The goods of one record of an outbox; `sign` 1 or -1. False: as above. */
bool row_totals_record(struct totals *totals, struct slice row, int sign);

#endif
