/*
 * txn_member: a shard that takes part in a transaction of another shard, at apply: it votes on
 * PREPARE, once, and carries out FINISH. The channel (channel_in.h) keeps its decisions. DESIGN
 * section 7, docs/transactions.md.
 */
#ifndef NODE_CORE_TRANSACTION_TXN_MEMBER_H
#define NODE_CORE_TRANSACTION_TXN_MEMBER_H

#include "holdfast/internal/v1/channel.pb-c.h"
#include "node/core/transaction/txn_part.h"

/* Fills decision, vote or refusal of `result`. `place`: of the record in the entry. ERR_NEED. */
NODISCARD err txn_member_prepare(struct apply_context *context, uint32_t place,
                                 const Holdfast__Internal__V1__ChannelCredit *credit,
                                 Holdfast__Internal__V1__ChannelResult *result);
NODISCARD err txn_member_finish(struct apply_context *context,
                                const Holdfast__Internal__V1__ChannelCredit *credit,
                                Holdfast__Internal__V1__ChannelResult *result);
void txn_member_footprint(const Holdfast__Internal__V1__ChannelCredit *credit, struct need *keys);
/* What apply relies on: another version of this program may have sent it. */
bool txn_member_is_sound(struct arena *arena, uint32_t source, uint32_t shard, uint32_t shard_count,
                         const Holdfast__Internal__V1__ChannelCredit *credit);

#endif
