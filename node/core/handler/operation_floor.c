#include "node/core/handler/operation_floor.h"

bool operation_floor_passed(const struct meta *meta, const struct op_id *id)
{
    return !id->typed && uuid_v7_ms(&id->uuid) <= meta->floor_ms;
}

bool operation_expired(const struct meta *meta, uint32_t version, const struct op_id *id,
                       enum state_found found)
{
    return operation_floor_passed(meta, id) &&
           (found == STATE_ABSENT || version < FLOOR_APPLY_VERSION);
}

void operation_floor_raise(struct meta *meta, uint64_t floor_ms)
{
    if (floor_ms > meta->floor_ms)
        meta->floor_ms = floor_ms;
}

/*
 * Ids older than the window that ends were told to be expired, or could have been: a longer window
 * must not let a late packet of one of them commit. So it begins to count from here (DESIGN
 * section 6). Outcomes at or below the floor are removed as they always are.
 */
static void keep_expired(const struct apply_context *context, uint64_t ended_ms, uint64_t window_ms)
{
    if (window_ms > ended_ms && context->owner_ms > ended_ms) /* The youngest that is expired. */
        operation_floor_raise(context->meta, context->owner_ms - ended_ms - 1);
}

void operation_floor_keep(const struct apply_context *context, uint64_t window_ms)
{
    /* A shard that holds nothing yet has told of no id. */
    bool serves = context->meta->use.kind == USE_SERVING || context->version < FLOOR_APPLY_VERSION;

    if (serves)
        keep_expired(context, context->meta->policy.operation_window_ms, window_ms);
}

void operation_floor_take_over(const struct apply_context *context, const struct meta *backup)
{
    struct meta *meta = context->meta;

    if (context->version < FLOOR_APPLY_VERSION) {
        operation_floor_raise(meta, backup->floor_ms);
        return;
    }
    meta->floor_ms = backup->floor_ms; /* This shard was empty: its own protected nothing. */
    keep_expired(context, backup->policy.operation_window_ms, meta->policy.operation_window_ms);
}

bool operation_floor_lets_go(struct slice value, uint64_t decided_ms)
{
    struct outcome_row row;

    if (outcome_row_decode(value, &row) != ERR_OK)
        return true;
    return row.state != OUTCOME_ROW_PENDING && row.decided_at_ms <= decided_ms;
}
