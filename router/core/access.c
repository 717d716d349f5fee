#include "router/core/access.h"

#include <string.h>

#include "holdfast/v1/ledger.pb-c.h"
#include "idl/error_code.h"
#include "router/core/authority_walk.h"
#include "router/core/refusal.h"
#include "runtime/base/check.h"
#include "runtime/cluster/authority_text.h"

/* A walk through one message. */
struct walk {
    uint32_t scopes; /* Of the caller's key. */
    struct arena *arena;
    Holdfast__V1__ErrorDetail *detail;
};

/* "LedgerService/Grant wants an API key with the scope game or payments; this one has read" */
static err deny(const struct walk *walk, const char *what, uint32_t wanted)
{
    bool one = (wanted & (wanted - 1)) == 0;
    char wanted_text[SCOPES_TEXT_SIZE];
    char text[SCOPES_TEXT_SIZE];

    scopes_print(wanted, wanted_text);
    scopes_print(walk->scopes, text);
    refusal_make(walk->arena, walk->detail, CODE(PERMISSION_DENIED),
                 "%s wants an API key with %s %s; this one has: %s", what,
                 one ? "the scope" : "one of the scopes", wanted_text, text);
    walk->detail->limit =
        arena_printf(walk->arena, "%s %s", one ? "scope" : "one of the scopes", wanted_text);
    walk->detail->value = arena_printf(walk->arena, "%s", text);
    return ERR_PERMISSION;
}

err access_check_method(const struct method_info *method, uint32_t scopes, struct arena *arena,
                        Holdfast__V1__ErrorDetail *ret_detail)
{
    const struct walk walk = { .scopes = scopes, .arena = arena, .detail = ret_detail };

    return (method->scopes & scopes) != 0 ? ERR_OK : deny(&walk, method->name, method->scopes);
}

static err check_system(const struct walk *walk, struct slice authority, struct slice scope)
{
    uint32_t wanted = scope_find(scope) & SCOPES_SYSTEM;
    struct refusal_field field = { "authority", AUTHORITY_SCOPE_LIMIT, authority };

    if (scope.size > 0 && memchr(scope.data, '/', scope.size) != NULL) {
        refusal_make_field(walk->arena, walk->detail, &field,
                           "a request does not say whose key it is: the ledger does");
        return ERR_INVALID;
    }
    if (wanted == 0) { /* No key can have it. */
        refusal_make_field(walk->arena, walk->detail, &field, "there is no such scope");
        return ERR_INVALID;
    }
    if ((wanted & walk->scopes) != 0)
        return ERR_OK;
    return deny(walk,
                arena_printf(walk->arena, "the authority \"%.*s\"", (int)authority.size,
                             (const char *)authority.data),
                wanted);
}

/* What a reservation holds may be sent to anyone: that is for those who settle auctions and trades,
 * not for each system that may give something. */
static err check_post(const struct walk *walk, const struct authority_place *place,
                      struct slice scope)
{
    const ProtobufCMessageDescriptor *type = place->within->message->descriptor;

    if (type != &holdfast__v1__post_reservation_request__descriptor ||
        (scope_find(scope) & (SCOPE_MATCH | SCOPE_ADMIN)) != 0)
        return ERR_OK;
    refusal_make_field(walk->arena, walk->detail,
                       &(struct refusal_field){ "authority", "system:match or system:admin",
                                                slice_from_text(*place->text) },
                       "this system posts no reservation");
    walk->detail->code = CODE(PERMISSION_DENIED);
    return ERR_PERMISSION;
}

static err visit(void *user, const struct authority_place *place)
{
    const struct walk *walk = user;
    const uint32_t unheld = SCOPE_GAME | SCOPE_ADMIN;
    struct slice authority = slice_from_text(*place->text);
    struct slice rest;
    err e = ERR_OK;

    switch (authority_text_read(authority, &rest)) {
    case AUTHORITY_TEXT_SYSTEM:
        e = check_system(walk, authority, rest);
        if (e == ERR_OK)
            e = check_post(walk, place, rest);
        break;
    case AUTHORITY_TEXT_SESSION:
        if ((walk->scopes & SCOPE_GAME) == 0)
            e = deny(walk, "the authority of a session", SCOPE_GAME);
        break;
    case AUTHORITY_TEXT_UNHELD:
        if ((walk->scopes & unheld) == 0)
            e = deny(walk, "the authority \"unheld\"", unheld);
        break;
    case AUTHORITY_TEXT_NONE: /* None is named, or none that there is: the node says so. */
        break;
    }
    if (e != ERR_OK)
        walk->detail->field = arena_printf(walk->arena, "%s%s",
                                           message_path(place->within, walk->arena), place->name);
    return e;
}

err access_check_message(const ProtobufCMessage *message, uint32_t scopes, struct arena *arena,
                         Holdfast__V1__ErrorDetail *ret_detail)
{
    struct walk walk = { .scopes = scopes, .arena = arena, .detail = ret_detail };
    const struct authority_visitor visitor = { visit, &walk, arena, ret_detail };

    return scopes == SCOPES_ALL ? ERR_OK : authority_walk(&visitor, message);
}

/* ---- players' tokens ---- */

static err deny_player(struct arena *arena, Holdfast__V1__ErrorDetail *ret_detail,
                       const struct refusal_field *field, const char *message)
{
    refusal_make_field(arena, ret_detail, field, message);
    ret_detail->code = CODE(PERMISSION_DENIED);
    return ERR_PERMISSION;
}

err access_check_player_method(const struct method_info *method, struct arena *arena,
                               Holdfast__V1__ErrorDetail *ret_detail)
{
    const struct refusal_field field = { "authorization", "an API key",
                                         SLICE_LITERAL("a player's token") };

    if (method_player_field(method) != NULL || method_is_public(method))
        return ERR_OK;
    return deny_player(arena, ret_detail, &field,
                       arena_printf(arena, "%s takes no player's token", method->name));
}

err access_check_player(const struct method_info *method, struct access_player *player,
                        ProtobufCMessage *message, struct arena *arena,
                        Holdfast__V1__ErrorDetail *ret_detail)
{
    const char *name = method_player_field(method);
    const ProtobufCFieldDescriptor *descriptor;
    char **text;

    player->filled = false;
    err e = access_check_player_method(method, arena, ret_detail);
    if (e != ERR_OK || name == NULL)
        return e;
    descriptor = protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);
    CHECK(descriptor != NULL && descriptor->type == PROTOBUF_C_TYPE_STRING &&
          descriptor->label != PROTOBUF_C_LABEL_REPEATED && player->id[0] != 0);
    text = (char **)(void *)((char *)message + descriptor->offset);
    if (*text == NULL || **text == 0) {
        *text = text_lend(player->id);
        player->filled = true;
        return ERR_OK;
    }
    if (strcmp(*text, player->id) == 0)
        return ERR_OK;
    const struct refusal_field field = { name, "the token's own player, or none",
                                         slice_from_text(*text) };
    return deny_player(arena, ret_detail, &field, "a player's token opens its own player alone");
}

err access_check_player_op(const ProtobufCMessage *message, struct arena *arena,
                           Holdfast__V1__ErrorDetail *ret_detail)
{
    const ProtobufCFieldDescriptor *descriptor =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, "op_id");

    if (descriptor == NULL || descriptor->type != PROTOBUF_C_TYPE_STRING)
        return ERR_OK;
    const char *text = *(char *const *)(const void *)((const char *)message + descriptor->offset);
    if (text == NULL || strchr(text, ':') == NULL || strncmp(text, "key:", 4) == 0)
        return ERR_OK;
    const struct refusal_field field = { "op_id", "a UUIDv7, or key:<anything>",
                                         slice_from_text(text) };
    return deny_player(arena, ret_detail, &field, "such a key is not for a player's token");
}
