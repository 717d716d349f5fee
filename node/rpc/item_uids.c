#include "node/rpc/item_uids.h"

#include <string.h>

#include "node/core/codec/text_rule.h"
#include "node/core/goods/ledger.h"
#include "node/core/handler/refusal.h"
#include "runtime/base/check.h"

/* What is wrong with one of them; NULL: nothing. */
static const char *uid_wanted(size_t place, char *const *uids)
{
    uint8_t uid[ITEM_UID_BYTES];

    if (item_uid_parse(slice_from_text(uids[place]), uid) != ERR_OK)
        return "32 hex digits, lower case";
    for (size_t i = 0; i < place; i++) {
        if (strcmp(uids[i], uids[place]) == 0)
            return "each item once";
    }
    return NULL;
}

bool item_uids_are_sound(size_t count, char *const *uids)
{
    if (count > LEDGER_ITEMS_MAX)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (uid_wanted(i, uids) != NULL)
            return false;
    }
    return true;
}

err item_uids_check(struct check_context *context, size_t count, char *const *uids)
{
    struct arena *arena = context->arena;

    if (count > LEDGER_ITEMS_MAX)
        return refuse_number(arena, context->refusal, "item_uids", "at most 64", (int64_t)count);
    for (size_t i = 0; i < count; i++) {
        const char *wanted = uid_wanted(i, uids);
        if (wanted != NULL)
            return refuse_invalid(arena, context->refusal, arena_printf(arena, "item_uids[%zu]", i),
                                  wanted, text_shorten(arena, slice_from_text(uids[i])));
    }
    return ERR_OK;
}

void item_uids_footprint(const struct op *op, size_t count, char *const *uids, struct need *keys)
{
    uint8_t uid[ITEM_UID_BYTES];
    struct row_key key;

    for (size_t i = 0; i < count; i++) {
        CHECK(item_uid_parse(slice_from_text(uids[i]), uid) == ERR_OK);
        row_key_item(&key, op->entity, uid);
        need_add_key(keys, row_key_slice(&key));
    }
}
