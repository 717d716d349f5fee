#include "node/core/goods/balance_list.h"

#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "runtime/base/check.h"

#define APART_APPLY_VERSION 4u
/* Of the message that a balance was in version 3. */
#define FIELD_RESERVED   3u
#define VARINT_BYTES_MAX 10u

void balance_list_init(struct balance_list *list, struct arena *arena, size_t count_max,
                       uint32_t version)
{
    *list = (struct balance_list){
        .arena = arena,
        .apart = version >= APART_APPLY_VERSION,
        .room = count_max,
        .balances = arena_alloc(arena, sizeof *list->balances * (count_max + 1)),
        .reserved = arena_alloc(arena, sizeof *list->reserved * (count_max + 1)),
    };
}

static Holdfast__V1__CurrencyAmount *amount_of(struct arena *arena, char *currency, int64_t amount)
{
    Holdfast__V1__CurrencyAmount *made = (Holdfast__V1__CurrencyAmount *)arena_message(
        arena, &holdfast__v1__currency_amount__descriptor);

    made->currency = currency;
    made->amount = amount;
    return made;
}

/* The same bytes as a replica of version 3 packs. */
static void keep_within(struct arena *arena, Holdfast__V1__CurrencyAmount *balance,
                        int64_t reserved)
{
    ProtobufCMessageUnknownField *field = arena_zalloc(arena, sizeof *field);
    uint64_t left = (uint64_t)reserved;

    field->tag = FIELD_RESERVED;
    field->wire_type = PROTOBUF_C_WIRE_TYPE_VARINT;
    field->data = arena_alloc(arena, VARINT_BYTES_MAX);
    do {
        field->data[field->len++] = (uint8_t)((left & 0x7F) | (left > 0x7F ? 0x80 : 0));
        left >>= 7;
    } while (left > 0);
    balance->base.n_unknown_fields = 1;
    balance->base.unknown_fields = field;
}

void balance_list_add(struct balance_list *list, char *currency, int64_t amount, int64_t reserved)
{
    Holdfast__V1__CurrencyAmount *balance = amount_of(list->arena, currency, amount);

    CHECK(list->balance_count < list->room);
    list->balances[list->balance_count++] = balance;
    if (reserved != 0 && list->apart)
        list->reserved[list->reserved_count++] = amount_of(list->arena, currency, reserved);
    else if (reserved != 0)
        keep_within(list->arena, balance, reserved);
}

static size_t place_of(Holdfast__V1__CurrencyAmount *const *amounts, size_t count,
                       const char *currency)
{
    size_t place = 0;

    while (place < count && strcmp(amounts[place]->currency, currency) != 0)
        place++;
    return place;
}

bool balance_list_has(const struct balance_list *list, const char *currency)
{
    return place_of(list->balances, list->balance_count, currency) < list->balance_count;
}

void balance_list_note(struct balance_list *list, size_t count, const struct ledger_change *changes)
{
    for (size_t i = 0; i < count; i++) {
        char *currency = (char *)(uintptr_t)changes[i].currency.data;
        size_t place = place_of(list->balances, list->balance_count, currency);
        if (place < list->balance_count)
            list->balances[place]->amount = changes[i].balance_after; /* Claims reserve nothing. */
        else
            balance_list_add(list, currency, changes[i].balance_after, changes[i].reserved_after);
    }
}
