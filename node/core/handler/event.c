#include "node/core/handler/event.h"

#include "node/core/codec/arena_proto.h"
#include "node/core/handler/event_row.h"

static void put(struct apply_context *context, const struct event_row *row)
{
    const struct event_place place = {
        .epoch = context->dot.epoch,
        .counter = context->dot.counter,
        .place = (*context->events)++,
    };
    struct row_key key;

    event_row_key(&key, &place);
    buf_clear(context->scratch);
    event_row_encode(row, context->scratch);
    state_put(context->state, row_key_slice(&key), buf_slice(context->scratch));
}

void event_add_entry(struct apply_context *context, uint64_t seq)
{
    const struct event_row row = {
        .at_ms = context->owner_ms,
        .kind = HOLDFAST__V1__EVENT_KIND__EVENT_KIND_LEDGER,
        .entity = context->player->entity,
        .ledger_seq = seq,
    };

    if (context->version >= EVENT_APPLY_VERSION)
        put(context, &row);
}

void event_add(struct apply_context *context, Holdfast__V1__EventKind kind, struct slice entity,
               const ProtobufCMessage *body)
{
    if (context->version < EVENT_APPLY_VERSION)
        return;
    const struct event_row row = {
        .at_ms = context->owner_ms,
        .owner = context->dot.owner,
        .kind = kind,
        .entity = entity,
        .op_id = context->op->id.text,
        .body = arena_pack(context->arena, body),
    };
    put(context, &row);
}
