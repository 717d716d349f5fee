/* AddToCounter: what a player has added to a target rises. */
#include "tests/sim/favorites/counter.h"
#include "tests/sim/favorites/favorite.h"
#include "tests/sim/servers/workload.h"

#define ADDED_MAX 60u

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__AddToCounterRequest request = HOLDFAST__V1__ADD_TO_COUNTER_REQUEST__INIT;

    (void)sim;
    REQUEST_HEAD(request, op, parts);
    request.counter = counter_name(op);
    request.target_id = favorite_target(op);
    request.amount = 1 + op->amount / 2 % ADDED_MAX;
    request_pack(&request.base, out);
}

static void effect(struct change *c, struct op_model *op, const ProtobufCMessage *response)
{
    (void)op;
    counter_carried_out(c, (const void *)response);
}

const struct workload_row workload_add_to_counter = {
    .method = METHOD_ADD_TO_COUNTER,
    .encode = encode,
    .rule = { .system_admitted = true, .effect = effect, .refused = counter_refused },
};
