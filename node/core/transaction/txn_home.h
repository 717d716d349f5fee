/*
 * txn_home: a transaction at its home shard, at apply. On one shard it is done in one entry. Else
 * EXECUTE prepares the home's own players and opens a PREPARE for each other shard; the entry that
 * logs the last vote, the first refusal, or a seal, decides: here and nowhere else. DESIGN section
 * 7, docs/transactions.md.
 */
#ifndef NODE_CORE_TRANSACTION_TXN_HOME_H
#define NODE_CORE_TRANSACTION_TXN_HOME_H

#include "holdfast/internal/v1/channel.pb-c.h"
#include "node/core/transaction/txn_part.h"

/* A request by player: the home player first. Everything is borrowed. */
struct txn_plan {
    size_t part_count;
    Holdfast__Internal__V1__TxnPart **parts;
    const char *reason;
};

/* ret_outcomes: in the arena; of one that is PENDING, none. ERR_NEED, ERR_CONFLICT, ERR_INVALID. */
NODISCARD err txn_execute(struct apply_context *context, const struct txn_plan *plan,
                          size_t *ret_count, Holdfast__V1__TransactionOutcome ***ret_outcomes);
void txn_execute_footprint(const struct op *op, const struct txn_plan *plan, struct need *keys);

/* A member's vote is logged: `row` is its PREPARE. Decides, if that decides. *ret_decided: then
 * *ret_settled is for the waiting caller. ERR_NEED. */
NODISCARD err txn_vote(struct apply_context *context, const Holdfast__Internal__V1__OutboxRow *row,
                       const Holdfast__Internal__V1__ChannelResult *result,
                       struct settled *ret_settled, bool *ret_decided);

/* A seal of a PENDING transaction (`ref`: the outcome row's body): decides ABORT. The outcome is
 * stored; context->channel tells the waiting caller. ERR_NEED; ERR_NOT_FOUND: it has no row any
 * more, since a person removed what could not be read; ERR_CONFLICT: QUARANTINED, the row cannot be
 * read.
 */
NODISCARD err txn_seal(struct apply_context *context, struct slice ref);

/* A player of this shard who could not be finished when its transaction was decided, and now can
 * be: context->player, held by `ref`. *ret_finished false: it is not decided yet, or another shard
 * says. ERR_NEED; ERR_CONFLICT: QUARANTINED, a row of the player still cannot be read. */
NODISCARD err txn_finish_owed(struct apply_context *context, struct txn_ref ref,
                              bool *ret_finished);
/* Gives context->player back what a lost transaction of `ref` holds of it. As above. */
NODISCARD err txn_give_back(struct apply_context *context, struct txn_ref ref);

#endif
