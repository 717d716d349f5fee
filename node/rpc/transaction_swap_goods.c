#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/rpc/methods.h"
#include "node/rpc/transaction_plan.h"

typedef Holdfast__Internal__V1__SwapGoodsRequest swap_request;

static err transaction_swap_goods_check(struct check_context *context, ProtobufCMessage *message)
{
    struct txn_plan plan;

    return transaction_plan_swap(context, (swap_request *)message, &plan);
}

/* Authorities are not part of it: a retry may come with a new session. */
static struct hash128 transaction_swap_goods_payload(struct arena *arena, const struct op *op,
                                                     ProtobufCMessage *message)
{
    static char none[] = "";

    ((swap_request *)message)->other_authority = none;
    return op_payload(op->method, arena_pack(arena, message));
}

static err transaction_swap_goods_handle(struct apply_context *context,
                                         const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    Holdfast__V1__SwapResponse *response = (Holdfast__V1__SwapResponse *)reply;
    struct txn_plan plan =
        transaction_plan_logged(context->arena, context->meta, context->op, message);

    return txn_execute(context, &plan, &response->n_players, &response->players);
}

const struct handler transaction_swap_goods_handler = {
    .method = METHOD_SWAP_GOODS,
    .admits = ADMITS_SESSION | ADMITS_UNHELD | ADMITS_SYSTEM,
    .check = transaction_swap_goods_check,
    .payload = transaction_swap_goods_payload,
    .footprint = transaction_footprint,
    .handle = transaction_swap_goods_handle,
};
