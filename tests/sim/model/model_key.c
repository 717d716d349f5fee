/* Ids of kind `key:`: what came of one stands a day long, and is then forgotten. Part of the model.
 */
#include <string.h>

#include "node/core/codec/op.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"
#include "tests/sim/model/model.h"

#define DATED_LATE_MS 1u /* By programs of the next apply version (APPLY_VERSION_TEST). */

/* What it came to stands in the log, and does not change any more. */
static bool is_decided(const struct op_model *op)
{
    return op->state == OP_COMMITTED || op->state == OP_REFUSED || op->state == OP_ABORTED;
}

static uint64_t decided_index(const struct shard_oracle *shard, const struct op_model *op)
{
    uint64_t index = op->index;

    if (op->settled_index > index)
        index = op->settled_index;
    if (op->refused_index > index)
        index = op->refused_index;
    CHECK(index > 0 && index <= shard->count);
    return index;
}

/* Under an apply version that dates outcomes. */
static bool is_dated(const struct shard_oracle *shard, const struct op_model *op)
{
    return shard->dated_from > 0 && decided_index(shard, op) > shard->dated_from;
}

/* More than a day ago, and so much more. A seal of an earlier apply version stands for ever. */
static bool was_decided_before(const struct shard_oracle *shard, const struct op_model *op,
                               uint64_t now_ms, uint64_t more_ms)
{
    bool sealed = op->state == OP_ABORTED || op->attempt == UINT32_MAX;

    if (!op->is_key || !is_decided(op) || (sealed && !is_dated(shard, op)))
        return false;
    uint64_t at_ms = shard->entries[decided_index(shard, op) - 1]->owner_ms;
    return now_ms > at_ms + OP_ID_KEY_MS + more_ms;
}

bool model_key_may_be_over(const struct shard_oracle *shard, const struct op_model *op,
                           uint64_t now_ms)
{
    return was_decided_before(shard, op, now_ms, 0);
}

bool model_key_is_over(const struct shard_oracle *shard, const struct op_model *op, uint64_t now_ms)
{
    return was_decided_before(shard, op, now_ms, DATED_LATE_MS);
}

struct op_model *model_key_again(struct change *c, struct op_model *op)
{
    struct op_model *again = model_op_again(c->sim->oracle, op);

    c->sim->counts.keys_reused++;
    again->packets = op->packets;
    c->was = OP_NONE;
    return again;
}

const struct op_model *model_life(const struct oracle *oracle, const struct op_model *op,
                                  uint64_t index)
{
    const struct op_model *life = op;

    while (life->index != index && life->before > 0)
        life = &oracle->ops[life->before - 1];
    return life->index == index ? life : op;
}

bool model_was(const struct oracle *oracle, const struct op_model *op, enum op_state state)
{
    while (op->state != state && op->before > 0)
        op = &oracle->ops[op->before - 1];
    return op->state == state;
}

/* Rows of the oracle's own replica, which are all in memory. */
static bool row_stands(const struct shard_oracle *shard, const struct op_model *op)
{
    const char *space = strchr(op->key, ' ');
    struct row_key key;
    struct slice value;
    struct op_id id;
    const char *why;

    CHECK(space != NULL);
    struct slice entity = { (const uint8_t *)op->key, (size_t)(space - op->key) };
    CHECK(op_id_parse(slice_from_text(space + 1), &id, &why) == ERR_OK);
    row_key_operation(&key, entity, &id);
    return state_find(applier_state(shard->applier), row_key_slice(&key), &value) == STATE_PRESENT;
}

void model_keys_pruned(struct change *c)
{
    const struct oracle *oracle = c->sim->oracle;
    const struct shard_oracle *shard = c->shard;

    for (uint32_t i = 0; i < oracle->op_count; i++) {
        const struct op_model *op = &oracle->ops[i];
        if (!op->is_key || op->again || op->shard != c->number || !is_decided(op))
            continue;
        bool stands = row_stands(shard, op);
        if (stands && is_dated(shard, op) && model_key_is_over(shard, op, c->entry->owner_ms))
            model_fail_op(c, op, "is over, and its outcome is kept");
        if (!stands && op->state == OP_COMMITTED &&
            (!is_dated(shard, op) || !model_key_may_be_over(shard, op, c->entry->owner_ms)))
            model_fail_op(c, op, "is not over, and its outcome is forgotten");
    }
}
