#include "node/core/profile/profile.h"

#include "idl/page_cursor.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/goods/item_page.h"
#include "node/core/goods/mail_page.h"
#include "node/core/handler/refusal.h"
#include "node/core/rows/rows.h"

/* Of mail beside sections: with these, and a page of items, an answer fits a frame. */
#define MAIL_BYTES_MAX (256u * 1024u)

Holdfast__V1__Dot *dot_message(struct arena *arena, struct dot dot)
{
    Holdfast__V1__Dot *message =
        (Holdfast__V1__Dot *)arena_message(arena, &holdfast__v1__dot__descriptor);

    message->epoch = dot.epoch;
    message->owner = dot.owner;
    message->counter = dot.counter;
    return message;
}

struct balance_list balances_read(struct arena *arena, const struct player *player,
                                  uint32_t version)
{
    struct balance_list list;

    balance_list_init(&list, arena, player->balance_count, version);
    for (uint32_t i = 0; i < player->balance_count; i++)
        balance_list_add(&list, arena_text(arena, player->balances[i].currency),
                         player->balances[i].amount, player->balances[i].reserved);
    return list;
}

static err section_read(struct read_context *context, const struct player *player,
                        const struct section_info *info, Holdfast__V1__Section *section)
{
    struct row_key key;
    struct slice json;

    row_key_section(&key, player->entity, info->name);
    enum state_found found = state_find(context->state, row_key_slice(&key), &json);
    if (found == STATE_MISSING) {
        need_add_key(context->need, row_key_slice(&key));
        return ERR_NEED;
    }
    if (found != STATE_PRESENT)
        return read_damaged(context, SECTION_DAMAGE);
    section->name = arena_text(context->arena, info->name);
    section->schema_version = info->schema_version;
    section->version = info->version;
    section->last_write_at_ms = (int64_t)info->last_write_ms;
    section->json = arena_text(context->arena, json);
    return ERR_OK;
}

static err sections_read(struct read_context *context, struct player *player,
                         const struct include *include, Holdfast__V1__Profile *profile)
{
    err result = ERR_OK;

    profile->sections =
        arena_messages(context->arena, &holdfast__v1__section__descriptor, player->section_count);
    for (uint32_t i = 0; i < player->section_count; i++) {
        Holdfast__V1__Section *section = profile->sections[profile->n_sections];
        if (!include_has_section(include, player->sections[i].name))
            continue;
        err e = section_read(context, player, &player->sections[i], section);
        if (e != ERR_OK) {
            result = e;
            continue;
        }
        profile->n_sections++;
    }
    return result;
}

/* Its cursor is one of ListItems, as that of the mail is one of ListMail. */
static err items_read(struct read_context *context, const struct player *player,
                      Holdfast__V1__Profile *profile)
{
    const struct item_page page = { .size = ITEM_PAGE_DEFAULT };

    profile->items = (Holdfast__V1__ListItemsResponse *)arena_message(
        context->arena, &holdfast__v1__list_items_response__descriptor);
    err e = item_page_read(context, player, &page, profile->items);
    if (e == ERR_OK && profile->items->next_cursor[0] != 0) {
        Holdfast__V1__ListItemsRequest list = HOLDFAST__V1__LIST_ITEMS_REQUEST__INIT;
        list.player_id = profile->player_id;
        profile->items->next_cursor =
            page_cursor_print(&list.base, profile->items->next_cursor, context->arena);
    }
    return e;
}

static err mail_read(struct read_context *context, Holdfast__V1__Profile *profile)
{
    const struct mail_page page = { .size = MAIL_PAGE_DEFAULT, .bytes_max = MAIL_BYTES_MAX };

    profile->mail = (Holdfast__V1__ListMailResponse *)arena_message(
        context->arena, &holdfast__v1__list_mail_response__descriptor);
    err e = mail_page_read(context, &page, profile->mail);
    if (e == ERR_OK && profile->mail->next_cursor[0] != 0) {
        Holdfast__V1__ListMailRequest list = HOLDFAST__V1__LIST_MAIL_REQUEST__INIT;
        list.player_id = profile->player_id;
        profile->mail->next_cursor =
            page_cursor_print(&list.base, profile->mail->next_cursor, context->arena);
    }
    return e;
}

/* Of two results that which counts: a refusal before rows that are missing, since they would be
 * asked for in vain. */
static err worse(err a, err b)
{
    return a == ERR_OK || (a == ERR_NEED && b != ERR_OK) ? b : a;
}

err profile_read(struct read_context *context, struct player *player, const struct include *include,
                 Holdfast__V1__Profile **ret_profile)
{
    struct arena *arena = context->arena;
    Holdfast__V1__Profile *profile =
        (Holdfast__V1__Profile *)arena_message(arena, &holdfast__v1__profile__descriptor);

    if (player_sections(player, arena) != ERR_OK)
        return read_damaged(context, SECTIONS_DAMAGE);
    profile->player_id = arena_text(arena, player_id(player));
    profile->version = player->version;
    profile->created_at_ms = (int64_t)player->created_at_ms;
    profile->item_count = player->item_count;
    if (include->balances) {
        struct balance_list list = balances_read(arena, player, BALANCE_LIST_READ);
        BALANCE_LIST_TELL(&list, profile);
    }
    /* All of it, so that every missing row is noted at once. */
    err e = sections_read(context, player, include, profile);
    if (include->items)
        e = worse(e, items_read(context, player, profile));
    if (include->mail)
        e = worse(e, mail_read(context, profile));
    if (e == ERR_OK)
        *ret_profile = profile;
    return e;
}
