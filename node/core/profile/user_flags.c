#include "node/core/profile/user_flags.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/codec/json_canon.h"
#include "node/core/codec/text_rule.h"
#include "node/core/handler/refusal.h"
#include "node/core/profile/profile.h"
#include "node/core/profile/section_edit.h"
#include "node/core/rows/rows.h"
#include "runtime/base/check.h"

#define FLAGS_DAMAGE "the roles and flags of the player cannot be read"

typedef Holdfast__V1__SetUserFlagsRequest set_request;

/* ---- before the log ---- */

static err name_check(struct check_context *context, const char *field, const char *name)
{
    struct slice text = slice_from_text(name);

    if (text_is_name(text, USER_FLAG_NAME_BYTES_MAX))
        return ERR_OK;
    return refuse_invalid(context->arena, context->refusal, field, "1 to 64 of [a-z0-9_]",
                          text_shorten(context->arena, text));
}

struct names {
    size_t count;
    char *const *texts;
};

static bool has_name(struct names names, const char *name)
{
    for (size_t i = 0; i < names.count; i++) {
        if (strcmp(names.texts[i], name) == 0)
            return true;
    }
    return false;
}

static err count_check(struct check_context *context, const char *list, size_t count, uint32_t max)
{
    if (count <= max)
        return ERR_OK;
    return refuse_number(context->arena, context->refusal, list,
                         arena_printf(context->arena, "at most %" PRIu32, max), (int64_t)count);
}

/* Each once, and none of `taken`. */
static err names_check(struct check_context *context, const char *list, struct names names,
                       struct names taken)
{
    for (size_t i = 0; i < names.count; i++) {
        const char *field = arena_printf(context->arena, "%s[%zu]", list, i);
        const struct names before = { i, names.texts };
        err e = name_check(context, field, names.texts[i]);

        if (e != ERR_OK)
            return e;
        if (has_name(before, names.texts[i]) || has_name(taken, names.texts[i]))
            return refuse_invalid(context->arena, context->refusal, field, "each name once",
                                  names.texts[i]);
    }
    return ERR_OK;
}

static err flags_check(struct check_context *context, const set_request *request)
{
    char **names = arena_alloc(context->arena, (request->n_set_flags + 1) * sizeof *names);

    for (size_t i = 0; i < request->n_set_flags; i++) {
        const Holdfast__V1__UserFlagWish *wish = request->set_flags[i];
        const char *field = arena_printf(context->arena, "set_flags[%zu]", i);
        err e = name_check(context, arena_printf(context->arena, "%s.name", field), wish->name);

        if (e != ERR_OK)
            return e;
        if (has_name((struct names){ i, names }, wish->name))
            return refuse_invalid(context->arena, context->refusal,
                                  arena_printf(context->arena, "%s.name", field), "each name once",
                                  wish->name);
        if (wish->until_ms < 0)
            return refuse_number(context->arena, context->refusal,
                                 arena_printf(context->arena, "%s.until_ms", field),
                                 "milliseconds since 1970, or 0", wish->until_ms);
        names[i] = wish->name;
    }
    return names_check(context, "clear_flags",
                       (struct names){ request->n_clear_flags, request->clear_flags },
                       (struct names){ request->n_set_flags, names });
}

static err version_known(struct check_context *context)
{
    if (context->meta->apply_version >= USER_FLAGS_APPLY_VERSION)
        return ERR_OK;
    (void)refuse(context->arena, context->refusal, CODE(UNAVAILABLE), "",
                 "shard %" PRIu32 " applies version %" PRIu32 "; roles and flags begin with %u, "
                 "once all its replicas are updated",
                 context->shard, context->meta->apply_version, USER_FLAGS_APPLY_VERSION);
    return ERR_INVALID;
}

err user_flags_check(struct check_context *context, const set_request *request)
{
    if (request->n_add_roles + request->n_remove_roles + request->n_set_flags +
            request->n_clear_flags ==
        0)
        return refuse_invalid(context->arena, context->refusal, "add_roles",
                              "at least one role or flag", "");
    const struct names adds = { request->n_add_roles, request->add_roles };
    const struct names removes = { request->n_remove_roles, request->remove_roles };
    err e = count_check(context, "add_roles", adds.count, LIMIT_USER_ROLES);
    if (e == ERR_OK)
        e = count_check(context, "remove_roles", removes.count, LIMIT_USER_ROLES);
    if (e == ERR_OK)
        e = count_check(context, "set_flags", request->n_set_flags, LIMIT_USER_FLAGS);
    if (e == ERR_OK)
        e = count_check(context, "clear_flags", request->n_clear_flags, LIMIT_USER_FLAGS);
    if (e == ERR_OK)
        e = names_check(context, "add_roles", adds, (struct names){ 0, NULL });
    if (e == ERR_OK)
        e = names_check(context, "remove_roles", removes, adds);
    if (e == ERR_OK)
        e = flags_check(context, request);
    return e == ERR_OK ? version_known(context) : e;
}

void user_flags_footprint(const struct op *op, struct need *keys)
{
    struct row_key key;

    row_key_section(&key, op->entity, SLICE_LITERAL(USER_FLAGS_SECTION));
    need_add_key(keys, row_key_slice(&key));
}

/* ---- the document ---- */

static bool is_entry(json_t *entry)
{
    json_t *until = json_object_get(entry, "untilMs");

    return json_is_string(json_object_get(entry, "by")) &&
           json_is_integer(json_object_get(entry, "atMs")) &&
           (until == NULL || json_is_integer(until));
}

static bool are_entries(json_t *entries)
{
    const char *name;
    json_t *entry;
    bool well = json_is_object(entries);

    json_object_foreach(entries, name, entry)
    {
        well &= is_entry(entry);
    }
    return well;
}

/* NULL: SetUserFlags wrote no such text. */
static json_t *parse(struct slice text)
{
    const char *why;
    json_t *document = json_canon_parse(text, &why);

    if (document != NULL && are_entries(json_object_get(document, "roles")) &&
        are_entries(json_object_get(document, "flags")))
        return document;
    json_decref(document);
    return NULL;
}

/* A player without the section has none. ERR_NEED; ERR_CORRUPT. */
static err load(struct state *state, struct need *need, struct player *player, json_t **ret)
{
    struct slice text, name = SLICE_LITERAL(USER_FLAGS_SECTION);
    struct row_key key;

    *ret = NULL;
    if (player_find_section(player, name) == NULL) {
        *ret = json_pack("{s:{},s:{}}", "roles", "flags");
        return ERR_OK;
    }
    row_key_section(&key, player->entity, name);
    switch (state_find(state, row_key_slice(&key), &text)) {
    case STATE_MISSING:
        need_add_key(need, row_key_slice(&key));
        return ERR_NEED;
    case STATE_ABSENT: /* The index names it. */
        break;
    case STATE_PRESENT:
        *ret = parse(text);
        break;
    }
    return *ret != NULL ? ERR_OK : ERR_CORRUPT;
}

static bool is_over(json_t *flag, uint64_t now_ms)
{
    json_int_t until_ms = json_integer_value(json_object_get(flag, "untilMs"));

    return until_ms > 0 && (uint64_t)until_ms <= now_ms;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* In order, without those that are over. In the arena. */
static size_t names_of(struct arena *arena, json_t *entries, uint64_t now_ms, char ***ret_names)
{
    const char *name;
    json_t *entry;
    size_t count = 0;

    *ret_names = arena_alloc(arena, (json_object_size(entries) + 1) * sizeof **ret_names);
    json_object_foreach(entries, name, entry)
    {
        if (!is_over(entry, now_ms))
            (*ret_names)[count++] = arena_printf(arena, "%s", name);
    }
    qsort(*ret_names, count, sizeof **ret_names, compare_names);
    return count;
}

static char *by_of(struct arena *arena, json_t *entry)
{
    return arena_printf(arena, "%s", json_string_value(json_object_get(entry, "by")));
}

static int64_t integer_of(json_t *entry, const char *name)
{
    return (int64_t)json_integer_value(json_object_get(entry, name));
}

static Holdfast__V1__UserRole **tell_roles(struct arena *arena, json_t *entries, uint64_t now_ms,
                                           size_t *ret_count)
{
    char **names;

    *ret_count = names_of(arena, entries, now_ms, &names);
    Holdfast__V1__UserRole **roles =
        arena_messages(arena, &holdfast__v1__user_role__descriptor, *ret_count);

    for (size_t i = 0; i < *ret_count; i++) {
        json_t *entry = json_object_get(entries, names[i]);

        roles[i]->name = names[i];
        roles[i]->by = by_of(arena, entry);
        roles[i]->at_ms = integer_of(entry, "atMs");
    }
    return roles;
}

static Holdfast__V1__UserFlag **tell_flags(struct arena *arena, json_t *entries, uint64_t now_ms,
                                           size_t *ret_count)
{
    char **names;

    *ret_count = names_of(arena, entries, now_ms, &names);
    Holdfast__V1__UserFlag **flags =
        arena_messages(arena, &holdfast__v1__user_flag__descriptor, *ret_count);

    for (size_t i = 0; i < *ret_count; i++) {
        json_t *entry = json_object_get(entries, names[i]);

        flags[i]->name = names[i];
        flags[i]->until_ms = integer_of(entry, "untilMs");
        flags[i]->by = by_of(arena, entry);
        flags[i]->at_ms = integer_of(entry, "atMs");
    }
    return flags;
}

/* ---- at apply ---- */

static json_t *entry_of(const struct apply_context *context)
{
    struct slice by = context->authority_text;
    json_t *text = json_stringn((const char *)by.data, by.size), *entry = json_object();

    json_object_set_new(entry, "by", text != NULL ? text : json_string(""));
    json_object_set_new(entry, "atMs", json_integer((json_int_t)context->owner_ms));
    return entry;
}

static void forget_over(struct arena *arena, json_t *flags, uint64_t now_ms)
{
    char **names;
    size_t count = names_of(arena, flags, 0, &names);

    for (size_t i = 0; i < count; i++) {
        if (is_over(json_object_get(flags, names[i]), now_ms))
            json_object_del(flags, names[i]);
    }
}

static void change(const struct apply_context *context, const set_request *request, json_t *roles,
                   json_t *flags)
{
    for (size_t i = 0; i < request->n_remove_roles; i++)
        json_object_del(roles, request->remove_roles[i]);
    for (size_t i = 0; i < request->n_add_roles; i++)
        json_object_set_new(roles, request->add_roles[i], entry_of(context));
    for (size_t i = 0; i < request->n_clear_flags; i++)
        json_object_del(flags, request->clear_flags[i]);
    for (size_t i = 0; i < request->n_set_flags; i++) {
        json_t *entry = entry_of(context);

        if (request->set_flags[i]->until_ms > 0)
            json_object_set_new(entry, "untilMs", json_integer(request->set_flags[i]->until_ms));
        json_object_set_new(flags, request->set_flags[i]->name, entry);
    }
    forget_over(context->arena, flags, context->owner_ms);
}

static err room_check(struct apply_context *context, const char *field, size_t count, uint32_t max)
{
    if (count <= max)
        return ERR_OK;
    (void)refuse(context->arena, context->refusal, CODE(CAPACITY_FULL), field,
                 "at most %" PRIu32 ", would be %zu", max, count);
    context->refusal->limit = arena_printf(context->arena, "%" PRIu32, max);
    context->refusal->value = arena_printf(context->arena, "%zu", count);
    refusal_tell_capacity(context, strcmp(field, "add_roles") == 0 ? "user_roles" : "user_flags",
                          max);
    return ERR_CONFLICT;
}

/* Beside what a caller edits, and by the same rules: versions, and room for sections. */
static err store(struct apply_context *context, json_t *document)
{
    static char name[] = USER_FLAGS_SECTION;
    Holdfast__V1__SectionEdit edit = HOLDFAST__V1__SECTION_EDIT__INIT, *edits[] = { &edit };
    Holdfast__V1__SectionVersion **versions;
    struct buf text = { 0 };

    err e = json_canon_write(document, &text);
    CHECK(e == ERR_OK); /* What was read was within the limit. */
    edit.name = name;
    edit.edit_case = HOLDFAST__V1__SECTION_EDIT__EDIT_REPLACE;
    edit.replace = arena_text(context->arena, buf_slice(&text));
    buf_deinit(&text);
    e = section_edits_apply(context, 1, edits, &versions);
    if (e == ERR_CONFLICT)
        refusal_tell_own(context, "add_roles");
    return e;
}

static err change_document(struct apply_context *context, const set_request *request,
                           json_t *document, Holdfast__V1__SetUserFlagsResponse *response)
{
    json_t *roles = json_object_get(document, "roles"), *flags = json_object_get(document, "flags");

    change(context, request, roles, flags);
    err e = room_check(context, "add_roles", json_object_size(roles), LIMIT_USER_ROLES);
    if (e == ERR_OK)
        e = room_check(context, "set_flags", json_object_size(flags), LIMIT_USER_FLAGS);
    if (e == ERR_OK)
        e = store(context, document);
    if (e != ERR_OK)
        return e;
    response->roles = tell_roles(context->arena, roles, context->owner_ms, &response->n_roles);
    response->flags = tell_flags(context->arena, flags, context->owner_ms, &response->n_flags);
    return ERR_OK;
}

err user_flags_change(struct apply_context *context, const set_request *request,
                      Holdfast__V1__SetUserFlagsResponse *response)
{
    json_t *document;

    if (player_sections(context->player, context->arena) != ERR_OK)
        return apply_damaged(context, context->player->entity, SECTIONS_DAMAGE);
    err e = load(context->state, context->need, context->player, &document);
    if (e == ERR_CORRUPT)
        return apply_damaged(context, context->player->entity, FLAGS_DAMAGE);
    if (e != ERR_OK)
        return e;
    e = change_document(context, request, document, response);
    json_decref(document);
    return e;
}

/* ---- a read ---- */

err user_flags_read(struct read_context *context, struct player *player,
                    Holdfast__V1__GetUserFlagsResponse *response)
{
    json_t *document;

    if (player_sections(player, context->arena) != ERR_OK)
        return read_damaged(context, SECTIONS_DAMAGE);
    err e = load(context->state, context->need, player, &document);
    if (e == ERR_CORRUPT)
        return read_damaged(context, FLAGS_DAMAGE);
    if (e != ERR_OK)
        return e;
    response->roles = tell_roles(context->arena, json_object_get(document, "roles"),
                                 context->now_unix_ms, &response->n_roles);
    response->flags = tell_flags(context->arena, json_object_get(document, "flags"),
                                 context->now_unix_ms, &response->n_flags);
    json_decref(document);
    return ERR_OK;
}
