#include <string.h>

#include "holdfast/debug/v1/debug.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/text_rule.h"
#include "node/core/goods/goods.h"
#include "node/core/handler/refusal.h"
#include "node/core/repair/row_repair.h"
#include "node/rpc/methods.h"
#include "runtime/base/check.h"
#include "runtime/base/hex.h"

/* Damage on purpose, but for `differs_on` the same on all replicas: what a fault of a program could
 * do. */
#define ITEM_KIND         "injected"
#define SPOILT_TABLES     "phl"
#define SPOILT_DIGITS_MAX 4096u

typedef Holdfast__Debug__V1__InjectRequest inject_request;

static err debug_inject_check(struct check_context *context, ProtobufCMessage *message)
{
    const inject_request *request = (const inject_request *)message;
    struct slice uid = slice_from_text(request->item_uid);
    struct slice currency = slice_from_text(request->currency);
    uint8_t bytes[ITEM_UID_BYTES];
    struct row_key key;

    if (uid.size > 0 && item_uid_parse(uid, bytes) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "item_uid",
                              "32 hex digits, lower case", text_shorten(context->arena, uid));
    if (currency.size > 0 && policy_find_currency(&context->meta->policy, currency) == NULL)
        return refuse_invalid(context->arena, context->refusal, "currency",
                              "a currency of the policy", text_shorten(context->arena, currency));
    if (request->spoil_table[0] != 0 &&
        (strchr(SPOILT_TABLES, request->spoil_table[0]) == NULL || request->spoil_table[1] != 0))
        return refuse_invalid(context->arena, context->refusal, "spoil_table", "p, h or l",
                              text_shorten(context->arena, slice_from_text(request->spoil_table)));
    if (request->spoil_key[0] != 0 &&
        row_key_parse(slice_from_text(request->spoil_key), &key) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "spoil_key", "a key in hex digits",
                              text_shorten(context->arena, slice_from_text(request->spoil_key)));
    struct slice digits = slice_from_text(request->spoil_value);
    if (digits.size > SPOILT_DIGITS_MAX || digits.size % 2 != 0 ||
        hex_parse(digits, digits.size / 2, arena_alloc(context->arena, digits.size / 2 + 1)) !=
            ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "spoil_value",
                              "at most 4096 hex digits, two a byte",
                              text_shorten(context->arena, digits));
    if (request->amount < 0 || request->amount > AMOUNT_MAX / 2)
        return refuse_invalid(context->arena, context->refusal, "amount", "0 to 4503599627370495",
                              "");
    return ERR_OK;
}

static void put_item(struct apply_context *context, const char *uid)
{
    struct item_row item = {
        .step = 1,
        .minted_at_ms = context->owner_ms,
        .kind = SLICE_LITERAL(ITEM_KIND),
        .attributes = SLICE_LITERAL("{}"),
    };
    Holdfast__V1__Item *message;
    struct item_row row;

    (void)!item_uid_parse(slice_from_text(uid), item.uid); /* It was checked. */
    message = goods_item_message(context->arena, &item);
    (void)!goods_put_items(context, 1, &message, UINT64_MAX, &row);
}

/* Any row of the shard, as a hand in the database could. */
static void spoil_key(struct apply_context *context, const inject_request *request)
{
    struct slice digits = slice_from_text(request->spoil_value);
    uint8_t *bytes = arena_alloc(context->arena, digits.size / 2 + 1);
    struct row_key key;

    if (row_key_parse(slice_from_text(request->spoil_key), &key) != ERR_OK)
        return;
    if (digits.size > 0 && hex_parse(digits, digits.size / 2, bytes) == ERR_OK)
        state_put(context->state, row_key_slice(&key), (struct slice){ bytes, digits.size / 2 });
    else
        state_put(context->state, row_key_slice(&key), SLICE_LITERAL("\xff spoilt"));
}

static void spoil(struct apply_context *context, char table)
{
    struct slice entity = context->op->entity;
    struct row_key key;

    row_key_player(&key, entity);
    if (table == TABLE_MAILBOX)
        row_key_mailbox(&key, entity);
    if (table == TABLE_LEDGER)
        row_key_ledger(&key, entity, context->player->ledger_seq);
    state_put(context->state, row_key_slice(&key), SLICE_LITERAL("\xff spoilt"));
    /* The core does not write it back over that. */
    context->unreadable = table == TABLE_PLAYER;
}

static err debug_inject_handle(struct apply_context *context, const ProtobufCMessage *message,
                               ProtobufCMessage *reply)
{
    const inject_request *request = (const inject_request *)message;
    struct slice currency = slice_from_text(request->currency);

    (void)reply;
    CHECK(!request->fail_check); /* What an unknown fault of this program would do. */
    if (!slice_equal(context->op->authority.scope, SLICE_LITERAL("admin")))
        return refuse(context->arena, context->refusal, CODE(PERMISSION_DENIED), "authority",
                      "damage on purpose needs the scope admin");
    if (request->item_uid[0] != 0)
        put_item(context, request->item_uid);
    if (currency.size > 0) {
        struct balance *balance = player_get_balance(context->player, context->arena, currency);
        if (balance->amount > AMOUNT_MAX - request->amount)
            return refuse(context->arena, context->refusal, CODE(CAPACITY_FULL), "amount",
                          "the balance would be too large");
        balance->amount += request->amount;
    }
    if (request->spoil_table[0] != 0)
        spoil(context, request->spoil_table[0]);
    if (request->spoil_key[0] != 0)
        spoil_key(context, request);
    if (request->differs_on != 0 && request->differs_on == context->replica)
        context->meta->outcome_hash.bytes[0] ^= 1;
    return ERR_OK;
}

const struct handler debug_inject_handler = {
    .method = METHOD_DEBUG_INJECT,
    .admits = ADMITS_SYSTEM,
    .check = debug_inject_check,
    .handle = debug_inject_handle,
};
