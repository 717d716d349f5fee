/*
 * transaction_plan: what a request of TransactionService does, player by player. Before the log it
 * says what is wrong with it; at apply it makes the same plan again. docs/transactions.md.
 */
#ifndef NODE_RPC_TRANSACTION_PLAN_H
#define NODE_RPC_TRANSACTION_PLAN_H

#include "holdfast/internal/v1/transaction.pb-c.h"
#include "node/core/transaction/txn_home.h"

/* Borrows from the request, which may be made canonical. ERR_INVALID or ERR_CONFLICT with
 * context->refusal. */
NODISCARD err transaction_plan_execute(struct check_context *context,
                                       Holdfast__V1__ExecuteTransactionRequest *request,
                                       struct txn_plan *ret_plan);
NODISCARD err transaction_plan_swap(struct check_context *context,
                                    Holdfast__Internal__V1__SwapGoodsRequest *request,
                                    struct txn_plan *ret_plan);
/* Of a request that stands in the log. */
struct txn_plan transaction_plan_logged(struct arena *arena, const struct meta *meta,
                                        const struct op *op, const ProtobufCMessage *request);
/* A footprint or an application needs no more than the plan. */
void transaction_footprint(const struct op *op, const ProtobufCMessage *request, struct need *keys);

#endif
