#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/rpc/methods.h"
#include "node/rpc/transaction_plan.h"

typedef Holdfast__V1__ExecuteTransactionRequest execute_request;

static err transaction_execute_transaction_check(struct check_context *context,
                                                 ProtobufCMessage *message)
{
    struct txn_plan plan;

    return transaction_plan_execute(context, (execute_request *)message, &plan);
}

/* Authorities are not part of it: a retry may come with a new session. */
static struct hash128 transaction_execute_payload(struct arena *arena, const struct op *op,
                                                  ProtobufCMessage *message)
{
    static char none[] = "";
    execute_request *request = (execute_request *)message;

    for (size_t i = 0; i < request->n_others; i++)
        request->others[i]->authority = none;
    return op_payload(op->method, arena_pack(arena, message));
}

static err transaction_execute_handle(struct apply_context *context,
                                      const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    Holdfast__V1__ExecuteTransactionResponse *response =
        (Holdfast__V1__ExecuteTransactionResponse *)reply;
    struct txn_plan plan =
        transaction_plan_logged(context->arena, context->meta, context->op, message);

    return txn_execute(context, &plan, &response->n_players, &response->players);
}

const struct handler transaction_execute_transaction_handler = {
    .method = METHOD_EXECUTE_TRANSACTION,
    .admits = ADMITS_SESSION | ADMITS_SYSTEM | ADMITS_UNHELD,
    .check = transaction_execute_transaction_check,
    .payload = transaction_execute_payload,
    .footprint = transaction_footprint,
    .handle = transaction_execute_handle,
};
