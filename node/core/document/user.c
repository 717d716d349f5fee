#include "node/core/document/user.h"

#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/codec/json_canon.h"
#include "node/core/codec/text_rule.h"
#include "runtime/base/check.h"

#define USER_NAME "user"
/* Between the two contexts: base64 has none, nor has their prefix. */
#define CONTEXT_JOINT "~"

static const struct document_rule user_rule = { .name = USER_NAME,
                                                .policy = MERGE_POLICY_MERGE,
                                                .durability = MERGE_ONE,
                                                .bytes_max = DOCUMENT_BYTES_DEFAULT };

/* ---- what a request names ---- */

static err refuse_context(struct document_context *context)
{
    return refuse_invalid(context->arena, context->refusal, "context",
                          "the context of an earlier answer about this user", "");
}

/* The two contexts that a user's is made of; empty: the caller has seen nothing. */
static err split_context(struct document_context *context, const char *text,
                         const char *ret_parts[2])
{
    const char *joint = strstr(text, CONTEXT_JOINT);

    ret_parts[0] = ret_parts[1] = "";
    if (text[0] == 0)
        return ERR_OK;
    if (joint == NULL)
        return refuse_context(context);
    ret_parts[0] = arena_printf(context->arena, "%.*s", (int)(joint - text), text);
    ret_parts[1] = joint + 1;
    return ERR_OK;
}

err user_find(struct document_context *context, const char *player_id, const char *text,
              struct user_place *ret_place)
{
    struct arena *arena = context->arena;
    const char *parts[2];
    struct user_place place = { .record = { .rule = &user_rule } };
    err e = split_context(context, text, parts);

    if (e == ERR_OK)
        e = document_open_context(context, parts[0], &place.record.token);
    if (e == ERR_OK)
        e = presence_find(context, player_id, parts[1], &place.presence);
    if (e != ERR_OK)
        return e;
    CHECK(merge_key_new(entity_of_player(arena, player_id),
                        document_row_name(arena, &user_rule, slice_from_text(USER_NAME)),
                        &place.record.key) == ERR_OK);
    *ret_place = place;
    return ERR_OK;
}

void user_place_deinit(struct user_place *place)
{
    merge_key_unref(place->record.key);
    merge_key_unref(place->presence.key);
}

/* ---- what is shown ---- */

/* Records come from disks and from other members: what has another type is not shown. */
static char *text_at(struct arena *arena, const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));

    return arena_printf(arena, "%s", text != NULL ? text : "");
}

static int64_t number_at(const json_t *json, const char *name)
{
    return json_integer_value(json_object_get(json, name));
}

static char *document_at(struct arena *arena, const json_t *json, const char *name)
{
    const json_t *document = json_object_get(json, name);
    struct buf bytes = { 0 };
    char *text = arena_printf(arena, "%s", "");

    if (json_is_object(document) && json_canon_write(document, &bytes) == ERR_OK)
        text = arena_text(arena, buf_slice(&bytes));
    buf_deinit(&bytes);
    return text;
}

static void show_record(struct document_context *context, const struct merge_record *record,
                        Holdfast__V1__User *user)
{
    json_t *json = value_json(record, context->now_ms);

    user->display_name = text_at(context->arena, json, USER_PATH_NAME);
    user->attributes = document_at(context->arena, json, USER_PATH_ATTRIBUTES);
    user->settings = document_at(context->arena, json, USER_PATH_SETTINGS);
    user->created_at_ms = number_at(json, USER_PATH_CREATED);
    user->last_seen_at_ms = number_at(json, USER_PATH_SEEN);
    json_decref(json);
}

Holdfast__V1__User *user_show(struct document_context *context, char *player_id,
                              const struct merge_record *record,
                              const struct merge_record *presence)
{
    Holdfast__V1__User *user = arena_alloc(context->arena, sizeof *user);
    struct presence_parts parts;

    holdfast__v1__user__init(user);
    presence_parts_of(context, presence, &parts);
    presence_show(context, &parts, &user->n_connections, &user->connections);
    if (record->count == 0 && user->n_connections == 0)
        return NULL;
    user->player_id = player_id;
    show_record(context, record, user);
    return user;
}

char *user_context(struct document_context *context, const struct user_place *place,
                   const struct merge_record *record, const struct merge_record *presence)
{
    const struct document_place *first = &place->record, *second = &place->presence;

    return arena_printf(context->arena, "%s" CONTEXT_JOINT "%s",
                        document_context_of(context, first->key, record, first->token),
                        document_context_of(context, second->key, presence, second->token));
}
