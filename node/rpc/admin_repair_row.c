#include "holdfast/v1/admin.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/handler/refusal.h"
#include "node/core/repair/channel_repair.h"
#include "node/core/repair/row_check.h"
#include "node/core/repair/row_repair.h"
#include "node/rpc/methods.h"

typedef Holdfast__V1__RepairRowRequest repair_request;

#define SEQ_MAX (UINT64_MAX / 4)

/* Without them the shard goes on, and nothing is done twice: history, receipts (one that is gone
 * can be paid once more), timers, transactions. */
static bool may_go(const struct row_key *key)
{
    switch ((enum table)key->bytes[0]) {
    case TABLE_HISTORY:
    case TABLE_RECEIPT:
    case TABLE_TIMER:
    case TABLE_TXN:
    case TABLE_CHANNEL: /* It is made again: without it records would be carried out twice. */
        return true;
    case TABLE_PLAYER: /* RepairPlayer. */
    case TABLE_SECTION:
    case TABLE_LEDGER:
    case TABLE_ITEM:
    case TABLE_MAIL:
    case TABLE_MAILBOX:
    case TABLE_OPERATION:
    case TABLE_TYPED:
    case TABLE_REVERSAL:
    case TABLE_RESERVATION:
    case TABLE_INTENT:
    case TABLE_OUTBOX: /* A record without its row would be carried out twice, or never. */
    case TABLE_INBOX:
    case TABLE_META:
    case TABLE_NOTE:
        break;
    }
    return false;
}

/* Of a channel's row, and of no other: what the other shard knows. */
static err end_check(struct check_context *context, const repair_request *request,
                     const struct row_key *key)
{
    const Holdfast__V1__ChannelEnd *end = request->other_end;
    struct slice text = slice_from_text(request->key);
    bool outgoing;
    uint32_t shard;

    if (key->bytes[0] != TABLE_CHANNEL)
        return end == NULL ? ERR_OK
                           : refuse_invalid(context->arena, context->refusal, "other_end",
                                            "nothing, but of a row of table c", "");
    if (!channel_key_parse(key, &outgoing, &shard) || shard >= context->shard_count ||
        shard == context->shard)
        return refuse_invalid(context->arena, context->refusal, "key",
                              "63, 6f (to) or 69 (from), and another shard as 4 hex digits",
                              text_shorten(context->arena, text));
    if (end == NULL || end->unreadable || (outgoing && end->uncounted))
        return refuse_invalid(context->arena, context->refusal, "other_end",
                              "what GetChannel of the other shard tells, if it can be read there "
                              "and is not uncounted",
                              "");
    if (end->last_seq > SEQ_MAX)
        return refuse_number(context->arena, context->refusal, "other_end.last_seq", "below 2^62",
                             (int64_t)end->last_seq);
    if (end->watermark > end->last_seq)
        return refuse_number(context->arena, context->refusal, "other_end.watermark",
                             "at most last_seq", (int64_t)end->watermark);
    return row_repair_check_version(context, CHANNEL_REPAIR_VERSION);
}

static err admin_repair_row_check(struct check_context *context, ProtobufCMessage *message)
{
    const repair_request *request = (const repair_request *)message;
    struct slice text = slice_from_text(request->key);
    struct row_key key;

    err e = row_repair_check(context, request->reason);
    if (e != ERR_OK)
        return e;
    if (row_key_parse(text, &key) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "key",
                              "a key in hex digits, lower case",
                              text_shorten(context->arena, text));
    if (!may_go(&key))
        return refuse_invalid(context->arena, context->refusal, "key",
                              "a row of a table k, R, t, z or c; others see "
                              "docs/runbooks/HoldfastRowsUnreadable.md",
                              text_shorten(context->arena, text));
    return end_check(context, request, &key);
}

/* Replicas of an earlier apply version refuse it. */
static bool knows(const struct apply_context *context, const struct row_key *key)
{
    return key->bytes[0] != TABLE_CHANNEL || context->version >= CHANNEL_REPAIR_VERSION;
}

static err make_again(struct apply_context *context, const struct row_key *key,
                      const repair_request *request, Holdfast__V1__RepairRowResponse *response)
{
    response->channel = (Holdfast__V1__ChannelEnd *)arena_message(
        context->arena, &holdfast__v1__channel_end__descriptor);
    response->row->outcome = HOLDFAST__V1__REPAIR_OUTCOME__REPAIR_OUTCOME_MADE_AGAIN;
    return channel_repair(context, key, request->other_end, response->channel);
}

static err admin_repair_row_handle(struct apply_context *context, const ProtobufCMessage *message,
                                   ProtobufCMessage *reply)
{
    const repair_request *request = (const repair_request *)message;
    Holdfast__V1__RepairRowResponse *response = (Holdfast__V1__RepairRowResponse *)reply;
    struct arena *arena = context->arena;
    struct row_check check;
    struct row_key key;
    struct slice value;

    if (row_key_parse(slice_from_text(request->key), &key) != ERR_OK || !may_go(&key) ||
        !knows(context, &key))
        return refuse_invalid(arena, context->refusal, "key", "a key in hex digits", "");
    enum state_found found = state_find(context->state, row_key_slice(&key), &value);
    if (found == STATE_MISSING) {
        need_add_key(context->need, row_key_slice(&key));
        return ERR_NEED;
    }
    if (found == STATE_PRESENT)
        row_check(arena, row_key_slice(&key), value, &check);
    if (found == STATE_ABSENT || check.readable)
        return refuse_invalid(arena, context->refusal, "key",
                              "a row that is there and cannot be read",
                              text_shorten(arena, slice_from_text(request->key)));
    response->row = repaired_row(arena, row_key_slice(&key), value);
    if (key.bytes[0] == TABLE_CHANNEL)
        return make_again(context, &key, request, response);
    response->row->outcome = HOLDFAST__V1__REPAIR_OUTCOME__REPAIR_OUTCOME_DROPPED;
    state_delete(context->state, row_key_slice(&key));
    return ERR_OK;
}

const struct handler admin_repair_row_handler = {
    .method = METHOD_REPAIR_ROW,
    .check = admin_repair_row_check,
    .handle = admin_repair_row_handle,
};
