/*
 * txn_part: one player of a transaction at apply: checked and prepared, then finished by what its
 * home shard has decided. DESIGN section 7, docs/transactions.md.
 */
#ifndef NODE_CORE_TRANSACTION_TXN_PART_H
#define NODE_CORE_TRANSACTION_TXN_PART_H

#include "holdfast/v1/transaction.pb-c.h"
#include "node/core/transaction/txn_row.h"

/* A player while an entry is applied, in a context of its own. Never moved: it points into itself.
 */
struct txn_player {
    struct apply_context *entry;
    struct apply_context context;
    struct op op;
    struct player own;
    bool borrowed; /* It is entry->player: the core writes it back. */
    bool risen;    /* Its version, in this entry. */
};

/* What all parts at one shard share. */
struct txn_terms {
    struct txn_ref ref; /* seq 0: done in this entry; no intent is left. */
    const char *op_id;
    const char *reason;
    uint32_t uid_place; /* In the entry, for the next item to be minted. */
};

/* A refused part names its player, and the check among that player's. */
#define TXN_NAMES_APPLY_VERSION 10u

/* TXN_CONFLICT, not to be stored. Returns ERR_CONFLICT. */
err txn_refuse_held(struct arena *arena, struct refusal *refusal, const char *player_id,
                    struct slice op_id);

/* In the arena. ERR_NEED; ERR_CONFLICT: QUARANTINED, its row cannot be read. */
NODISCARD err txn_player_load(struct apply_context *entry, const char *player_id, const char *op_id,
                              struct txn_player **ret_player);
void txn_player_store(struct txn_player *player);

/* Checks; takes goods into escrow; tries what would come. With terms->ref, leaves an intent.
 * ERR_NEED; ERR_CONFLICT or ERR_INVALID: refused, the state is to be rolled back. */
NODISCARD err txn_part_prepare(struct txn_player *player,
                               const Holdfast__Internal__V1__TxnPart *part, struct txn_terms *terms,
                               Holdfast__Internal__V1__TxnTaken *ret_taken);
/* Gives what is granted, and the items that come from others; or gives escrow back. ERR_NEED;
 * ERR_CONFLICT: a row cannot be read. */
NODISCARD err txn_part_finish(struct txn_player *player,
                              const Holdfast__Internal__V1__TxnIntent *intent, bool commit,
                              size_t item_count, Holdfast__V1__Item *const *items);
/* The same of a player that an intent of `ref` holds, which is gone then. ERR_NEED; ERR_NOT_FOUND:
 * it was finished before; ERR_CONFLICT: a row of the player cannot be read, nothing may be kept. */
NODISCARD err txn_intent_finish(struct apply_context *entry, struct txn_ref ref, bool commit,
                                const Holdfast__Internal__V1__TxnGive *give);

/* Every row that preparing a part may touch, beside its operation's. */
void txn_part_footprint(const Holdfast__Internal__V1__TxnPart *part, struct need *keys);

/* An authority in a part, as it is stored. ERR_CORRUPT: none, or malformed. */
NODISCARD err txn_authority_load(const Holdfast__Internal__V1__StoredAuthority *stored,
                                 struct authority *ret_authority);
/* In the arena. */
Holdfast__Internal__V1__StoredAuthority *txn_authority_store(struct arena *arena,
                                                             const struct authority *authority);

#endif
