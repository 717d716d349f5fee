/*
 * goods: currencies and items on their way: taken out of a player's inventory, put into one,
 * in the form in which mail carries them. What happens to balances by the rules is node/rpc's
 * wallet; here they only go back to where they came from. DESIGN sections 3 and 7.
 */
#ifndef NODE_CORE_GOODS_GOODS_H
#define NODE_CORE_GOODS_GOODS_H

#include "holdfast/v1/mailbox.pb-c.h"
#include "node/core/goods/ledger.h"
#include "node/core/handler/handler.h"

#define ITEM_DAMAGE   "an item's row cannot be read"
#define AMOUNT_DAMAGE "what comes back to the player finds no room in its balances"

/* A row as the API tells it, and back. Texts live in the arena, or in the message. */
Holdfast__V1__Item *goods_item_message(struct arena *arena, const struct item_row *item);
/* As a repeated field; room for at least one. */
Holdfast__V1__Item **goods_item_messages(struct arena *arena, size_t count,
                                         const struct item_row *items);
/* The message was made by goods_item_message. */
struct item_row goods_item_row(const Holdfast__V1__Item *item);

/* Before UIDs or mail ids are made from context->uid_place on. ERR_CONFLICT: THROTTLED, an entry of
 * a build that did not bound them has none left; nothing is recorded. */
NODISCARD err goods_places_check(struct apply_context *context, size_t count);

/* Takes items out of context->player's inventory, one step further in their histories. ret_items:
 * room for `count`, texts in the arena.
 * ERR_NEED, every missing row noted; ERR_CONFLICT: ITEM_NOT_HELD. */
NODISCARD err goods_take_items(struct apply_context *context, size_t count, char *const *uids,
                               struct item_row *ret_items);
/* Puts items into context->player's inventory, one step further. `items_max`: CAPACITY_FULL above
 * it. */
NODISCARD err goods_put_items(struct apply_context *context, size_t count,
                              Holdfast__V1__Item *const *items, uint64_t items_max,
                              struct item_row *ret_items);
/*
 * A refund always fits. What is on its way from one shard is at most OUTBOX_MAX records, so those
 * up to GOODS_LARGE come to less than 2^62 together; larger ones are noted in the player's row
 * while they are open, and come to no more than AMOUNT_MAX together, as reservations do.
 */
#define GOODS_LARGE (1ll << 46)
bool goods_are_large(const Holdfast__V1__Mail *mail);
/* Before they leave to another shard. ERR_CONFLICT: THROTTLED, too much is on its way. */
NODISCARD err goods_note_sent(struct apply_context *context, const Holdfast__V1__Mail *mail);
/* They arrived, or are refunded. */
void goods_forget_sent(struct player *player, const Holdfast__V1__Mail *mail);

/* Adds to context->player's balances, whatever the limits say, and tells how many changes that made
 * (ret_changes: room for `count`). What no balance has room for is left out, and damage noted: rows
 * that make no sense named it. */
uint32_t goods_add_amounts(struct apply_context *context, size_t count,
                           Holdfast__V1__CurrencyAmount *const *amounts,
                           struct ledger_change *ret_changes);

/* Gives context->player back what was taken from it, whatever the limits say meanwhile, with a
 * ledger entry that names whom it was with. */
void goods_refund(struct apply_context *context, const Holdfast__V1__Mail *mail,
                  uint32_t counterpart_count, const char *const *counterparts);
bool goods_are_none(const Holdfast__V1__Mail *mail);

#endif
