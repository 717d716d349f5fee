/*
 * goods_sound: whether goods that a row or another shard's message carries can be put into
 * balances, inventories and ledgers without another look. The bounds are those of the rows they end
 * up in, so they hold for whatever any version of this program wrote; requests have narrower ones
 * (idl/limit.h). What is past them is damage: a decoder says that the row cannot be read, and a
 * message is refused.
 */
#ifndef NODE_CORE_GOODS_GOODS_SOUND_H
#define NODE_CORE_GOODS_GOODS_SOUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/v1/currency.pb-c.h"
#include "holdfast/v1/inventory.pb-c.h"

/* Of all amounts together: no balance that can be read overflows by them (BALANCE_ROW_MAX). */
#define GOODS_SUM_MAX (1ll << 61)

/* An op_id, an authority, a reason: a ledger's row has a byte for its length. */
bool goods_text_is_sound(const char *text);
/* At most LEDGER_CHANGES_MAX, none negative, with names that a balance can have. */
bool goods_amounts_are_sound(size_t count, Holdfast__V1__CurrencyAmount *const *amounts);
/* What becomes an item: its kind and attributes. */
bool goods_kind_is_sound(const char *kind, const char *attributes);
/* At most LEDGER_ITEMS_MAX, each with a UID. */
bool goods_items_are_sound(size_t count, Holdfast__V1__Item *const *items);

#endif
