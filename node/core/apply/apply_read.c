#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "idl/page_cursor.h"
#include "node/core/apply/apply.h"
#include "node/core/apply/apply_internal.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/handler/operation_floor.h"
#include "node/core/handler/refusal.h"
#include "node/core/receipt/receipt.h"
#include "node/core/session/timers.h"

#define DUE_ASK_MS 50u

typedef Holdfast__Internal__V1__PruneOperationsRequest prune_request;

/* The entity that a read is about; none for reads of a whole shard. */
static err read_entity(struct read_context *context, uint32_t method, ProtobufCMessage *request)
{
    struct envelope envelope;
    const char *why;

    envelope_find(request, &envelope);
    if (envelope.entity == NULL)
        return ERR_OK;
    struct slice text = slice_from_text(*envelope.entity);
    if (!envelope.is_player) {
        context->entity = text;
        if (method == METHOD_GET_OPERATION && receipt_is(text))
            return receipt_entity_check(context->arena, context->refusal, text, *envelope.op_id);
        if (entity_parse(text, &why) != ERR_OK)
            return refuse_invalid(context->arena, context->refusal, "entity", why,
                                  text_shorten(context->arena, text));
        return ERR_OK;
    }
    if (player_id_check(text) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "player_id",
                              "1 to 100 bytes of UTF-8 without control characters",
                              text_shorten(context->arena, text));
    context->entity = entity_of_player(context->arena, *envelope.entity);
    return ERR_OK;
}

/* Of a list: the handler knows places, its callers cursors (page_cursor.h). */
static err open_cursor(struct read_context *context, ProtobufCMessage *message)
{
    char **cursor = page_cursor_of_request(message);
    char *place;

    if (page_cursor_parse(message, context->arena, &place) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "cursor", PAGE_CURSOR_LIMIT,
                              text_shorten(context->arena, slice_from_text(*cursor)));
    *cursor = place;
    return ERR_OK;
}

static void close_cursor(struct arena *arena, const ProtobufCMessage *message,
                         ProtobufCMessage *response)
{
    char **next = page_cursor_of_response(response);

    if ((*next)[0] != 0)
        *next = page_cursor_print(message, *next, arena);
}

void applier_set_pulled(struct applier *applier, int64_t pulled_ms)
{
    applier->pulled_ms = pulled_ms;
}

err applier_read(struct applier *applier, const struct applier_asked *asked, struct need *need,
                 struct buf *out, struct refusal *ret_refusal)
{
    const struct method_info *info = method_find(asked->method);
    const struct handler *handler = handler_find(applier->handlers, asked->method);
    struct arena *arena = asked->arena;
    struct read_context context = {
        .arena = arena,
        .state = applier->state,
        .meta = &applier->meta,
        .need = need,
        .shard = applier->shard,
        .shard_count = applier->shard_count,
        .as_of = applier->meta.applied_dot,
        .members = applier->members,
        .now_unix_ms = asked->now_unix_ms,
        .pulled_ms = applier->pulled_ms,
        .recent = &applier->recent,
        .refusal = ret_refusal,
        .damage = &applier->damage,
    };

    *ret_refusal = (struct refusal){ 0 };
    if (handler == NULL || handler->read == NULL) {
        (void)refuse(arena, ret_refusal, CODE(UNIMPLEMENTED), "",
                     "method %u is not a read of a shard", asked->method);
        return ERR_INVALID;
    }
    /* Rows come in the order of their keys: notes of changes may be there without what changed. */
    bool tells_rows = info->route == METHOD_READ || asked->method == METHOD_PULL_PARTIALS;
    if (tells_rows && applier->meta.use.kind == USE_RESTORING) {
        err refused = refuse(arena, ret_refusal, CODE(UNAVAILABLE), "",
                             "shard %u is being restored from a backup", applier->shard);
        ret_refusal->retry_after_ms = RESTORING_RETRY_MS;
        return refused;
    }
    ProtobufCMessage *message = arena_unpack(arena, info->request, asked->request);
    if (message == NULL)
        return refuse(arena, ret_refusal, CODE(INVALID_ARGUMENT), "",
                      "the request is not a valid %s in protobuf", info->request->name);
    const bool pages = page_cursor_concerns(info);
    err e = read_entity(&context, asked->method, message);
    if (e == ERR_OK && pages)
        e = open_cursor(&context, message);
    if (e != ERR_OK)
        return e;
    ProtobufCMessage *response = arena_message(arena, method_answer(info));
    e = handler->read(&context, message, response);
    if (e == ERR_NEED)
        need->load_generation = state_load_generation(applier->state);
    if (e != ERR_OK)
        return e;
    if (pages)
        close_cursor(arena, message, response);
    size_t size = protobuf_c_message_get_packed_size(response);
    protobuf_c_message_pack(response, buf_reserve(out, size + 1));
    out->size += size;
    return ERR_OK;
}

static void reservation_due(struct applier *applier, const struct player *player, uint64_t seq,
                            struct buf *out)
{
    Holdfast__Internal__V1__ReservationDueRequest due =
        HOLDFAST__INTERNAL__V1__RESERVATION_DUE_REQUEST__INIT;

    due.player_id = arena_text(&applier->scratch, player_id(player));
    due.ledger_seq = seq;
    owner_op_encode(METHOD_RESERVATION_DUE, player->entity, &due.base, out);
}

static bool erasure_due(struct applier *applier, const struct player *player, uint64_t number,
                        struct buf *out)
{
    Holdfast__Internal__V1__ErasureDueRequest due =
        HOLDFAST__INTERNAL__V1__ERASURE_DUE_REQUEST__INIT;

    due.player_id = arena_text(&applier->scratch, player_id(player));
    due.number = number;
    due.rows_max = applier->erasure_rows;
    owner_op_encode(METHOD_ERASURE_DUE, player->entity, &due.base, out);
    return true;
}

static bool timer_entry(struct applier *applier, const struct timer_row *timer, struct buf *out)
{
    Holdfast__Internal__V1__SessionDueRequest due =
        HOLDFAST__INTERNAL__V1__SESSION_DUE_REQUEST__INIT;
    struct player player;

    player_init(&player, timer->entity);
    if (timer_is_of_erasure(timer))
        return erasure_due(applier, &player, timer->reservation_seq - ERASURE_TIMER_SEQ, out);
    if (timer->reservation_seq > 0) {
        reservation_due(applier, &player, timer->reservation_seq, out);
        return true;
    }
    due.player_id = arena_text(&applier->scratch, player_id(&player));
    due.fence = timer->fence;
    owner_op_encode(METHOD_SESSION_DUE, timer->entity, &due.base, out);
    return true;
}

/* The next timer, if it is due; *next_ms follows it otherwise. */
static bool timer_due(struct applier *applier, uint64_t unix_ms, struct buf *out, uint64_t *next_ms)
{
    struct timer_row timer = { 0 };

    if (!timers_first(applier->state, &applier->timers_looked, unix_ms, &applier->damage, &timer))
        return false;
    if (timer.due_ms <= unix_ms)
        return timer_entry(applier, &timer, out);
    if (timer.due_ms < *next_ms)
        *next_ms = timer.due_ms;
    return false;
}

static bool take_operation_ms(void *context, struct slice key, struct slice value)
{
    uint64_t *ms = context;

    (void)value;
    *ms = row_operation_ms(key);
    return false;
}

/* When the oldest operation behind that key was made; 0: not known without loading. */
static uint64_t oldest_operation_ms(struct applier *applier, struct slice after)
{
    struct state_range first = { .prefix = SLICE_LITERAL("o"), .after = after, .limit = 1 };
    struct need unused = { 0 };
    uint64_t ms = UINT64_MAX; /* There is none. */

    if (state_range_visit(applier->state, &first, &unused, take_operation_ms, &ms) != ERR_OK)
        ms = 0;
    need_deinit(&unused);
    return ms;
}

/* A page for the next PRUNE; false: nothing stands behind `after` up to that time. */
static bool page_due(struct applier *applier, struct slice after, uint64_t until_ms,
                     prune_request *ret_prune)
{
    if (oldest_operation_ms(applier, after) > until_ms)
        return false;
    ret_prune->after = (ProtobufCBinaryData){ after.size, (uint8_t *)(uintptr_t)after.data };
    ret_prune->floor_ms = until_ms;
    ret_prune->rows_max = PRUNE_ROWS_MAX;
    return true;
}

/*
 * Below the floor stand operations that are PENDING, and those that were settled late. They are
 * looked through now and then from the first one on, and not by each PRUNE.
 */
static bool sweep_due(struct applier *applier, uint64_t unix_ms, prune_request *ret_prune)
{
    struct slice after = row_key_slice(&applier->prune_after);
    uint64_t floor_ms = applier->meta.floor_ms;
    bool goes_on = after.size > 0 && row_operation_ms(after) < floor_ms;

    if (floor_ms == 0 || (!goes_on && (after.size > 0 || unix_ms < applier->sweep_next_ms)))
        return false;
    if (!goes_on)
        applier->sweep_next_ms = unix_ms + SWEEP_EVERY_MS;
    bool due = page_due(applier, after, floor_ms, ret_prune);
    if (!due)
        applier->prune_after.size = 0;
    return due;
}

/* What is to be pruned of UUIDv7 ids; false: nothing. */
static bool operations_due(struct applier *applier, uint64_t unix_ms, prune_request *ret_prune)
{
    const struct meta *meta = &applier->meta;
    const struct policy *policy = &meta->policy;
    uint64_t kept = applier_outcomes_kept(applier);
    bool crowded = kept > policy->operations_max;
    uint64_t window_ms = crowded ? OPERATION_WINDOW_MS_MIN : policy->operation_window_ms;
    bool by_pages =
        meta->apply_version >= FLOOR_APPLY_VERSION && applier->version_max >= FLOOR_APPLY_VERSION;
    size_t after_size = applier->prune_after.size; /* A sweep that ends empties it. */

    if (unix_ms < applier->prune_next_ms && !crowded)
        return false;
    if (applier->prune_in_vain && !by_pages &&
        unix_ms + PRUNE_EVERY_MS < applier->prune_next_ms + PRUNE_IN_VAIN_MS)
        return false; /* Its floor cannot pass what is PENDING, however crowded the shard is. */
    if (unix_ms <= window_ms || meta->operation_count == 0)
        return false;
    if (by_pages)
        ret_prune->decided_ms = unix_ms - window_ms + OPERATION_LATE_MS;
    if (by_pages && sweep_due(applier, unix_ms, ret_prune))
        return true;
    if (after_size == 0 && meta->floor_ms + (crowded ? DUE_ASK_MS : 0) >= unix_ms - window_ms)
        return false;
    applier->prune_next_ms = unix_ms + PRUNE_EVERY_MS;
    applier->prune_after.size = after_size;
    if (after_size == 0 && by_pages && meta->floor_ms > 0)
        row_key_operation_bound(&applier->prune_after, meta->floor_ms - 1);
    bool due =
        page_due(applier, row_key_slice(&applier->prune_after), unix_ms - window_ms, ret_prune);
    uint64_t excess = kept - policy->operations_max;
    if (due && crowded && excess < PRUNE_ROWS_MAX)
        ret_prune->rows_max = (uint32_t)excess;
    applier->prune_after.size = 0; /* Its bytes stand in the request. */
    return due;
}

/* Whether some `key:` id may be over. One that was not known to be the oldest is looked for by an
 * entry, which tells. */
static bool keys_due(const struct applier *applier, uint64_t unix_ms)
{
    return applier->meta.key_count > 0 && unix_ms >= applier->prune_next_ms &&
           unix_ms > applier->keys_from_ms + OP_ID_KEY_MS;
}

static bool prune_due(struct applier *applier, uint64_t unix_ms, struct buf *out)
{
    prune_request prune = HOLDFAST__INTERNAL__V1__PRUNE_OPERATIONS_REQUEST__INIT;

    bool keys = keys_due(applier, unix_ms);
    bool operations = operations_due(applier, unix_ms, &prune);
    if (!operations && !keys)
        return false;
    applier->prune_next_ms = unix_ms + PRUNE_EVERY_MS;
    owner_op_encode(METHOD_PRUNE_OPERATIONS, (struct slice){ 0 }, &prune.base, out);
    return true;
}

/* Whether retention lets events go, or is still to be looked for. */
static bool trim_due(struct applier *applier, uint64_t unix_ms, struct buf *out)
{
    const struct event_log *log = &applier->meta.events;
    Holdfast__Internal__V1__TrimEventsRequest trim =
        HOLDFAST__INTERNAL__V1__TRIM_EVENTS_REQUEST__INIT;

    if (log->count == 0 || unix_ms < applier->trim_next_ms)
        return false;
    if (!log->unlearned && log->count <= log->events_max && log->oldest_ms + log->keep_ms > unix_ms)
        return false;
    applier->trim_next_ms = unix_ms + TRIM_EVERY_MS;
    trim.rows_max = TRIM_ROWS_MAX;
    owner_op_encode(METHOD_TRIM_EVENTS, (struct slice){ 0 }, &trim.base, out);
    return true;
}

static bool upkeep_due(struct applier *applier, uint64_t unix_ms, struct buf *out)
{
    bool trims_first = applier->pruned_last;

    applier->pruned_last = false;
    if (trims_first && trim_due(applier, unix_ms, out))
        return true;
    applier->pruned_last = prune_due(applier, unix_ms, out);
    return applier->pruned_last || (!trims_first && trim_due(applier, unix_ms, out));
}

/* Timers and upkeep take turns: none of them waits until the others have nothing to do. */
static void at_most(uint64_t *ms, uint64_t ms_max)
{
    if (*ms > ms_max)
        *ms = ms_max;
}

/* Each was set by a clock that was ahead, and is right again. */
static void clamp_upkeep(struct applier *applier, uint64_t unix_ms)
{
    at_most(&applier->prune_next_ms, unix_ms + PRUNE_EVERY_MS);
    at_most(&applier->sweep_next_ms, unix_ms + SWEEP_EVERY_MS);
    at_most(&applier->trim_next_ms, unix_ms + TRIM_EVERY_MS);
}

bool applier_due(struct applier *applier, uint64_t unix_ms, struct buf *out, uint64_t *ret_next_ms)
{
    bool upkeep_first = applier->timer_last;

    clamp_upkeep(applier, unix_ms);
    arena_reset(&applier->scratch);
    *ret_next_ms = unix_ms + DUE_ASK_MS;
    applier->timer_last = false;
    if (applier->meta.use.kind == USE_RESTORING)
        return false;
    if (upkeep_first && upkeep_due(applier, unix_ms, out))
        return true;
    applier->timer_last = timer_due(applier, unix_ms, out, ret_next_ms);
    return applier->timer_last || (!upkeep_first && upkeep_due(applier, unix_ms, out));
}

bool applier_due_at_once(struct applier *applier, uint64_t unix_ms, struct buf *out)
{
    struct timer_row timer = { 0 };

    arena_reset(&applier->scratch);
    if (applier->meta.use.kind == USE_RESTORING ||
        !timers_first(applier->state, &applier->timers_looked, unix_ms, &applier->damage, &timer))
        return false;
    if (timer.due_ms > unix_ms || timer_is_of_erasure(&timer))
        return false;
    return timer_entry(applier, &timer, out);
}

void applier_note_damage(struct applier *applier, struct slice entity, const char *reason)
{
    damage_note(&applier->damage, entity, reason);
}
