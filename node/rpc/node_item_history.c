#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/goods/ledger.h"
#include "node/core/handler/refusal.h"
#include "node/core/player/player.h"
#include "node/core/profile/profile.h"
#include "node/rpc/methods.h"
#include "runtime/base/check.h"

#define STEPS_MAX 200u

typedef Holdfast__Internal__V1__ItemHistoryRequest history_request;
typedef Holdfast__Internal__V1__ItemHistoryResponse history_response;

struct page {
    struct arena *arena;
    struct damage *damage;
    struct history_row rows[STEPS_MAX];
    uint32_t count;
    uint32_t after;
};

/* Only what follows without a gap: what is missing is on another shard. */
static bool take_row(void *page_context, struct slice key, struct slice value)
{
    struct page *page = page_context;
    struct history_row *row = &page->rows[page->count];

    CHECK(page->count < STEPS_MAX);
    if (history_row_decode(key, arena_copy(page->arena, value), row) != ERR_OK) {
        damage_note(page->damage, (struct slice){ 0 }, HISTORY_DAMAGE);
        return false; /* What follows it cannot be told to follow. */
    }
    if (row->step != page->after + 1)
        return false;
    page->after++;
    page->count++;
    return true;
}

static err rows_read(struct read_context *context, const history_request *request,
                     const uint8_t uid[ITEM_UID_BYTES], struct page *page)
{
    struct row_key prefix, after;

    row_key_history_prefix(&prefix, uid);
    row_key_history(&after, uid, request->after_step);
    struct state_range range = {
        .prefix = row_key_slice(&prefix),
        .after = row_key_slice(&after),
        .limit = request->limit,
    };
    *page = (struct page){
        .arena = context->arena,
        .damage = context->damage,
        .after = request->after_step,
    };
    return state_range_visit(context->state, &range, context->need, take_row, page);
}

static char *player_name(struct arena *arena, struct slice entity)
{
    struct player player;

    if (entity.size == 0)
        return arena_text(arena, entity);
    player_init(&player, entity);
    return arena_text(arena, player_id(&player));
}

/* What the ledger entry behind it says. ERR_NEED. */
static err step_fill(struct read_context *context, const struct history_row *row,
                     Holdfast__V1__TraceStep *step)
{
    Holdfast__V1__LedgerEntry *entry = NULL;
    struct slice value;

    err e = ledger_row_find(context->state, row->entity, row->ledger_seq, context->need, &value);
    if (e == ERR_NEED)
        return e;
    step->step = row->step;
    step->player_id = player_name(context->arena, row->entity);
    step->held = row->held;
    step->ledger_seq = row->ledger_seq;
    step->to_player_id = player_name(context->arena, row->next);
    if (e != ERR_OK || ledger_row_decode(value, context->arena, &entry) != ERR_OK) {
        damage_note(context->damage, row->entity, LEDGER_DAMAGE);
        return ERR_OK; /* Told as far as the history knows. */
    }
    step->kind = entry->kind;
    step->op_id = entry->op_id;
    step->at_ms = entry->at_ms;
    step->authority = entry->authority;
    step->reason = entry->reason;
    return ERR_OK;
}

static err node_item_history_read(struct read_context *context, const ProtobufCMessage *message,
                                  ProtobufCMessage *reply)
{
    const history_request *request = (const history_request *)message;
    history_response *response = (history_response *)reply;
    struct slice text = slice_from_text(request->item_uid);
    struct page *page = arena_alloc(context->arena, sizeof *page);
    uint8_t uid[ITEM_UID_BYTES];
    err result = ERR_OK;

    if (item_uid_parse(text, uid) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "item_uid",
                              "32 hex digits, lower case", text_shorten(context->arena, text));
    if (request->limit == 0 || request->limit > STEPS_MAX)
        return refuse_number(context->arena, context->refusal, "limit", "1 to 200", request->limit);
    err e = rows_read(context, request, uid, page);
    if (e != ERR_OK)
        return e;
    response->steps =
        arena_messages(context->arena, &holdfast__v1__trace_step__descriptor, page->count);
    for (uint32_t i = 0; i < page->count; i++) {
        e = step_fill(context, &page->rows[i], response->steps[i]);
        if (e != ERR_OK)
            result = e; /* Go on, so that every missing row is noted. */
    }
    response->n_steps = page->count;
    response->as_of = as_of_text(context);
    return result;
}

const struct handler node_item_history_handler = {
    .method = METHOD_ITEM_HISTORY,
    .read = node_item_history_read,
};
