/* txn_delta: what a transaction between shards does to goods, for the audit (audit.h). */
#ifndef NODE_CORE_TRANSACTION_TXN_DELTA_H
#define NODE_CORE_TRANSACTION_TXN_DELTA_H

#include "holdfast/internal/v1/transaction.pb-c.h"
#include "runtime/base/arena.h"

/* What FINISH, if it commits, will change at a member that has prepared: what comes, less what
 * stands in escrow. In the arena. */
Holdfast__Internal__V1__TxnDelta *
txn_delta_of_finish(struct arena *arena, const Holdfast__Internal__V1__TxnRow *row,
                    const Holdfast__Internal__V1__TxnMember *member);
/* What it makes in all, less what it uses up. Every member has prepared. In the arena. */
Holdfast__Internal__V1__TxnDelta *txn_delta_made(struct arena *arena,
                                                 const Holdfast__Internal__V1__TxnRow *row);

#endif
