/*
 * txn_row: rows of transactions across shards: what a player is promised to (an intent, with its
 * escrow), and a transaction at its home shard until every member has voted. DESIGN section 7,
 * docs/transactions.md.
 */
#ifndef NODE_CORE_TRANSACTION_TXN_ROW_H
#define NODE_CORE_TRANSACTION_TXN_ROW_H

#include "holdfast/internal/v1/transaction.pb-c.h"
#include "idl/limit.h"
#include "node/core/handler/handler.h"

#define TXN_PLAYERS_MAX LIMIT_TRANSACTION_PLAYERS
#define TXN_ITEMS_MAX   LIMIT_ITEMS

/* MISSING, and the key is noted in `need` (unless that is NULL); ABSENT; PRESENT, and *ret is in
 * the arena, or NULL: the row cannot be read. */
enum state_found intent_find(struct state *state, struct arena *arena, struct slice entity,
                             struct need *need, Holdfast__Internal__V1__TxnIntent **ret);
enum state_found txn_find(struct state *state, struct arena *arena, struct txn_ref ref,
                          struct need *need, Holdfast__Internal__V1__TxnRow **ret);

/* A row's value, in the arena. NULL: it cannot be read. */
Holdfast__Internal__V1__TxnIntent *intent_decode(struct arena *arena, struct slice value);
Holdfast__Internal__V1__TxnRow *txn_decode(struct arena *arena, struct slice value);

/* In the open transaction of the state. */
void intent_store(struct apply_context *context, struct slice entity,
                  const Holdfast__Internal__V1__TxnIntent *row);
void intent_delete(struct apply_context *context, struct slice entity);
/* A new one; ... */
void txn_add(struct apply_context *context, struct txn_ref ref,
             const Holdfast__Internal__V1__TxnRow *row);
/* ... one that stands. */
void txn_store(struct apply_context *context, struct txn_ref ref,
               const Holdfast__Internal__V1__TxnRow *row);
void txn_delete(struct apply_context *context, struct txn_ref ref);

#define INTENT_DAMAGE "what a transaction holds of the player cannot be read"
#define TXN_DAMAGE    "a transaction's row cannot be read"

/* Of a vote, packed: all items of a transaction, each as large as a row may be, and to spare. */
#define TXN_VOTE_BYTES_MAX (192u * 1024u)

/* At most as many as a ledger entry holds, each a UID. */
bool txn_uids_are_sound(size_t count, char *const *uids);
/* What a part moves and edits can be written into its player's rows. */
bool txn_goods_are_sound(const Holdfast__Internal__V1__TxnPart *part);
/* What is relied on when the transaction is decided: ids are ids, counts within their limits. */
bool txn_vote_is_sound(const Holdfast__Internal__V1__TxnVote *vote);

struct txn_ref txn_ref_of(const Holdfast__Internal__V1__TxnRef *message);
/* In the arena. */
Holdfast__Internal__V1__TxnRef *txn_ref_message(struct arena *arena, struct txn_ref ref);
bool txn_ref_equal(struct txn_ref a, struct txn_ref b);

#endif
