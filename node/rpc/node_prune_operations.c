#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/handler/outcome_row.h"
#include "node/core/rows/rows.h"
#include "node/rpc/methods.h"
#include "runtime/base/check.h"

#define WINDOW_MS_MIN (15u * 60u * 1000u)
#define ROWS_MAX      4096u

/* The oldest operations, up to a floor. */
struct prune {
    struct arena *arena;
    uint64_t floor_ms;
    uint32_t count;
    struct slice *keys;
};

/* What became of a transfer on its way must still be learned: the floor stays below its id. A row
 * that cannot be read goes when its time has come. */
static bool is_on_its_way(struct slice value)
{
    struct outcome_row row;

    if (outcome_row_decode(value, &row) != ERR_OK)
        return false;
    return row.state == OUTCOME_ROW_PENDING && row.method != METHOD_START_SESSION;
}

static void stop_below(struct prune *prune, uint64_t ms)
{
    while (prune->count > 0 && row_operation_ms(prune->keys[prune->count - 1]) >= ms)
        prune->count--;
    prune->floor_ms = ms - 1;
}

static bool take_key(void *context, struct slice key, struct slice value)
{
    struct prune *prune = context;

    if (row_operation_ms(key) > prune->floor_ms)
        return false;
    if (is_on_its_way(value)) {
        stop_below(prune, row_operation_ms(key));
        return false;
    }
    prune->keys[prune->count++] = arena_copy(prune->arena, key);
    return true;
}

static uint64_t floor_of(const struct apply_context *context, uint64_t asked_ms)
{
    uint64_t youngest_ms =
        context->owner_ms > WINDOW_MS_MIN ? context->owner_ms - WINDOW_MS_MIN : 0;
    return asked_ms < youngest_ms ? asked_ms : youngest_ms;
}

/*
 * A full page leaves the floor at the last row it removed, so rows below the floor are always
 * gone, whatever remains to be done; ids between them are refused from here on.
 */
static err node_prune_operations_handle(struct apply_context *context,
                                        const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    const Holdfast__Internal__V1__PruneOperationsRequest *request =
        (const Holdfast__Internal__V1__PruneOperationsRequest *)message;
    Holdfast__Internal__V1__PruneOperationsResponse *response =
        (Holdfast__Internal__V1__PruneOperationsResponse *)reply;
    uint32_t rows_max = request->rows_max < ROWS_MAX ? request->rows_max : ROWS_MAX;
    struct state_range range = { .prefix = SLICE_LITERAL("o"), .limit = rows_max };
    struct prune prune = {
        .arena = context->arena,
        .floor_ms = floor_of(context, request->floor_ms),
        .keys = arena_alloc(context->arena, sizeof *prune.keys * (rows_max + 1u)),
    };

    if (rows_max == 0)
        return ERR_OK;
    err e = state_range_visit(context->state, &range, context->need, take_key, &prune);
    if (e != ERR_OK)
        return e;
    for (uint32_t i = 0; i < prune.count; i++)
        state_delete(context->state, prune.keys[i]);
    if (prune.count == rows_max)
        prune.floor_ms = row_operation_ms(prune.keys[prune.count - 1]);
    damage_count_down(context->damage, &context->meta->operation_count, prune.count);
    if (prune.floor_ms > context->meta->floor_ms)
        context->meta->floor_ms = prune.floor_ms;
    response->removed = prune.count;
    return ERR_OK;
}

const struct handler node_prune_operations_handler = {
    .method = METHOD_PRUNE_OPERATIONS,
    .handle = node_prune_operations_handle,
};
