/* Void: a reservation is given back. */
#include "tests/sim/servers/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__VoidReservationRequest request = HOLDFAST__V1__VOID_RESERVATION_REQUEST__INIT;

    REQUEST_HEAD(request, op, parts);
    request.reserve_op_id = request_text(sim->ops[op->target].id);
    request.reserve_seq = op->target_seq;
    request_pack(&request.base, out);
}

static struct op_model *target_of(const struct change *c)
{
    const Holdfast__V1__VoidReservationRequest *request = (const void *)c->request;

    return model_target(c, request->reserve_op_id);
}

static void effect(struct change *c, struct op_model *op, const ProtobufCMessage *response)
{
    (void)response;
    c->sim->counts.voided++;
    model_close_reservation(c, op, target_of(c), &(struct goods){ 0 });
}

static void refused(const struct change *c, const struct op_model *op,
                    const Holdfast__Internal__V1__Refusal *detail)
{
    model_reservation_refused(c, op, target_of(c), detail);
}

const struct workload_row workload_void_reservation = {
    .method = METHOD_VOID_RESERVATION,
    .shares = { [WISH_LEDGER] = { .place = 4, .weight = 16 } },
    .choose = server_choose_reservation,
    .fill = server_fill_reservation,
    .encode = encode,
    .rule = { .system_admitted = true, .effect = effect, .refused = refused },
};
