/*
 * receipt: an operation under "receipt:<id>" is one player's in the whole cluster. The entity of
 * that name binds player and payload, first come, for ever; only then is the operation carried out
 * at its home. On one shard that is one entry; else a record of the channel asks, and the entry
 * that settles it carries the operation out. DESIGN section 6, docs/receipts.md.
 */
#ifndef NODE_CORE_RECEIPT_RECEIPT_H
#define NODE_CORE_RECEIPT_RECEIPT_H

#include "holdfast/internal/v1/channel.pb-c.h"
#include "holdfast/internal/v1/operation.pb-c.h"
#include "node/core/handler/handler.h"

/* "receipt:<id>", as an op_id or as an entity. */
bool receipt_is(struct slice text);
/* Whether an operation is carried out only once its receipt is bound. */
bool receipt_concerns(const struct handler *handler, const struct op *op);
/* Before the log. ERR_INVALID: another method, or authority, than may have a receipt as op_id. */
NODISCARD err receipt_check(struct arena *arena, struct refusal *refusal,
                            const struct handler *handler, const struct op *op);

/* Asked about as an entity, it is its own op_id. ERR_INVALID: it is not, or is too long. */
NODISCARD err receipt_entity_check(struct arena *arena, struct refusal *refusal,
                                   struct slice entity, const char *op_id);

/* ---- at the operation's home ---- */

/*
 * Binds, if the receipt's shard is this one: *ret_bound, and the operation goes on. Else opens a
 * record of the channel with `operation`, its body: context->pending. ERR_NEED; ERR_CONFLICT:
 * OPERATION_ID_MISMATCH or OPERATION_ABORTED, to be stored; THROTTLED, not to be.
 */
NODISCARD err receipt_enter(struct apply_context *context, struct slice operation, bool *ret_bound);
void receipt_enter_footprint(const struct op *op, uint32_t shard, struct need *keys);
/* The operation was refused, and its transaction rolled back: the receipt stays bound. */
void receipt_keep(struct apply_context *context);
/* The receipt's shard has decided on `row`: carries the operation out, or refuses it. `context` is
 * the caller's own copy; `place`: of the record in the entry. ret_settled->method is 0 if no caller
 * is told. ERR_NEED; ERR_CONFLICT: a row cannot be read, the record is to stay open. */
NODISCARD err receipt_settle(struct apply_context *context,
                             const Holdfast__Internal__V1__OutboxRow *row,
                             const Holdfast__Internal__V1__ChannelResult *result, uint32_t place,
                             struct settled *ret_settled);

/* ---- at the receipt's shard ---- */

/* Fills decision or refusal of `result`; a row that cannot be read refuses, for now. ERR_NEED. */
NODISCARD err receipt_decide(struct apply_context *context,
                             const Holdfast__Internal__V1__ChannelCredit *credit,
                             Holdfast__Internal__V1__ChannelResult *result);
void receipt_footprint(const Holdfast__Internal__V1__ChannelCredit *credit, struct need *keys);
/* What apply relies on: another version of this program may have sent it. */
bool receipt_is_sound(const Holdfast__Internal__V1__ChannelCredit *credit, uint32_t shard,
                      uint32_t shard_count);

#define RECEIPT_DAMAGE "a receipt's row cannot be read"

/* A row's value, in the arena. NULL: it cannot be read. */
Holdfast__Internal__V1__ReceiptRow *receipt_decode(struct arena *arena, struct slice value);

/* Whose it is: BOUND, ABORTED (sealed, no one's) or UNKNOWN. ERR_NEED; ERR_CORRUPT: RECEIPT_DAMAGE.
 */
NODISCARD err receipt_status(struct state *state, struct arena *arena, struct need *need,
                             struct slice receipt,
                             Holdfast__Internal__V1__OperationRecord *ret_status);
/* No player's from here on, unless it is bound. ERR_NEED; ERR_CONFLICT: RECEIPT_DAMAGE. */
NODISCARD err receipt_seal(struct apply_context *context, struct slice receipt);

#endif
