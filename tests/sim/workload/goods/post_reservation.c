/* Post: what a reservation has set aside is spent, or sent to another player. */
#include "idl/error_code.h"
#include "tests/sim/servers/workload.h"

/* Part of what was reserved, or one too much. */
static void choose_part(const struct sim_op *target, const struct sim_op *op,
                        struct request_parts *parts)
{
    struct request_parts reserved;

    request_parts_fill(target, &reserved);
    parts->amount.currency = reserved.amount.currency;
    parts->more[0].currency = reserved.more[0].currency;
    parts->more[0].amount = 1 + op->twist / 2 % reserved.more[0].amount;
    parts->amount.amount = 1 + op->amount / 3 % (server_reserved_amount(target) + 1);
}

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__PostReservationRequest request = HOLDFAST__V1__POST_RESERVATION_REQUEST__INIT;

    REQUEST_HEAD(request, op, parts);
    request.reserve_op_id = request_text(sim->ops[op->target].id);
    request.reserve_seq = op->target_seq;
    request.n_currencies = op->amount % 3 == 0 ? 1 + op->twist % 2 : 0;
    request.currencies = parts->amounts;
    if (op->amount % 15 > 0) /* Else of any currency, as it comes. */
        choose_part(&sim->ops[op->target], op, parts);
    if (op->amount % 4 < 2)
        request.to_player_id = parts->to;
    request_pack(&request.base, out);
}

static struct op_model *target_of(const struct change *c)
{
    const Holdfast__V1__PostReservationRequest *request = (const void *)c->request;

    return model_target(c, request->reserve_op_id);
}

/* What it takes of its reservation, which it closes. */
static struct goods post(const struct change *c, struct op_model *op)
{
    const Holdfast__V1__PostReservationRequest *request = (const void *)c->request;
    struct op_model *target = target_of(c);
    struct goods goods = target->set_aside;

    c->sim->counts.posted++;
    if (request->n_currencies > 0)
        goods = (struct goods){ 0 };
    for (size_t i = 0; i < request->n_currencies; i++)
        goods.amounts[model_currency(request->currencies[i]->currency)] +=
            request->currencies[i]->amount;
    model_close_reservation(c, op, target, &goods);
    op->sent = request->to_player_id[0] != '\0';
    return goods;
}

static void sends(const struct change *c, struct goods_wish *ret_wish)
{
    const Holdfast__V1__PostReservationRequest *request = (const void *)c->request;

    ret_wish->to = model_player_of_id(request->to_player_id);
    ret_wish->goods = post(c, model_op(c->sim->oracle, c->op.entity, c->op.id.text));
    ret_wish->reserved = true;
}

static void effect(struct change *c, struct op_model *op, const ProtobufCMessage *response)
{
    const Holdfast__V1__PostReservationRequest *request = (const void *)c->request;

    if (request->to_player_id[0] != '\0') {
        goods_sent(c, op, response);
        return;
    }
    struct goods goods = post(c, op);
    for (uint32_t i = 0; i < SIM_CURRENCIES; i++)
        c->sim->oracle->book.made[i] -= goods.amounts[i];
}

static void refused(const struct change *c, const struct op_model *op,
                    const Holdfast__Internal__V1__Refusal *detail)
{
    const Holdfast__V1__PostReservationRequest *request = (const void *)c->request;
    const struct op_model *target = target_of(c);
    bool more = false;

    model_reservation_refused(c, op, target, detail);
    for (size_t i = 0; i < request->n_currencies; i++)
        more |= request->currencies[i]->amount >
                target->set_aside.amounts[model_currency(request->currencies[i]->currency)];
    if (detail->code == CODE(INSUFFICIENT_FUNDS) && !more)
        model_fail_op(c, op, "is refused as more than is reserved, and is not");
}

const struct workload_row workload_post_reservation = {
    .method = METHOD_POST_RESERVATION,
    .shares = { [WISH_LEDGER] = { .place = 3, .weight = 24 } },
    .reverse_tried = true,
    .choose = server_choose_reservation,
    .fill = server_fill_reservation,
    .encode = encode,
    .rule = { .system_admitted = true,
              .reversal = REVERSED_BY_GIVING, /* Unless it was sent. */
              .wants = WANTS_MAIL,
              .effect = effect,
              .sends = sends,
              .refused = refused },
};
