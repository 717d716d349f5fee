#include "node/rpc/item_uids.h"

#include <string.h>

#include "node/core/codec/text_rule.h"
#include "node/core/goods/ledger.h"
#include "node/core/handler/refusal.h"

err item_uids_check(struct check_context *context, size_t count, char *const *uids)
{
    struct arena *arena = context->arena;
    uint8_t uid[ITEM_UID_BYTES];

    if (count > LEDGER_ITEMS_MAX)
        return refuse_number(arena, context->refusal, "item_uids", "at most 64", (int64_t)count);
    for (size_t i = 0; i < count; i++) {
        struct slice text = slice_from_text(uids[i]);
        const char *wanted = NULL;
        if (item_uid_parse(text, uid) != ERR_OK)
            wanted = "32 hex digits, lower case";
        for (size_t j = 0; j < i && wanted == NULL; j++) {
            if (strcmp(uids[j], uids[i]) == 0)
                wanted = "each item once";
        }
        if (wanted != NULL)
            return refuse_invalid(arena, context->refusal, arena_printf(arena, "item_uids[%zu]", i),
                                  wanted, text_shorten(arena, text));
    }
    return ERR_OK;
}

void item_uids_footprint(const struct op *op, size_t count, char *const *uids, struct need *keys)
{
    uint8_t uid[ITEM_UID_BYTES];
    struct row_key key;

    for (size_t i = 0; i < count; i++) {
        if (item_uid_parse(slice_from_text(uids[i]), uid) != ERR_OK)
            continue; /* An owner of an earlier version does not know the field, nor check it. */
        row_key_item(&key, op->entity, uid);
        need_add_key(keys, row_key_slice(&key));
    }
}
