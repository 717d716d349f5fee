/*
 * audit: keeps a shard's totals while rows change, and copies of them at consistent cuts. DESIGN
 * section 7, docs/containment.md.
 *
 * A cut is taken before an entry: before one that asks for it (TakeCut), and before one that brings
 * word from a shard that has taken it already (Deliver, Settle), as Lai and Yang do. What such a
 * message says was sent after the cut is so also received after it.
 *
 * A record counts at its source while it stands in the outbox. If its destination had decided on it
 * before the cut, it would count twice; the source learns of that when it settles the record, and
 * takes it off the copy (audit_settled). A copy is final once no record that was open then is.
 */
#ifndef NODE_CORE_GOODS_AUDIT_H
#define NODE_CORE_GOODS_AUDIT_H

#include "holdfast/internal/v1/channel.pb-c.h"
#include "holdfast/internal/v1/node.pb-c.h"
#include "node/core/handler/handler.h"

struct auditor {
    struct meta *meta;
    struct arena arena; /* For one row at a time. */
};

/* A state_observer's `row`; `context` is a struct auditor. */
void audit_row(void *context, struct slice key, struct slice before, struct slice after);

/* Takes the cut, unless the shard has come so far already. Before anything is changed; once more
 * after ERR_NEED does no harm. */
void audit_cut(struct meta *meta, uint64_t cut);

/* In the transaction that settles a record by what its destination decided. */
void audit_settled(struct apply_context *context, const Holdfast__Internal__V1__OutboxRow *row,
                   const Holdfast__Internal__V1__ChannelResult *result);
/* In the transaction in which a transaction of players is decided: what it makes. */
void audit_made(struct apply_context *context, const Holdfast__Internal__V1__TxnDelta *made);

/* In the arena. `with_buckets`: those that are not zero, too. */
void audit_tell(struct arena *arena, const struct meta *meta, bool with_buckets,
                Holdfast__Internal__V1__TakeCutResponse *ret_response);

#endif
