#include "idl/method.h"
#include "node/rpc/methods.h"
#include "node/rpc/reservation.h"
#include "node/rpc/wallet.h"

static struct entry_target target_of(const Holdfast__V1__VoidReservationRequest *request)
{
    return (struct entry_target){
        .op_id = request->reserve_op_id,
        .seq = request->reserve_seq,
        .op_id_field = "reserve_op_id",
        .seq_field = "reserve_seq",
    };
}

static err ledger_void_reservation_check(struct check_context *context, ProtobufCMessage *message)
{
    Holdfast__V1__VoidReservationRequest *request = (Holdfast__V1__VoidReservationRequest *)message;

    err e = entry_target_check(context, "reserve_op_id", &request->reserve_op_id);
    return e == ERR_OK ? wallet_reason_check(context, request->reason) : e;
}

static void ledger_void_footprint(const struct op *op, const ProtobufCMessage *message,
                                  struct need *keys)
{
    struct entry_target target = target_of((const Holdfast__V1__VoidReservationRequest *)message);

    entry_target_footprint(op, &target, keys);
}

static err ledger_void_handle(struct apply_context *context, const ProtobufCMessage *message,
                              ProtobufCMessage *reply)
{
    const Holdfast__V1__VoidReservationRequest *request =
        (const Holdfast__V1__VoidReservationRequest *)message;
    Holdfast__V1__VoidReservationResponse *response =
        (Holdfast__V1__VoidReservationResponse *)reply;
    struct entry_target target = target_of(request);
    struct ledger_change changes[LEDGER_CHANGES_MAX];
    struct reservation reservation;

    err e = reservation_find(context, &target, &reservation);
    if (e != ERR_OK)
        return e;
    const struct reservation_end end = {
        .kind = HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_VOID,
        .reason = request->reason,
    };
    reservation_close(context, &reservation, &end, changes);
    response->ledger_seq = context->player->ledger_seq;
    response->reserve_seq = reservation.entry->seq;
    WALLET_TELL(context, reservation.entry->n_changes, changes, response);
    return ERR_OK;
}

const struct handler ledger_void_reservation_handler = {
    .method = METHOD_VOID_RESERVATION,
    .admits = ADMITS_SESSION | ADMITS_SYSTEM | ADMITS_UNHELD,
    .check = ledger_void_reservation_check,
    .footprint = ledger_void_footprint,
    .handle = ledger_void_handle,
};
