#include <inttypes.h>
#include <string.h>

#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/goods/goods.h"
#include "node/core/handler/refusal.h"
#include "node/rpc/entry_target.h"
#include "node/rpc/methods.h"
#include "node/rpc/wallet.h"
#include "runtime/base/check.h"

#define KIND(name)    HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_##name
#define SYSTEM_PREFIX "system:"

static struct entry_target target_of(const Holdfast__V1__ReverseEntryRequest *request)
{
    return (struct entry_target){
        .op_id = request->target_op_id,
        .seq = request->target_seq,
        .op_id_field = "target_op_id",
        .seq_field = "target_seq",
        .searched = true,
    };
}

static err ledger_reverse_entry_check(struct check_context *context, ProtobufCMessage *message)
{
    Holdfast__V1__ReverseEntryRequest *request = (Holdfast__V1__ReverseEntryRequest *)message;

    err e = entry_target_check(context, "target_op_id", &request->target_op_id);
    if (e != ERR_OK)
        return e;
    if (request->reason[0] == 0)
        return refuse_invalid(context->arena, context->refusal, "reason",
                              "1 to 64 bytes: why it is reversed", "");
    return wallet_reason_check(context, request->reason);
}

static void ledger_reverse_footprint(const struct op *op, const ProtobufCMessage *message,
                                     struct need *keys)
{
    struct entry_target target = target_of((const Holdfast__V1__ReverseEntryRequest *)message);

    entry_target_footprint(op, &target, keys);
}

static err refuse_reversed(struct apply_context *context, uint64_t seq, uint64_t by)
{
    err e = refuse(context->arena, context->refusal, CODE(ALREADY_REVERSED), "target_op_id",
                   "entry %" PRIu64 " was reversed by entry %" PRIu64, seq, by);

    context->refusal->value = arena_printf(context->arena, "%" PRIu64, by);
    return e;
}

/* What the reversal of a kind does to the player. */
enum direction { NEITHER, GIVES_BACK, TAKES_BACK };

static enum direction direction_of(Holdfast__V1__LedgerKind kind)
{
    switch ((int)kind) {
    case KIND(GRANT):
    case KIND(MINT):
        return TAKES_BACK;
    case KIND(SPEND):
    case KIND(CONSUME):
    case KIND(POST):
        return GIVES_BACK;
    default:
        return NEITHER;
    }
}

/* Why an entry of that kind is not reversed, and what to do instead. */
static const char *way_out(Holdfast__V1__LedgerKind kind)
{
    switch ((int)kind) {
    case KIND(TRANSFER):
    case KIND(CLAIM):
        return "its goods are moved back by another transfer";
    case KIND(MAIL):
        return "it changed no balance; its goods are in the mailbox, or came with a CLAIM";
    case KIND(TXN_TAKE):
    case KIND(TXN_GIVE):
        return "it is one side of a transaction; carry out the opposite one";
    case KIND(RESERVE):
        return "its reservation is voided instead, and its POST can be reversed";
    case KIND(VOID):
    case KIND(EXPIRY):
    case KIND(REFUND):
        return "it only gave back what was set aside or on its way";
    case KIND(REVERSAL):
        return "do the operation that it undid again, under a new op_id";
    default:
        return "carry out the opposite operation";
    }
}

static err refuse_kind(struct apply_context *context, const Holdfast__V1__LedgerEntry *entry)
{
    const ProtobufCEnumValue *kind = protobuf_c_enum_descriptor_get_value(
        &holdfast__v1__ledger_kind__descriptor, (int)entry->kind);
    const char *name = kind != NULL ? kind->name + sizeof "LEDGER_KIND" : "";
    err e;

    if (context->version < ENTRY_SEARCH_APPLY_VERSION)
        e = refuse(context->arena, context->refusal, CODE(NOT_REVERSIBLE), "target_op_id",
                   "entry %" PRIu64 " is of a kind that is not reversed", entry->seq);
    else
        e = refuse(context->arena, context->refusal, CODE(NOT_REVERSIBLE), "target_op_id",
                   "entry %" PRIu64 " is of kind %s, which is not reversed: %s", entry->seq, name,
                   way_out(entry->kind));
    context->refusal->limit = "GRANT, SPEND or POST";
    context->refusal->value = name;
    return e;
}

static err check_allowed(struct apply_context *context, const Holdfast__V1__LedgerEntry *entry)
{
    enum direction direction = direction_of(entry->kind);

    if (direction == NEITHER)
        return refuse_kind(context, entry);
    if (context->op->authority.kind != AUTHORITY_SYSTEM || direction == GIVES_BACK ||
        strncmp(entry->authority, SYSTEM_PREFIX, sizeof SYSTEM_PREFIX - 1) == 0)
        return ERR_OK;
    err e = refuse(context->arena, context->refusal, CODE(PERMISSION_DENIED), "authority",
                   "system may take back only what system gave");
    context->refusal->limit = "session or unheld";
    context->refusal->value = entry->authority;
    return e;
}

/* The other way round: what the entry changed, of what the player owns. */
static err change_back(struct apply_context *context, const Holdfast__V1__LedgerEntry *entry,
                       struct ledger_change *ret_changes, uint32_t *ret_count)
{
    Holdfast__V1__CurrencyAmount **amounts = arena_messages(
        context->arena, &holdfast__v1__currency_amount__descriptor, entry->n_changes);
    int sign = direction_of(entry->kind) == TAKES_BACK ? -1 : 1;
    uint32_t count = 0;

    for (size_t i = 0; i < entry->n_changes; i++) {
        int64_t net = entry->changes[i]->amount + entry->changes[i]->reserved;
        if (net == 0)
            continue;
        if ((net > 0) != (sign < 0))
            return apply_damaged(context, context->player->entity, LEDGER_DAMAGE);
        amounts[count]->currency = entry->changes[i]->currency;
        amounts[count]->amount = net > 0 ? net : -net;
        count++;
    }
    *ret_count = count;
    return wallet_change(context, count, amounts, sign, ret_changes);
}

static err move_items_back(struct apply_context *context, const Holdfast__V1__LedgerEntry *entry,
                           struct item_row *ret_items)
{
    char *uids[LEDGER_ITEMS_MAX];

    CHECK(entry->n_items <= LEDGER_ITEMS_MAX);
    if (direction_of(entry->kind) == GIVES_BACK)
        return goods_put_items(context, entry->n_items, entry->items,
                               context->meta->policy.items_max, ret_items);
    for (size_t i = 0; i < entry->n_items; i++)
        uids[i] = entry->items[i]->uid;
    err e = goods_take_items(context, entry->n_items, uids, ret_items);
    if (e == ERR_CONFLICT)
        refusal_tell_field(context, "item_uids"); /* Of the entry: `value` says which. */
    return e;
}

static err ledger_reverse_handle(struct apply_context *context, const ProtobufCMessage *message,
                                 ProtobufCMessage *reply)
{
    const Holdfast__V1__ReverseEntryRequest *request =
        (const Holdfast__V1__ReverseEntryRequest *)message;
    Holdfast__V1__ReverseEntryResponse *response = (Holdfast__V1__ReverseEntryResponse *)reply;
    struct ledger_change changes[LEDGER_CHANGES_MAX];
    struct item_row items[LEDGER_ITEMS_MAX];
    struct entry_target named = target_of(request);
    Holdfast__V1__LedgerEntry *target = NULL;
    uint32_t change_count = 0;
    uint64_t undone_by = 0;

    err e = entry_target_read(context, &named, &target, &undone_by);
    if (e == ERR_OK)
        e = check_allowed(context, target);
    if (e == ERR_OK && undone_by > 0)
        e = refuse_reversed(context, target->seq, undone_by);
    if (e != ERR_OK)
        return e;
    e = move_items_back(context, target, items);
    if (e == ERR_OK)
        e = change_back(context, target, changes, &change_count);
    if (e == ERR_CONFLICT || e == ERR_INVALID)
        refusal_tell_own(context, "target_op_id");
    if (e != ERR_OK)
        return e;
    struct ledger_entry entry = {
        .kind = KIND(REVERSAL),
        .reason = slice_from_text(request->reason),
        .change_count = change_count,
        .changes = changes,
        .item_count = (uint32_t)target->n_items,
        .items = items,
        .items_taken = target->n_items > 0 && direction_of(target->kind) == TAKES_BACK,
        .refers_to = target->seq,
    };
    ledger_append(context, &entry);
    entry_target_mark(context, target->seq);
    response->ledger_seq = context->player->ledger_seq;
    response->reversed_seq = target->seq;
    WALLET_TELL(context, change_count, changes, response);
    return ERR_OK;
}

const struct handler ledger_reverse_entry_handler = {
    .method = METHOD_REVERSE_ENTRY,
    .admits = ADMITS_SESSION | ADMITS_SYSTEM | ADMITS_UNHELD,
    .check = ledger_reverse_entry_check,
    .footprint = ledger_reverse_footprint,
    .handle = ledger_reverse_handle,
};
