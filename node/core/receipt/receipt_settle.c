/* The entry that settles a receipt's record carries its operation out, or refuses it: receipt.h. */
#include "idl/method.h"
#include "node/core/channel/channel_row.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/handler/outcome_row.h"
#include "node/core/handler/player_row.h"
#include "node/core/handler/refusal.h"
#include "node/core/receipt/receipt.h"
#include "node/core/rows/rows.h"
#include "node/core/session/authority.h"
#include "node/core/transaction/txn_part.h"

#define DECISION(name) HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_##name

/* One operation while its record is settled. */
struct settlement {
    struct apply_context *context;
    struct op op;
    struct player player;
    struct refusal refusal;
    struct outcome_row outcome;
    bool sealed;   /* A seal asked for its record to be cancelled. */
    bool recorded; /* The outcome is kept. */
};

/* Under its authority as of now. */
static err handle(struct settlement *s, ProtobufCMessage *response)
{
    struct apply_context *context = s->context;
    const struct handler *handler = handler_find(context->handlers, s->op.method);
    const ProtobufCMessage *request =
        arena_unpack(context->arena, method_find(s->op.method)->request, s->op.request);

    if (handler == NULL || handler->handle == NULL || request == NULL)
        return apply_damaged(context, s->op.entity, OUTBOX_DAMAGE);
    context->player = &s->player;
    err e = player_row_apply(context, s->op.entity, &s->player);
    if (e == ERR_OK && s->player.txn.seq != 0)
        e = txn_refuse_held(context->arena, context->refusal,
                            arena_text(context->arena, player_id(&s->player)), s->op.id.text);
    if (e == ERR_OK)
        e = quarantine_check(context->arena, context->refusal, context->meta,
                             player_id(&s->player));
    s->player.version++;
    if (e == ERR_OK)
        e = authority_apply(context, handler);
    if (e == ERR_OK)
        e = version_check(context, request, s->player.version - 1);
    if (e == ERR_OK)
        e = handler->handle(context, request, response);
    if (e == ERR_OK &&
        context->pending) /* What a receipt pays for never waits for another shard. */
        e = apply_damaged(context, s->op.entity, OUTBOX_DAMAGE);
    return e;
}

static void player_store(struct settlement *s)
{
    struct apply_context *context = s->context;
    struct row_key key;

    if (s->player.created_at_ms == 0)
        s->player.created_at_ms = context->owner_ms;
    buf_clear(context->scratch);
    player_encode(&s->player, context->scratch);
    row_key_player(&key, s->op.entity);
    state_put(context->state, row_key_slice(&key), buf_slice(context->scratch));
}

static void refused(struct settlement *s)
{
    s->outcome.state = OUTCOME_ROW_REFUSED;
    s->refusal.final = s->recorded;
    s->outcome.body = refusal_pack(&s->refusal, s->context->arena);
}

static void aborted(struct settlement *s)
{
    s->recorded = true;
    (void)refuse(s->context->arena, &s->refusal, CODE(OPERATION_ABORTED), "op_id",
                 "the operation was sealed before it was carried out; it never will be");
    refused(s);
    s->outcome.state = OUTCOME_ROW_ABORTED;
}

/* What is refused for now only is sealed as never, if a seal waits. */
static err carry_out(struct settlement *s)
{
    struct apply_context *context = s->context;
    uint32_t mark = state_mark(context->state);
    ProtobufCMessage *response = arena_message(context->arena, method_find(s->op.method)->response);

    err e = handle(s, response);
    if (e == ERR_NEED)
        return e;
    if (e == ERR_OK) {
        player_store(s);
        s->outcome.state = OUTCOME_ROW_COMMITTED;
        s->outcome.dot = context->dot;
        s->outcome.version = s->player.version;
        s->outcome.body = arena_pack(context->arena, response);
        return ERR_OK;
    }
    state_rollback_to(context->state, mark);
    s->recorded = !s->refusal.transient;
    if (!s->recorded && s->sealed)
        aborted(s);
    else
        refused(s);
    return ERR_OK;
}

/* The operation's one outcome, and for the caller that waits for it. */
static err outcome_keep(struct settlement *s, uint64_t seq, struct settled *ret_settled)
{
    struct outcome_row *row = &s->outcome;

    *ret_settled = (struct settled){
        .destination = s->context->channel->destination,
        .seq = seq,
        .refused = row->state != OUTCOME_ROW_COMMITTED,
        .body = row->body,
        .dot = row->dot,
        .version = row->version,
        .method = row->method,
        .cancelled = row->state == OUTCOME_ROW_ABORTED,
        .receipt = true,
        .entity = s->op.entity,
        .op_id = s->op.id.text,
    };
    if (!s->recorded)
        return outcome_row_withdraw(s->context, &s->op.id);
    if (row->state == OUTCOME_ROW_ABORTED)
        row->body = (struct slice){ 0 };
    if (row->state != OUTCOME_ROW_COMMITTED && s->sealed)
        row->attempt = UINT32_MAX;
    row->decided_at_ms = s->context->owner_ms;
    outcome_row_store(s->context, &s->op.id, false, row);
    return ERR_OK;
}

static err decide(struct settlement *s, const Holdfast__Internal__V1__ChannelResult *result)
{
    switch (result->decision) {
    case DECISION(APPLIED):
        return carry_out(s);
    case DECISION(REJECTED):
        /* Its row cannot be read, for now: the same attempt may be sent again. */
        s->recorded = result->refusal->code != CODE(QUARANTINED) || s->sealed;
        s->outcome.state = OUTCOME_ROW_REFUSED;
        result->refusal->final = s->recorded;
        s->outcome.body = arena_pack(s->context->arena, &result->refusal->base);
        return ERR_OK;
    default:
        aborted(s); /* CANCELLED: no other decision is settled. */
        return ERR_OK;
    }
}

err receipt_settle(struct apply_context *context, const Holdfast__Internal__V1__OutboxRow *row,
                   const Holdfast__Internal__V1__ChannelResult *result, uint32_t place,
                   struct settled *ret_settled)
{
    struct settlement s = { .context = context, .sealed = row->cancel, .recorded = true };

    *ret_settled = (struct settled){ 0 };
    if (op_decode((struct slice){ row->operation.data, row->operation.len }, &s.op) != ERR_OK)
        return apply_damaged(context, entity_of_player(context->arena, row->player_id),
                             OUTBOX_DAMAGE);
    s.op.shard_count = context->op->shard_count;
    context->op = &s.op;
    context->refusal = &s.refusal;
    context->uid_place = SETTLE_PLACES_BELOW + place * SETTLE_PLACES_OF_RECORD;
    enum state_found found =
        outcome_row_find(context->state, s.op.entity, &s.op.id, context->need, &s.outcome);
    if (found == STATE_MISSING)
        return ERR_NEED;
    /* Typed ids are not pruned; so it is damaged, and the answer says that. */
    if (found == STATE_ABSENT || s.outcome.state != OUTCOME_ROW_PENDING) {
        damage_note(context->damage, s.op.entity, OUTCOME_DAMAGE);
        return ERR_OK;
    }
    err e = decide(&s, result);
    if (e == ERR_OK)
        e = outcome_keep(&s, result->seq, ret_settled);
    return e;
}
