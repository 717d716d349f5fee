#include "holdfast/v1/admin.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/text_rule.h"
#include "node/core/handler/refusal.h"
#include "node/core/repair/row_check.h"
#include "node/core/repair/row_repair.h"
#include "node/rpc/methods.h"

typedef Holdfast__V1__RepairRowRequest repair_request;

/* Without them the shard goes on, and nothing is done twice: history, receipts (one that is gone
 * can be paid once more), timers, transactions. */
static bool may_go(const struct row_key *key)
{
    switch ((enum table)key->bytes[0]) {
    case TABLE_HISTORY:
    case TABLE_RECEIPT:
    case TABLE_TIMER:
    case TABLE_TXN:
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
    case TABLE_CHANNEL: /* A record without its row would be carried out twice, or never. */
    case TABLE_OUTBOX:
    case TABLE_INBOX:
    case TABLE_META:
    case TABLE_NOTE:
        break;
    }
    return false;
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
                              "a row of a table k, R, t or z; others see "
                              "docs/runbooks/HoldfastRowsUnreadable.md",
                              text_shorten(context->arena, text));
    return ERR_OK;
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

    if (row_key_parse(slice_from_text(request->key), &key) != ERR_OK || !may_go(&key))
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
    response->row->outcome = HOLDFAST__V1__REPAIR_OUTCOME__REPAIR_OUTCOME_DROPPED;
    state_delete(context->state, row_key_slice(&key));
    return ERR_OK;
}

const struct handler admin_repair_row_handler = {
    .method = METHOD_REPAIR_ROW,
    .check = admin_repair_row_check,
    .handle = admin_repair_row_handle,
};
