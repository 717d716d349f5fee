/* Whose API key acts as the system: each call of a game server has one of its own, "k<op>.<call>",
 * as if keys were rotated all the time. Ledgers tell the one under which an operation was carried
 * out first; what its retries say is no part of it. Part of the model. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "node/core/goods/ledger.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"
#include "runtime/cluster/caller_name.h"
#include "tests/sim/model/model.h"

#define SYSTEM    "system:"
#define AUTHORITY SYSTEM "payments"
#define TOLD_SIZE (sizeof AUTHORITY + 1 + CALLER_NAME_BYTES_MAX)

void caller_append(const struct sim *sim, const struct sim_op *op, struct buf *request)
{
    char name[CALLER_NAME_BYTES_MAX + 1];

    if (op->authority != BY_SYSTEM)
        return;
    snprintf(name, sizeof name, "k%td.%u", op - sim->ops, op->calls);
    uint8_t *out = buf_reserve(request, CALLER_NAME_ENCODED_SIZE);
    request->size += caller_name_put(slice_from_text(name), out);
}

/* Some call of that operation had this name. */
static bool was_named(const struct change *c, const char *name)
{
    uint32_t place, call;

    if (sscanf(name, "k%" SCNu32 ".%" SCNu32, &place, &call) != 2 || place >= c->sim->op_count)
        return false;
    const struct sim_op *op = &c->sim->ops[place];
    return op->authority == BY_SYSTEM && call > 0 && call <= op->calls &&
           slice_equal(slice_from_text(op->entity), c->op.entity) &&
           slice_equal(slice_from_text(op->id), c->op.id.text);
}

void caller_take(const struct change *c, struct op_model *op)
{
    uint32_t version = applier_meta(c->shard->applier)->apply_version;

    op->caller[0] = 0;
    op->named = c->op.authority.kind == AUTHORITY_SYSTEM;
    if (!op->named)
        return;
    if (c->op.caller.size == 0) {
        if (version >= CALLER_APPLY_VERSION)
            model_fail_op(c, op, "acts as the system, and the log does not tell whose key it was");
        return;
    }
    CHECK(c->op.caller.size < sizeof op->caller);
    memcpy(op->caller, c->op.caller.data, c->op.caller.size);
    op->caller[c->op.caller.size] = 0;
    if (version < CALLER_APPLY_VERSION)
        model_fail_op(c, op, "tells whose key it was beside replicas that cannot read it");
    if (!was_named(c, op->caller))
        model_fail_op(c, op, "tells a key that never asked for it");
}

/* ---- by the rows ---- */

/* A `key:` that was used again has entries of each of its lives. */
static bool may_tell(const struct oracle *oracle, const struct op_model *op, const char *told)
{
    for (;;) {
        char expected[TOLD_SIZE];

        snprintf(expected, sizeof expected, AUTHORITY "%s%s", op->caller[0] != 0 ? "/" : "",
                 op->caller);
        if (op->named ? strcmp(told, expected) == 0 : strncmp(told, SYSTEM, strlen(SYSTEM)) != 0)
            return true;
        if (op->before == 0)
            return false;
        op = &oracle->ops[op->before - 1];
    }
}

static void look_at(struct sim *sim, uint32_t shard, struct slice entity, struct slice value)
{
    Holdfast__V1__LedgerEntry *entry;
    struct arena arena = { 0 };

    CHECK(ledger_row_decode(value, &arena, &entry) == ERR_OK);
    const struct op_model *op = model_op(sim->oracle, entity, slice_from_text(entry->op_id));
    if (entry->kind != HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_EXPIRY &&
        !may_tell(sim->oracle, op, entry->authority))
        sim_fail(sim, shard, "%.*s: the ledger tells %s of %s, which \"%s\" asked for first",
                 (int)entity.size, (const char *)entity.data, entry->authority, entry->op_id,
                 op->caller);
    sim->counts.callers_told += strchr(entry->authority, '/') != NULL;
    arena_deinit(&arena);
}

void callers_check(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->shard_count; i++) {
        struct state *state = applier_state(sim->oracle->shards[i].applier);
        const struct state_write *writes;
        uint32_t count;
        CHECK(state_checkpoint_begin(state, &writes, &count));
        for (uint32_t j = 0; j < count; j++) {
            if (writes[j].value != NULL && writes[j].key.data[0] == TABLE_LEDGER)
                look_at(sim, i, row_entity(writes[j].key),
                        (struct slice){ writes[j].value->bytes, writes[j].value->size });
        }
        state_checkpoint_end(state, false);
    }
}
