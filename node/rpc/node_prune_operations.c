#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/handler/operation_floor.h"
#include "node/core/rows/rows.h"
#include "node/rpc/methods.h"
#include "runtime/base/check.h"

#define WINDOW_MS_MIN (15u * 60u * 1000u)
#define ROWS_MAX      4096u
#define KEYS_MAX      512u /* Ids of kind `key:` that one entry forgets. */

typedef Holdfast__Internal__V1__PruneOperationsRequest prune_request;
typedef Holdfast__Internal__V1__PruneOperationsResponse prune_response;

/* The oldest operations, up to a floor. */
struct prune {
    struct arena *arena;
    uint64_t floor_ms;
    uint32_t count;
    struct slice *keys;
    uint64_t decided_ms; /* From FLOOR_APPLY_VERSION on, as what follows. */
    uint32_t seen;
    struct slice last;
};

/* Below FLOOR_APPLY_VERSION: what became of a transfer on its way must still be learned, and the
 * floor stays below its id. A row that cannot be read goes when its time has come. */
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
 * Below FLOOR_APPLY_VERSION. A full page leaves the floor at the last row it removed, so rows below
 * the floor are always gone, whatever remains to be done; ids between them are refused from here
 * on.
 */
static err forget_first(struct apply_context *context, const prune_request *request,
                        prune_response *response)
{
    uint32_t rows_max = request->rows_max < ROWS_MAX ? request->rows_max : ROWS_MAX;
    struct state_range range = { .prefix = SLICE_LITERAL("o"), .limit = rows_max };
    struct prune prune = {
        .arena = context->arena,
        .floor_ms = floor_of(context, request->floor_ms),
        .keys = arena_alloc(context->arena, sizeof *prune.keys * (rows_max + 1u)),
    };

    err e = state_range_visit(context->state, &range, context->need, take_key, &prune);
    if (e != ERR_OK)
        return e;
    for (uint32_t i = 0; i < prune.count; i++)
        state_delete(context->state, prune.keys[i]);
    if (prune.count == rows_max)
        prune.floor_ms = row_operation_ms(prune.keys[prune.count - 1]);
    damage_count_down(context->damage, &context->meta->operation_count, prune.count);
    operation_floor_raise(context->meta, prune.floor_ms);
    response->removed = prune.count;
    return ERR_OK;
}

/* Until when an outcome was decided that may go; never of the last ten minutes. */
static uint64_t decided_of(const struct apply_context *context, const prune_request *request)
{
    bool told = request->decided_ms > OPERATION_LATE_MS;
    uint64_t asked_ms = told ? request->decided_ms - OPERATION_LATE_MS : request->floor_ms;

    return floor_of(context, asked_ms) + OPERATION_LATE_MS;
}

static bool look_at(void *user, struct slice key, struct slice value)
{
    struct prune *prune = user;

    if (row_operation_ms(key) > prune->floor_ms)
        return false;
    prune->seen++;
    prune->last = arena_copy(prune->arena, key);
    if (operation_floor_lets_go(value, prune->decided_ms))
        prune->keys[prune->count++] = prune->last;
    return true;
}

/*
 * A full page leaves the floor at the last row it looked at, and says where to go on. What stays at
 * or below the floor is known by its row: operations that are PENDING, those that were settled
 * late, and in the last millisecond those that were not looked at. Ids without a row are refused
 * there from here on.
 */
static err forget_page(struct apply_context *context, const prune_request *request,
                       prune_response *response)
{
    uint32_t rows_max = request->rows_max < ROWS_MAX ? request->rows_max : ROWS_MAX;
    struct state_range range = {
        .prefix = SLICE_LITERAL("o"),
        .after = { request->after.data, request->after.len },
        .limit = rows_max,
    };
    struct prune prune = {
        .arena = context->arena,
        .floor_ms = floor_of(context, request->floor_ms),
        .decided_ms = decided_of(context, request),
        .keys = arena_alloc(context->arena, sizeof *prune.keys * rows_max),
    };

    err e = state_range_visit(context->state, &range, context->need, look_at, &prune);
    if (e != ERR_OK)
        return e;
    for (uint32_t i = 0; i < prune.count; i++)
        state_delete(context->state, prune.keys[i]);
    if (prune.seen == rows_max) {
        prune.floor_ms = row_operation_ms(prune.last);
        response->last =
            (ProtobufCBinaryData){ prune.last.size, (uint8_t *)(uintptr_t)prune.last.data };
    }
    damage_count_down(context->damage, &context->meta->operation_count, prune.count);
    operation_floor_raise(context->meta, prune.floor_ms);
    response->removed = prune.count;
    return ERR_OK;
}

static err forget_operations(struct apply_context *context, const prune_request *request,
                             prune_response *response)
{
    if (request->rows_max == 0)
        return ERR_OK;
    return context->version < FLOOR_APPLY_VERSION ? forget_first(context, request, response)
                                                  : forget_page(context, request, response);
}

/* ---- ids of kind `key:` ---- */

/* The dates of outcomes that are over, the oldest first. */
struct dates {
    struct apply_context *context;
    uint64_t from_ms; /* Of the first one that is not over. */
    uint32_t count;
    struct slice keys[KEYS_MAX];
};

static bool take_date(void *user, struct slice key, struct slice value)
{
    struct dates *dates = user;
    uint64_t now_ms = dates->context->owner_ms;
    struct keyed_row keyed = { 0 };

    (void)value; /* It says nothing more. */
    bool readable = keyed_key_parse(key, &keyed) == ERR_OK;
    dates->from_ms = keyed.decided_at_ms;
    if (readable && (now_ms < OP_ID_KEY_MS || keyed.decided_at_ms >= now_ms - OP_ID_KEY_MS))
        return false;
    dates->keys[dates->count++] = arena_copy(dates->context->arena, key);
    return true;
}

/* The outcome goes with its date, unless it was decided at another time: then it has a date of its
 * own. One that cannot be read goes when its time has come. ERR_NEED: it is not in memory. */
static err forget_dated(struct apply_context *context, struct slice date)
{
    struct keyed_row keyed;
    struct outcome_row row;
    struct op_id id;
    struct row_key key;
    const char *why;

    if (keyed_key_parse(date, &keyed) != ERR_OK) {
        damage_note(context->damage, (struct slice){ 0 }, KEYED_DAMAGE);
        return ERR_OK;
    }
    CHECK(op_id_parse(keyed.op_id, &id, &why) == ERR_OK);
    enum state_found found =
        outcome_row_find(context->state, keyed.entity, &id, context->need, &row);
    if (found == STATE_MISSING)
        return ERR_NEED;
    bool same = found == STATE_PRESENT && (row.state == OUTCOME_ROW_UNREADABLE ||
                                           (row.keyed && row.decided_at_ms == keyed.decided_at_ms));
    row_key_operation(&key, keyed.entity, &id);
    if (same)
        state_delete(context->state, row_key_slice(&key));
    return ERR_OK;
}

static err forget_keys(struct apply_context *context, prune_response *response)
{
    struct state_range range = { .prefix = SLICE_LITERAL("e"), .limit = KEYS_MAX };
    struct dates *dates = arena_zalloc(context->arena, sizeof *dates);
    bool missing = false;

    if (context->version < KEYS_APPLY_VERSION || context->meta->key_count == 0)
        return ERR_OK;
    dates->context = context;
    dates->from_ms = context->owner_ms;
    err e = state_range_visit(context->state, &range, context->need, take_date, dates);
    if (e != ERR_OK)
        return e;
    for (uint32_t i = 0; i < dates->count; i++) /* All that is missing is asked for at once. */
        missing |= forget_dated(context, dates->keys[i]) == ERR_NEED;
    if (missing)
        return ERR_NEED;
    for (uint32_t i = 0; i < dates->count; i++)
        state_delete(context->state, dates->keys[i]);
    damage_count_down(context->damage, &context->meta->key_count, dates->count);
    response->keys_removed = dates->count;
    response->keys_left = dates->count == KEYS_MAX;
    response->keys_from_ms = dates->from_ms;
    return ERR_OK;
}

static err node_prune_operations_handle(struct apply_context *context,
                                        const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    const prune_request *request = (const prune_request *)message;
    prune_response *response = (prune_response *)reply;

    err operations = forget_operations(context, request, response);
    err keys = forget_keys(context, response);
    return operations != ERR_OK ? operations : keys;
}

const struct handler node_prune_operations_handler = {
    .method = METHOD_PRUNE_OPERATIONS,
    .handle = node_prune_operations_handle,
};
