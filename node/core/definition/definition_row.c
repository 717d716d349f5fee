#include "node/core/definition/definition_row.h"

#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/player/meta.h"

typedef Holdfast__Internal__V1__DefinedCurrency defined_currency;

uint64_t definition_number_of(struct slice key)
{
    struct reader reader = reader_from(key);

    (void)read_u8(&reader);
    return read_u64_be(&reader);
}

defined *definition_row_decode(struct arena *arena, struct slice key, struct slice value)
{
    defined *row = (void *)arena_unpack(arena, &holdfast__internal__v1__defined__descriptor, value);
    size_t name = row != NULL ? strlen(row->name) : 0;

    if (row == NULL || row->number != definition_number_of(key) ||
        row->number == DEFINITION_HEAD_NUMBER || name == 0 || name > DEFINITION_NAME_MAX ||
        row->body == NULL)
        return NULL;
    return row;
}

static bool currency_is_sound(const defined_currency *currency)
{
    size_t size = strlen(currency->name);

    return size > 0 && size <= CURRENCY_NAME_BYTES_MAX && currency->min_balance <= 0 &&
           currency->max_balance >= 0;
}

defined_head *definition_head_decode(struct arena *arena, struct slice value)
{
    defined_head *head =
        (void *)arena_unpack(arena, &holdfast__internal__v1__defined_head__descriptor, value);

    if (head == NULL || head->n_currencies > CURRENCIES_MAX || head->n_covered > CURRENCIES_MAX ||
        head->count > DEFINITIONS_MAX || head->bytes > DEFINITIONS_BYTES_MAX)
        return NULL;
    for (size_t i = 0; i < head->n_currencies; i++) {
        if (!currency_is_sound(head->currencies[i]))
            return NULL;
    }
    for (size_t i = 0; i < head->n_covered; i++) {
        if (!currency_is_sound(head->covered[i]))
            return NULL;
    }
    return head;
}

bool definition_row_is_sound(struct arena *arena, struct slice key, struct slice value)
{
    if (key.size != 1 + sizeof(uint64_t))
        return false;
    if (definition_number_of(key) == DEFINITION_HEAD_NUMBER)
        return definition_head_decode(arena, value) != NULL;
    return definition_row_decode(arena, key, value) != NULL;
}
