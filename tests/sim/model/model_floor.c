/* What a shard keeps of operations, and what it may forget: held against the rows of the oracle's
 * own replica. Part of the model. */
#include <inttypes.h>

#include "idl/error_code.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/handler/operation_floor.h"
#include "node/core/handler/outcome_row.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"
#include "tests/sim/model/model.h"

bool floor_refuses(const struct change *c)
{
    if (c->outcome->kind != OUTCOME_REFUSED)
        return false;
    const Holdfast__Internal__V1__Refusal *detail = (const void *)arena_unpack(
        &c->sim->oracle->arena, &holdfast__internal__v1__refusal__descriptor, c->outcome->body);
    CHECK(detail != NULL);
    return detail->code == CODE(OPERATION_EXPIRED);
}

struct kept {
    uint64_t rows, pending;
};

static bool count_row(void *context, struct slice key, struct slice value)
{
    struct kept *kept = context;
    struct outcome_row row;

    (void)key;
    kept->rows++;
    kept->pending += outcome_row_decode(value, &row) == ERR_OK && row.state == OUTCOME_ROW_PENDING;
    return true;
}

void floor_check(struct sim *sim, uint32_t number)
{
    struct shard_oracle *shard = &sim->oracle->shards[number];
    const struct meta *meta = applier_meta(shard->applier);
    struct state_range all = { .prefix = SLICE_LITERAL("o"), .limit = UINT32_MAX };
    struct kept kept = { 0 };
    uint64_t pending = 0;

    CHECK(state_range_visit(applier_state(shard->applier), &all, &shard->need, count_row, &kept) ==
          ERR_OK);
    for (uint32_t i = 0; i < sim->oracle->op_count; i++) {
        struct op_model *op = &sim->oracle->ops[i];
        if (op->shard != number || op->state != OP_PENDING || op->ms == UINT64_MAX)
            continue;
        op->forgotten |= meta->apply_version < FLOOR_APPLY_VERSION && op->ms <= meta->floor_ms &&
                         op->method == METHOD_START_SESSION;
        if (op->forgotten)
            continue;
        pending++;
        sim->counts.pending_below += op->ms <= meta->floor_ms;
    }
    if (kept.rows != meta->operation_count)
        sim_fail(sim, number, "%" PRIu64 " operations are kept, and %" PRIu64 " are counted",
                 kept.rows, meta->operation_count);
    if (kept.pending != pending)
        sim_fail(sim, number,
                 "%" PRIu64 " operations stand as pending, and %" PRIu64 " wait for their end",
                 kept.pending, pending);
}
