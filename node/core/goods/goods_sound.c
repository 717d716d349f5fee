#include "node/core/goods/goods_sound.h"

#include <string.h>

#include "node/core/goods/ledger.h"
#include "node/core/player/meta.h"
#include "node/core/rows/rows.h"

bool goods_text_is_sound(const char *text)
{
    return strlen(text) <= UINT8_MAX;
}

bool goods_amounts_are_sound(size_t count, Holdfast__V1__CurrencyAmount *const *amounts)
{
    int64_t sum = 0;

    if (count > LEDGER_CHANGES_MAX)
        return false;
    for (size_t i = 0; i < count; i++) {
        size_t name = strlen(amounts[i]->currency);
        if (name == 0 || name > CURRENCY_NAME_BYTES_MAX || amounts[i]->amount < 0 ||
            amounts[i]->amount > GOODS_SUM_MAX - sum)
            return false;
        sum += amounts[i]->amount;
    }
    return true;
}

bool goods_kind_is_sound(const char *kind, const char *attributes)
{
    return strlen(kind) <= ITEM_KIND_ROW_MAX && strlen(attributes) <= ITEM_ATTRIBUTES_ROW_MAX;
}

bool goods_items_are_sound(size_t count, Holdfast__V1__Item *const *items)
{
    uint8_t uid[ITEM_UID_BYTES];

    if (count > LEDGER_ITEMS_MAX)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (item_uid_parse(slice_from_text(items[i]->uid), uid) != ERR_OK ||
            !goods_kind_is_sound(items[i]->kind, items[i]->attributes))
            return false;
    }
    return true;
}
