/* wallet: currencies and items of a request, for Grant, Spend and what else moves them. */
#ifndef NODE_RPC_WALLET_H
#define NODE_RPC_WALLET_H

#include "holdfast/v1/ledger.pb-c.h"
#include "node/core/goods/balance_list.h"
#include "node/core/goods/ledger.h"
#include "node/core/goods/wallet_change.h"
#include "node/core/handler/handler.h"

/* At most 16 known currencies, each once, with amounts of 1 to 2^53 - 1. ERR_INVALID. */
NODISCARD err wallet_amounts_check(struct check_context *context, size_t count,
                                   Holdfast__V1__CurrencyAmount *const *amounts);
/* Adds to a refusal of the currency `given` which declared one was probably meant, if one is near.
 */
void wallet_currency_hint(struct check_context *context, const char *given);
/* At most 64 items; attributes become canonical JSON objects. ERR_INVALID. */
NODISCARD err wallet_items_check(struct check_context *context, size_t count,
                                 Holdfast__V1__ItemSpec **items);
NODISCARD err wallet_reason_check(struct check_context *context, const char *reason);

/* Makes the items' rows. ret_items: room for `count`. ERR_CONFLICT. */
NODISCARD err wallet_mint(struct apply_context *context, size_t count,
                          Holdfast__V1__ItemSpec *const *specs, struct item_row *ret_items);
/* The balances after `changes`, and what is reserved of them, for an answer: BALANCE_LIST_TELL. */
struct balance_list wallet_balances(const struct apply_context *context, size_t count,
                                    const struct ledger_change *changes);
/* Sets both lists of any answer that has them. */
#define WALLET_TELL(context, count, changes, answer)                                               \
    do {                                                                                           \
        struct balance_list wallet_list = wallet_balances(context, count, changes);                \
        BALANCE_LIST_TELL(&wallet_list, answer);                                                   \
    } while (false)

#endif
