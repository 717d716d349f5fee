/* What the outcome of an operation tells beside its version: the entry it left, the balances that
 * it changed, items that moved. By the ledger, which model_entry.c has just read. Part of the
 * model. */
#include <string.h>

#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "runtime/base/check.h"
#include "tests/sim/model/model.h"

/* The player's entries of this entry of the log. */
struct left {
    const struct entry_model *first;
    uint64_t count;
    uint32_t changed; /* Currencies, as bits. */
};

static struct left left_by(const struct change *c, const struct player_model *player)
{
    struct left left = { 0 };

    while (left.count < player->entry_count &&
           player->entries[player->entry_count - 1 - left.count].index == c->entry->index) {
        left.changed |= player->entries[player->entry_count - 1 - left.count].changed;
        left.count++;
    }
    if (left.count > 0)
        left.first = &player->entries[player->entry_count - left.count];
    return left;
}

static const void *field_of(const ProtobufCMessage *message, const char *name, size_t *ret_count)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);
    const uint8_t *at = (const uint8_t *)message;

    if (field == NULL)
        return NULL;
    if (ret_count != NULL && field->label == PROTOBUF_C_LABEL_REPEATED)
        *ret_count = *(const size_t *)(const void *)(at + field->quantifier_offset);
    return at + field->offset;
}

static void check_amounts(const struct change *c, size_t count,
                          Holdfast__V1__CurrencyAmount *const *told, const int64_t *wanted,
                          uint32_t currencies)
{
    uint32_t seen = 0;

    for (size_t i = 0; i < count; i++) {
        uint32_t currency = model_currency(told[i]->currency);
        if ((seen >> currency & 1) > 0 || told[i]->amount != wanted[currency])
            model_fail(c, "an amount is told twice, or wrongly", currency);
        seen |= 1u << currency;
    }
    if (seen != currencies)
        model_fail(c, "amounts of other currencies are told than of those that changed", seen);
}

void answer_check_balances(const struct change *c, const ProtobufCMessage *told,
                           const struct moment *now, uint32_t changed)
{
    size_t count = 0, reserved_count = 0;
    uint32_t reserved = 0;
    Holdfast__V1__CurrencyAmount *const *const *balances = field_of(told, "balances", &count);
    Holdfast__V1__CurrencyAmount *const *const *apart = field_of(told, "reserved", &reserved_count);

    if (balances == NULL || apart == NULL)
        return;
    for (uint32_t i = 0; i < SIM_CURRENCIES; i++)
        reserved |= now->reserved[i] != 0 && (changed >> i & 1) > 0 ? 1u << i : 0;
    check_amounts(c, count, *balances, now->balances, changed);
    check_amounts(c, reserved_count, *apart, now->reserved, reserved);
}

static void check_items(const struct change *c, const ProtobufCMessage *response,
                        const struct left *left)
{
    const struct goods_book *book = &c->sim->oracle->book;
    size_t count = 0, at = 0;
    Holdfast__V1__Item *const *const *items = field_of(response, "items", &count);

    if (items == NULL)
        return;
    for (uint64_t i = 0; i < left->count; i++) {
        for (uint32_t j = 0; j < left->first[i].item_count; j++, at++) {
            const struct item_model *item = &book->items[left->first[i].items[j] - 1];
            if (at < count && (strcmp((*items)[at]->uid, item->uid) != 0 ||
                               strcmp((*items)[at]->kind, item->kind) != 0 ||
                               strcmp((*items)[at]->attributes, item->attributes) != 0 ||
                               (uint64_t)(*items)[at]->minted_at_ms != item->minted_ms))
                model_fail(c, "an item is told otherwise than it is", at);
        }
    }
    if (at != count)
        model_fail(c, "other items are told than have moved", count);
}

static void check_number(const struct change *c, const ProtobufCMessage *response, const char *name,
                         uint64_t wanted)
{
    const uint64_t *told = field_of(response, name, NULL);

    if (told != NULL && *told != wanted)
        model_fail(c, "another entry of the ledger is told than was written, or undone", *told);
}

static uint64_t target_entry(const struct change *c, const char *name)
{
    char *const *id = field_of(c->request, name, NULL);

    return id != NULL ? model_target(c, *id)->entry_seq : 0;
}

void answer_check(const struct change *c)
{
    const struct player_model *player = c->player;

    if (c->sim->failure[0] != '\0' || player == NULL || c->rule->effect == NULL ||
        c->op.id.text.size == 0 || c->outcome->kind != OUTCOME_COMMITTED || c->outcome->duplicate)
        return;
    const ProtobufCMessage *response = arena_unpack(
        &c->sim->oracle->arena, method_answer(method_find(c->op.method)), c->outcome->body);
    struct left left = left_by(c, player);
    CHECK(response != NULL);
    check_number(c, response, "ledger_seq", left.count > 0 ? player->entry_count : 0);
    check_number(c, response, "reversed_seq", target_entry(c, "target_op_id"));
    check_number(c, response, "reserve_seq", target_entry(c, "reserve_op_id"));
    answer_check_balances(c, response, &player->now, left.changed);
    check_items(c, response, &left);
}
