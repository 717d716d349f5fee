#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/session/timers.h"
#include "node/rpc/methods.h"
#include "node/rpc/reservation.h"

/* Looks again whether it is due: it may have been posted or voided before the entry. What comes
 * back is recorded under the id of the operation that reserved it. */
static err node_reservation_due_handle(struct apply_context *context,
                                       const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    const Holdfast__Internal__V1__ReservationDueRequest *request =
        (const Holdfast__Internal__V1__ReservationDueRequest *)message;
    const struct op *due_op = context->op;
    struct ledger_change changes[LEDGER_CHANGES_MAX];
    struct op reserve_op = *due_op;
    struct reservation reservation;
    bool due = false;

    (void)reply;
    err e = reservation_find_due(context, request->ledger_seq, &reservation, &due);
    if (e != ERR_OK)
        return e;
    if (!due) {
        const struct timer_row wrong = { .reservation_seq = request->ledger_seq };
        if (timers_forget(context, due_op->entity, &wrong) > 0)
            damage_note(context->damage, due_op->entity, RESERVATION_DAMAGE);
        return ERR_OK;
    }
    const struct reservation_end end = {
        .kind = HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_EXPIRY,
        .reason = reservation.entry->reason,
    };
    reserve_op.id.text = slice_from_text(reservation.entry->op_id);
    context->op = &reserve_op;
    context->authority_text = SLICE_LITERAL("expiry");
    reservation_close(context, &reservation, &end, changes);
    context->op = due_op;
    context->player->version++;
    context->player_changed = true;
    return ERR_OK;
}

const struct handler node_reservation_due_handler = {
    .method = METHOD_RESERVATION_DUE,
    .handle = node_reservation_due_handle,
};
