/* GetOperation: what became of an operation, or whose a receipt is. */
#include "tests/sim/oracle/answer.h"
#include "tests/sim/servers/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    const struct sim_op *target = &sim->ops[op->target];
    Holdfast__V1__GetOperationRequest request = HOLDFAST__V1__GET_OPERATION_REQUEST__INIT;

    (void)parts;
    request.entity = request_text(op->of_receipt ? target->id : target->entity);
    request.op_id = request_text(target->id);
    request_pack(&request.base, out);
}

static void told(const struct told *t)
{
    t->sim->counts.get_operations++;
    told_status(t, ((const Holdfast__Internal__V1__OperationAnswer *)t->response)->operation);
}

const struct workload_row workload_get_operation = {
    .method = METHOD_GET_OPERATION,
    .encode = encode,
    .rule = { .about_another = true, .told = told },
};
