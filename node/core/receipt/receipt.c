#include "node/core/receipt/receipt.h"

#include <string.h>

#include "idl/method.h"
#include "node/core/channel/channel_out.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/handler/refusal.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"
#include "runtime/cluster/placement.h"

#define RECEIPT_KIND   "receipt:"
#define DECISION(name) HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_##name
#define STATE(name)    HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_##name

typedef Holdfast__Internal__V1__ReceiptRow receipt_row;
typedef Holdfast__Internal__V1__ReceiptBind receipt_bind;

bool receipt_is(struct slice text)
{
    const size_t kind = sizeof RECEIPT_KIND - 1;

    return text.size > kind && memcmp(text.data, RECEIPT_KIND, kind) == 0;
}

bool receipt_concerns(const struct handler *handler, const struct op *op)
{
    return op->id.typed && (handler->receipts & 1u << op->authority.kind) != 0 &&
           receipt_is(op->id.text);
}

err receipt_check(struct arena *arena, struct refusal *refusal, const struct handler *handler,
                  const struct op *op)
{
    if (!op->id.typed || !receipt_is(op->id.text) || receipt_concerns(handler, op))
        return ERR_OK;
    return refuse_invalid(arena, refusal, "op_id",
                          "another kind of id: receipts are for LedgerService/Grant and mail from "
                          "the system",
                          text_shorten(arena, op->id.text));
}

err receipt_entity_check(struct arena *arena, struct refusal *refusal, struct slice entity,
                         const char *op_id)
{
    struct op_id id;
    const char *why;

    if (entity.size > ENTITY_BYTES_MAX)
        return refuse_invalid(arena, refusal, "entity", "at most 128 bytes",
                              text_shorten(arena, entity));
    if (op_id_parse(entity, &id, &why) != ERR_OK)
        return refuse_invalid(arena, refusal, "entity", why, text_shorten(arena, entity));
    if (!slice_equal(entity, slice_from_text(op_id)))
        return refuse_invalid(arena, refusal, "op_id", "of a receipt: the same as the entity",
                              text_shorten(arena, slice_from_text(op_id)));
    return ERR_OK;
}

/* ---- the row ---- */

receipt_row *receipt_decode(struct arena *arena, struct slice value)
{
    return (receipt_row *)arena_unpack(arena, &holdfast__internal__v1__receipt_row__descriptor,
                                       value);
}

/* PRESENT with *ret_row NULL: the row cannot be read. */
static enum state_found receipt_find(struct state *state, struct arena *arena, struct slice receipt,
                                     struct need *need, receipt_row **ret_row)
{
    struct row_key key;
    struct slice value;

    row_key_receipt(&key, receipt);
    enum state_found found = row_find(state, &key, need, &value);
    if (found == STATE_PRESENT)
        *ret_row = receipt_decode(arena, value);
    return found;
}

static void row_store(struct apply_context *context, struct slice receipt, const receipt_bind *bind)
{
    receipt_row row = HOLDFAST__INTERNAL__V1__RECEIPT_ROW__INIT;
    struct row_key key;

    row.player_id = bind->player_id;
    row.payload = bind->payload;
    row.bound_at_ms = context->owner_ms;
    row_key_receipt(&key, receipt);
    state_put(context->state, row_key_slice(&key), arena_pack(context->arena, &row.base));
}

static bool is_the_same(const receipt_row *row, const receipt_bind *bind)
{
    return strcmp(row->player_id, bind->player_id) == 0 && row->payload.len == bind->payload.len &&
           memcmp(row->payload.data, bind->payload.data, row->payload.len) == 0;
}

/* The first player has it, for ever. */
static err claim(struct apply_context *context, struct slice receipt, const receipt_bind *bind)
{
    receipt_row *row = NULL;

    switch (receipt_find(context->state, context->arena, receipt, context->need, &row)) {
    case STATE_MISSING:
        return ERR_NEED;
    case STATE_ABSENT:
        row_store(context, receipt, bind);
        return ERR_OK;
    case STATE_PRESENT:
        break;
    }
    if (row == NULL)
        return apply_damaged(context, receipt, RECEIPT_DAMAGE);
    if (is_the_same(row, bind))
        return ERR_OK;
    if (row->player_id[0] == 0)
        return refuse(context->arena, context->refusal, CODE(OPERATION_ABORTED), "op_id",
                      "the receipt was sealed for everybody; it pays nobody");
    return refuse(context->arena, context->refusal, CODE(OPERATION_ID_MISMATCH), "op_id",
                  "the receipt was used before, for another player or another request");
}

/* ---- at the operation's home ---- */

static receipt_bind *bind_of(struct apply_context *context)
{
    receipt_bind *bind = (receipt_bind *)arena_message(
        context->arena, &holdfast__internal__v1__receipt_bind__descriptor);
    const struct hash128 *payload = &context->op->payload;
    struct slice bytes =
        arena_copy(context->arena, (struct slice){ payload->bytes, sizeof payload->bytes });

    bind->player_id = arena_text(context->arena, player_id(context->player));
    bind->payload = (ProtobufCBinaryData){ bytes.size, (uint8_t *)(uintptr_t)bytes.data };
    return bind;
}

/* Of the receipt; `here` if it is unknown how many shards there are. */
static uint32_t shard_of(const struct op *op, uint32_t here)
{
    return op->shard_count > 0 ? shard_of_entity(op->id.text, op->shard_count) : here;
}

void receipt_enter_footprint(const struct op *op, uint32_t shard, struct need *keys)
{
    uint32_t destination = shard_of(op, shard);
    struct row_key key;

    if (destination == shard)
        row_key_receipt(&key, op->id.text);
    else
        row_key_channel(&key, true, destination);
    need_add_key(keys, row_key_slice(&key));
}

err receipt_enter(struct apply_context *context, struct slice operation, bool *ret_bound)
{
    const struct op *op = context->op;
    receipt_bind *bind = bind_of(context);
    uint32_t shard = shard_of(op, context->shard);

    *ret_bound = false;
    if (shard == context->shard) {
        err e = claim(context, op->id.text, bind);
        *ret_bound = e == ERR_OK;
        return e;
    }
    const struct channel_record record = {
        .player_id = bind->player_id,
        .op_id = arena_text(context->arena, op->id.text),
        .method = op->method,
        .attempt = op->attempt,
        .receipt = bind,
        .operation = operation,
    };
    uint64_t seq;
    err e = channel_record_open(context, shard, &record, &seq);
    if (e != ERR_OK)
        return e;
    context->pending = true;
    context->channel->destination = shard;
    context->channel->opened_seq = seq;
    return ERR_OK;
}

void receipt_keep(struct apply_context *context)
{
    row_store(context, context->op->id.text, bind_of(context));
}

/* ---- at the receipt's shard ---- */

err receipt_decide(struct apply_context *context,
                   const Holdfast__Internal__V1__ChannelCredit *credit,
                   Holdfast__Internal__V1__ChannelResult *result)
{
    err e = claim(context, slice_from_text(credit->op_id), credit->receipt);

    if (e == ERR_NEED)
        return e;
    if (e == ERR_OK) {
        result->decision = DECISION(APPLIED);
        return ERR_OK;
    }
    result->decision = DECISION(REJECTED);
    result->refusal = (Holdfast__Internal__V1__Refusal *)arena_unpack(
        context->arena, &holdfast__internal__v1__refusal__descriptor,
        refusal_pack(context->refusal, context->arena));
    return ERR_OK;
}

void receipt_footprint(const Holdfast__Internal__V1__ChannelCredit *credit, struct need *keys)
{
    struct row_key key;

    if (credit->receipt == NULL)
        return;
    row_key_receipt(&key, slice_from_text(credit->op_id));
    need_add_key(keys, row_key_slice(&key));
}

bool receipt_is_sound(const Holdfast__Internal__V1__ChannelCredit *credit, uint32_t shard,
                      uint32_t shard_count)
{
    struct slice receipt = slice_from_text(credit->op_id);
    struct op_id id;
    const char *why;

    return receipt_is(receipt) && op_id_parse(receipt, &id, &why) == ERR_OK &&
           player_id_check(slice_from_text(credit->receipt->player_id)) == ERR_OK &&
           credit->receipt->payload.len == sizeof(struct hash128) &&
           (shard_count == 0 || shard_of_entity(receipt, shard_count) == shard);
}

err receipt_status(struct state *state, struct arena *arena, struct need *need,
                   struct slice receipt, Holdfast__Internal__V1__OperationRecord *ret_status)
{
    receipt_row *row = NULL;

    switch (receipt_find(state, arena, receipt, need, &row)) {
    case STATE_MISSING:
        return ERR_NEED;
    case STATE_ABSENT:
        ret_status->state = STATE(UNKNOWN);
        return ERR_OK;
    case STATE_PRESENT:
        break;
    }
    if (row == NULL)
        return ERR_CORRUPT;
    ret_status->state = row->player_id[0] != 0 ? STATE(BOUND) : STATE(ABORTED);
    ret_status->bound_player_id = row->player_id;
    ret_status->decided_at_ms = (int64_t)row->bound_at_ms;
    return ERR_OK;
}

err receipt_seal(struct apply_context *context, struct slice receipt)
{
    receipt_bind nobody = HOLDFAST__INTERNAL__V1__RECEIPT_BIND__INIT;
    receipt_row *row = NULL;

    enum state_found found =
        receipt_find(context->state, context->arena, receipt, context->need, &row);
    if (found == STATE_MISSING)
        return ERR_NEED;
    if (found == STATE_PRESENT && row == NULL)
        return apply_damaged(context, receipt, RECEIPT_DAMAGE);
    if (found == STATE_ABSENT)
        row_store(context, receipt, &nobody);
    return ERR_OK;
}
