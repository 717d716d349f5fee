/* wallet_change: balances rise and fall, within the limits that the policy in force declares. */
#ifndef NODE_CORE_GOODS_WALLET_CHANGE_H
#define NODE_CORE_GOODS_WALLET_CHANGE_H

#include "holdfast/v1/ledger.pb-c.h"
#include "node/core/goods/ledger.h"
#include "node/core/handler/handler.h"

/* Whether the policy in force knows it; `field` names it. ERR_INVALID, or ERR_CONFLICT while there
 * is no policy. */
NODISCARD err wallet_currency_check(struct arena *arena, struct refusal *refusal,
                                    const struct policy *policy, const char *field,
                                    const char *name);
/* Adds (sign 1) to context->player or takes (sign -1). ret_changes: room for `count`.
 * ERR_CONFLICT, ERR_INVALID. */
NODISCARD err wallet_change(struct apply_context *context, size_t count,
                            Holdfast__V1__CurrencyAmount *const *amounts, int sign,
                            struct ledger_change *ret_changes);

#endif
