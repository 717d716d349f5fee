/* ResolveOperation: what became of an operation, or, with a seal, that nothing ever will. */
#include "node/core/codec/arena_proto.h"
#include "runtime/base/check.h"
#include "tests/sim/oracle/answer.h"
#include "tests/sim/servers/workload.h"

#define STATE(name) HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_##name

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    const struct sim_op *target = &sim->ops[op->target];
    Holdfast__V1__ResolveOperationRequest request = HOLDFAST__V1__RESOLVE_OPERATION_REQUEST__INIT;

    (void)parts;
    request.entity = request_text(target->entity);
    request.op_id = request_text(target->id);
    request.seal = op->seal;
    request_pack(&request.base, out);
}

static struct op_model *target_of(const struct change *c)
{
    const Holdfast__V1__ResolveOperationRequest *request = (const void *)c->request;

    return model_op(c->sim->oracle, c->op.entity, slice_from_text(request->op_id));
}

static void aborted(struct change *c, struct op_model *op)
{
    if (op->state == OP_COMMITTED)
        model_fail_op(c, op, "is resolved as aborted, and is done");
    if (op->state == OP_PENDING) {
        c->sim->oracle->pending--;
        c->player->claim_ms = 0;
    }
    if (op->state != OP_ABORTED)
        op->index = c->entry->index;
    op->state = OP_ABORTED;
}

static void resolved(struct change *c, struct op_model *op, int state)
{
    const Holdfast__V1__ResolveOperationRequest *request = (const void *)c->request;

    switch (state) {
    case STATE(COMMITTED):
        if (op->state != OP_COMMITTED)
            model_fail_op(c, op, "is resolved as done, and is not");
        break;
    case STATE(ABORTED):
        aborted(c, op);
        break;
    case STATE(REFUSED):
        if (op->state != OP_REFUSED)
            model_fail_op(c, op, "is resolved as refused, and was not");
        if (request->seal && op->attempt != UINT32_MAX)
            op->refused_index = c->entry->index;
        if (request->seal)
            op->attempt = UINT32_MAX;
        break;
    case STATE(EXPIRED):
        if (op->ms > c->shard->floor_ms || op->state == OP_PENDING)
            model_fail_op(c, op, "is resolved as too old, and is not");
        break;
    default:
        if (request->seal)
            model_fail_op(c, op, "is not sealed by a seal");
        if (op->state != OP_NONE && op->state != OP_PENDING)
            model_fail_op(c, op, "is resolved as unknown, and has an outcome");
        break;
    }
}

static void logged(struct change *c)
{
    const Holdfast__V1__ResolveOperationRequest *request = (const void *)c->request;
    struct op_model *op = target_of(c);
    const struct model_rule *rule = model_rule(c->sim->oracle, op->method);

    if (c->outcome->kind == OUTCOME_PENDING) {
        c->sim->counts.seals++;
        goods_sealed(c, op);
        return;
    }
    const Holdfast__Internal__V1__OperationAnswer *response = (const void *)arena_unpack(
        &c->sim->oracle->arena, &holdfast__internal__v1__operation_answer__descriptor,
        c->outcome->body);
    CHECK(response != NULL && response->operation != NULL);
    c->sim->counts.seals += request->seal != 0;
    int state = (int)response->operation->state;
    op->shard = c->number;
    if (model_key_may_be_over(c->shard, op, c->entry->owner_ms)) {
        if (state == STATE(UNKNOWN) && !request->seal)
            return;
        if (model_key_is_over(c->shard, op, c->entry->owner_ms) || state == STATE(ABORTED))
            op = model_key_again(c, op);
    }
    if (op->state == OP_PENDING && rule->plans != NULL && state == STATE(ABORTED))
        txn_sealed(c, op);
    if (op->state == OP_PENDING && rule->claims == NULL && state != STATE(PENDING))
        model_fail_op(c, op, "is settled by a seal at its source alone");
    resolved(c, op, state);
}

static void told(const struct told *t)
{
    told_status(t, ((const Holdfast__Internal__V1__OperationAnswer *)t->response)->operation);
}

const struct workload_row workload_resolve_operation = {
    .method = METHOD_RESOLVE_OPERATION,
    .encode = encode,
    .rule = { .about_another = true, .logged = logged, .told = told },
};
