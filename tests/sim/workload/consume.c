/* Consume: an item is gone. */
#include <stdio.h>

#include "holdfast/v1/inventory.pb-c.h"
#include "runtime/base/check.h"
#include "tests/sim/workload.h"

static bool choose(struct sim *sim, struct workload_choice *choice)
{
    choice->uid = goods_pick_item(sim, choice->player);
    return choice->uid != NULL;
}

static bool fill(const struct sim *sim, struct sim_op *op, const struct workload_choice *choice)
{
    (void)sim;
    snprintf(op->uid, sizeof op->uid, "%s", choice->uid);
    return true;
}

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__ConsumeRequest request = HOLDFAST__V1__CONSUME_REQUEST__INIT;

    (void)sim;
    REQUEST_HEAD(request, op, parts);
    request.n_item_uids = 1;
    request.item_uids = parts->uids;
    request_pack(&request.base, out);
}

static void effect(struct change *c, struct op_model *op, const ProtobufCMessage *response)
{
    const Holdfast__V1__ConsumeRequest *request = (const void *)c->request;

    (void)response;
    CHECK(request->n_item_uids == 1);
    c->sim->counts.consumed++;
    op->item = goods_item_find(&c->sim->oracle->book, request->item_uids[0]);
    model_item_goes(c, op, op->item);
}

const struct workload_row workload_consume = {
    .method = METHOD_CONSUME,
    .shares = { [WISH_LEDGER] = { .place = 0, .weight = 20 } },
    .reverse_tried = true,
    .choose = choose,
    .fill = fill,
    .encode = encode,
    .rule = { .reversal = REVERSED_BY_GIVING, .effect = effect },
};
