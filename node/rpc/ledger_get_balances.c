#include "idl/method.h"
#include "node/core/profile/profile.h"
#include "node/rpc/methods.h"
#include "node/rpc/wallet.h"

static err ledger_get_balances_read(struct read_context *context, const ProtobufCMessage *message,
                                    ProtobufCMessage *reply)
{
    Holdfast__V1__GetBalancesResponse *response = (Holdfast__V1__GetBalancesResponse *)reply;
    struct player player;

    (void)message;
    err e = player_row_read(context, &player);
    if (e != ERR_OK)
        return e;
    struct balance_list list = balances_read(context->arena, &player, BALANCE_LIST_READ);
    BALANCE_LIST_TELL(&list, response);
    response->version = player.version;
    response->as_of = as_of_text(context);
    return ERR_OK;
}

const struct handler ledger_get_balances_handler = {
    .method = METHOD_GET_BALANCES,
    .read = ledger_get_balances_read,
};
