#include <inttypes.h>
#include <string.h>

#include "idl/method.h"
#include "node/core/arena_proto.h"
#include "node/core/goods.h"
#include "node/core/outcome_row.h"
#include "node/core/refusal.h"
#include "node/core/text_rule.h"
#include "node/rpc/methods.h"
#include "node/rpc/wallet.h"
#include "runtime/base/check.h"

#define KIND(name)    HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_##name
#define SYSTEM_PREFIX "system:"

static err ledger_reverse_check(struct check_context *context, ProtobufCMessage *message)
{
    Holdfast__V1__ReverseRequest *request = (Holdfast__V1__ReverseRequest *)message;
    struct slice text = slice_from_text(request->target_op_id);
    struct op_id id;
    const char *why;

    if (op_id_parse(text, &id, &why) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "target_op_id", why,
                              text_shorten(context->arena, text));
    if (!id.typed) {
        /* Canonical, since ledger entries tell it so and the payload is compared. */
        request->target_op_id = arena_alloc(context->arena, UUID_TEXT_SIZE);
        uuid_print(&id.uuid, request->target_op_id);
    }
    if (request->reason[0] == 0)
        return refuse_invalid(context->arena, context->refusal, "reason",
                              "1 to 64 bytes: why it is reversed", "");
    return wallet_reason_check(context, request->reason);
}

static struct op_id target_id(const Holdfast__V1__ReverseRequest *request)
{
    struct op_id id;
    const char *why;

    CHECK(op_id_parse(slice_from_text(request->target_op_id), &id, &why) == ERR_OK);
    return id;
}

static void ledger_reverse_footprint(const struct op *op, const ProtobufCMessage *message,
                                     struct need *keys)
{
    const Holdfast__V1__ReverseRequest *request = (const Holdfast__V1__ReverseRequest *)message;
    struct op_id id = target_id(request);
    struct row_key key;

    if (request->target_seq == 0) {
        row_key_operation(&key, op->entity, &id);
        need_add_key(keys, row_key_slice(&key));
        return;
    }
    row_key_ledger(&key, op->entity, request->target_seq);
    need_add_key(keys, row_key_slice(&key));
    row_key_reversal(&key, op->entity, request->target_seq);
    need_add_key(keys, row_key_slice(&key));
}

static err refuse_not_found(struct apply_context *context, const char *field, const char *why,
                            const char *value)
{
    err e = refuse(context->arena, context->refusal, CODE(NOT_FOUND), field, "%s", why);

    context->refusal->value = value;
    return e;
}

/* The seq of the target's entry: as given, or as its stored outcome says. */
static err find_seq(struct apply_context *context, const Holdfast__V1__ReverseRequest *request,
                    uint64_t *ret_seq)
{
    struct op_id id = target_id(request);
    struct outcome_row row;
    uint64_t seq = request->target_seq;

    if (seq == 0) {
        enum state_found found =
            outcome_row_find(context->state, context->player->entity, &id, context->need, &row);
        if (found == STATE_MISSING)
            return ERR_NEED;
        if (found == STATE_PRESENT)
            seq = outcome_row_ledger_seq(&row, context->arena);
        if (seq == 0)
            return refuse_not_found(context, "target_op_id",
                                    "no ledger entry of this player is known by that op_id; one "
                                    "older than the outcomes that are kept needs its target_seq",
                                    request->target_op_id);
    }
    if (seq > context->player->ledger_seq)
        return refuse_not_found(context, "target_seq", "the player's ledger ends before that entry",
                                arena_printf(context->arena, "%" PRIu64, seq));
    *ret_seq = seq;
    return ERR_OK;
}

/* ERR_NEED: entry or reversal are not in memory. */
static err read_target(struct apply_context *context, const char *op_id, uint64_t seq,
                       Holdfast__V1__LedgerEntry **ret_entry)
{
    struct slice entity = context->player->entity;
    struct row_key key, reversal_key;
    struct slice row = { 0 }, reversal = { 0 };

    row_key_ledger(&key, entity, seq);
    row_key_reversal(&reversal_key, entity, seq);
    enum state_found found = state_find(context->state, row_key_slice(&key), &row);
    if (found == STATE_PRESENT)
        CHECK(ledger_row_decode(row, context->arena, ret_entry) == ERR_OK);
    enum state_found reversed = state_find(context->state, row_key_slice(&reversal_key), &reversal);
    if (found == STATE_MISSING)
        need_add_key(context->need, row_key_slice(&key));
    if (reversed == STATE_MISSING)
        need_add_key(context->need, row_key_slice(&reversal_key));
    if (found == STATE_MISSING || reversed == STATE_MISSING)
        return ERR_NEED;
    CHECK(found == STATE_PRESENT);
    if (strcmp((*ret_entry)->op_id, op_id) != 0)
        return refuse_not_found(context, "target_seq", "that entry is of another operation",
                                (*ret_entry)->op_id);
    if (reversed == STATE_ABSENT)
        return ERR_OK;
    struct reader reader = reader_from(reversal);
    uint64_t by = read_u64(&reader);
    CHECK(reader_finish(&reader) == ERR_OK);
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
        return GIVES_BACK;
    default:
        return NEITHER;
    }
}

static err check_allowed(struct apply_context *context, const Holdfast__V1__LedgerEntry *entry)
{
    enum direction direction = direction_of(entry->kind);
    const ProtobufCEnumValue *kind = protobuf_c_enum_descriptor_get_value(
        &holdfast__v1__ledger_kind__descriptor, (int)entry->kind);

    if (direction == NEITHER) {
        err e = refuse(context->arena, context->refusal, CODE(NOT_REVERSIBLE), "target_op_id",
                       "entry %" PRIu64 " is of a kind that is not reversed", entry->seq);
        context->refusal->limit = "GRANT, MINT, SPEND or CONSUME";
        context->refusal->value = kind != NULL ? kind->name + sizeof "LEDGER_KIND" : "";
        return e;
    }
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
        CHECK((net > 0) == (sign < 0));
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
    return goods_take_items(context, entry->n_items, uids, ret_items);
}

static void mark_reversed(struct apply_context *context, uint64_t seq)
{
    struct row_key key;

    row_key_reversal(&key, context->player->entity, seq);
    buf_clear(context->scratch);
    buf_put_u64(context->scratch, context->player->ledger_seq);
    state_put(context->state, row_key_slice(&key), buf_slice(context->scratch));
}

static err ledger_reverse_handle(struct apply_context *context, const ProtobufCMessage *message,
                                 ProtobufCMessage *reply)
{
    const Holdfast__V1__ReverseRequest *request = (const Holdfast__V1__ReverseRequest *)message;
    Holdfast__V1__ReverseResponse *response = (Holdfast__V1__ReverseResponse *)reply;
    struct ledger_change changes[LEDGER_CHANGES_MAX];
    struct item_row items[LEDGER_ITEMS_MAX];
    Holdfast__V1__LedgerEntry *target = NULL;
    uint32_t change_count = 0;
    uint64_t seq = 0;

    err e = find_seq(context, request, &seq);
    if (e == ERR_OK)
        e = read_target(context, request->target_op_id, seq, &target);
    if (e == ERR_OK)
        e = check_allowed(context, target);
    if (e == ERR_OK)
        e = move_items_back(context, target, items);
    if (e == ERR_OK)
        e = change_back(context, target, changes, &change_count);
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
        .refers_to = seq,
    };
    ledger_append(context, &entry);
    mark_reversed(context, seq);
    response->ledger_seq = context->player->ledger_seq;
    response->reversed_seq = seq;
    response->n_balances = change_count;
    response->balances = wallet_balances(context->arena, change_count, changes);
    return ERR_OK;
}

const struct handler ledger_reverse_handler = {
    .method = METHOD_REVERSE,
    .admits = ADMITS_SESSION | ADMITS_SYSTEM | ADMITS_UNHELD,
    .check = ledger_reverse_check,
    .footprint = ledger_reverse_footprint,
    .handle = ledger_reverse_handle,
};
