#include "node/core/profile/profile.h"

#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/handler/refusal.h"
#include "node/core/rows/rows.h"

Holdfast__V1__Dot *dot_message(struct arena *arena, struct dot dot)
{
    Holdfast__V1__Dot *message =
        (Holdfast__V1__Dot *)arena_message(arena, &holdfast__v1__dot__descriptor);

    message->epoch = dot.epoch;
    message->owner = dot.owner;
    message->counter = dot.counter;
    return message;
}

Holdfast__V1__Balance **balances_read(struct arena *arena, const struct player *player)
{
    Holdfast__V1__Balance **balances =
        arena_messages(arena, &holdfast__v1__balance__descriptor, player->balance_count);

    for (uint32_t i = 0; i < player->balance_count; i++) {
        balances[i]->currency = arena_text(arena, player->balances[i].currency);
        balances[i]->amount = player->balances[i].amount;
        balances[i]->reserved = player->balances[i].reserved;
    }
    return balances;
}

static bool is_wanted(struct slice name, size_t name_count, char *const *names)
{
    for (size_t i = 0; i < name_count; i++) {
        if (slice_equal(name, slice_from_text(names[i])))
            return true;
    }
    return name_count == 0;
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

err profile_read(struct read_context *context, struct player *player, size_t name_count,
                 char *const *names, Holdfast__V1__Profile **ret_profile)
{
    struct arena *arena = context->arena;
    Holdfast__V1__Profile *profile =
        (Holdfast__V1__Profile *)arena_message(arena, &holdfast__v1__profile__descriptor);
    err result = ERR_OK;

    if (player_sections(player, arena) != ERR_OK)
        return read_damaged(context, SECTIONS_DAMAGE);
    profile->player_id = arena_text(arena, player_id(player));
    profile->version = player->version;
    profile->created_at_ms = (int64_t)player->created_at_ms;
    profile->item_count = player->item_count;
    profile->n_balances = player->balance_count;
    profile->balances = balances_read(arena, player);
    profile->sections =
        arena_messages(arena, &holdfast__v1__section__descriptor, player->section_count);
    for (uint32_t i = 0; i < player->section_count; i++) {
        if (!is_wanted(player->sections[i].name, name_count, names))
            continue;
        err e = section_read(context, player, &player->sections[i],
                             profile->sections[profile->n_sections]);
        if (e != ERR_OK)
            result = e;
        else
            profile->n_sections++;
    }
    if (result == ERR_OK)
        *ret_profile = profile;
    return result;
}

err section_names_check(struct arena *arena, struct refusal *refusal, size_t count,
                        char *const *names)
{
    if (count > SECTIONS_MAX)
        return refuse_number(arena, refusal, "sections", "at most 64 names", (int64_t)count);
    for (size_t i = 0; i < count; i++) {
        struct slice name = slice_from_text(names[i]);
        if (!text_is_name(name, SECTION_NAME_BYTES_MAX))
            return refuse_invalid(arena, refusal, arena_printf(arena, "sections[%zu]", i),
                                  "1 to 64 of [a-z0-9_]", text_shorten(arena, name));
    }
    return ERR_OK;
}
