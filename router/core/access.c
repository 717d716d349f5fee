#include "router/core/access.h"

#include <string.h>

#include "idl/error_code.h"
#include "router/core/refusal.h"
#include "runtime/cluster/authority_text.h"

#define DEPTH_MAX 8u /* No message of the API nests deeper. */

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

static err check_authority(const struct walk *walk, const char *name, const char *text)
{
    const uint32_t unheld = SCOPE_GAME | SCOPE_ADMIN;
    struct slice authority = slice_from_text(text);
    struct slice rest;
    err e = ERR_OK;

    switch (authority_text_read(authority, &rest)) {
    case AUTHORITY_TEXT_SYSTEM:
        e = check_system(walk, authority, rest);
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
    if (e == ERR_PERMISSION)
        walk->detail->field = arena_printf(walk->arena, "%s", name);
    return e;
}

/* `authority`, or another participant's: `other_authority`. */
static bool is_authority(const ProtobufCFieldDescriptor *field)
{
    const char *at = strstr(field->name, "authority");

    return field->type == PROTOBUF_C_TYPE_STRING && field->label != PROTOBUF_C_LABEL_REPEATED &&
           at != NULL && strcmp(at, "authority") == 0 && (at == field->name || at[-1] == '_');
}

static err check_messages(const struct walk *walk, const ProtobufCMessage *message, uint32_t depth);

/* Where a field's messages begin, and how many there are. A member of a oneof that is not the one
 * set shares its memory with the one that is. */
static const ProtobufCMessage *const *messages_of(const ProtobufCMessage *message,
                                                  const ProtobufCFieldDescriptor *field,
                                                  size_t *ret_count)
{
    const char *base = (const char *)message;
    uint32_t kind;

    *ret_count = 1;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        const ProtobufCMessage *const *list;

        memcpy(ret_count, base + field->quantifier_offset, sizeof *ret_count);
        memcpy(&list, base + field->offset, sizeof list);
        return list;
    }
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
        memcpy(&kind, base + field->quantifier_offset, sizeof kind);
        if (kind != field->id)
            *ret_count = 0;
    }
    return (const ProtobufCMessage *const *)(const void *)(base + field->offset);
}

static err check_messages(const struct walk *walk, const ProtobufCMessage *message, uint32_t depth)
{
    const ProtobufCMessageDescriptor *descriptor = message->descriptor;

    if (depth > DEPTH_MAX) {
        refusal_make(walk->arena, walk->detail, CODE(INVALID_ARGUMENT),
                     "messages are nested deeper than %u", DEPTH_MAX);
        return ERR_INVALID;
    }
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        size_t count;

        if (is_authority(field)) {
            const char *text;
            memcpy(&text, (const char *)message + field->offset, sizeof text);
            err e = check_authority(walk, field->name, text);
            if (e != ERR_OK)
                return e;
        }
        if (field->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        const ProtobufCMessage *const *messages = messages_of(message, field, &count);
        for (size_t n = 0; n < count; n++) {
            err e = messages[n] != NULL ? check_messages(walk, messages[n], depth + 1) : ERR_OK;
            if (e != ERR_OK)
                return e;
        }
    }
    return ERR_OK;
}

err access_check_message(const ProtobufCMessage *message, uint32_t scopes, struct arena *arena,
                         Holdfast__V1__ErrorDetail *ret_detail)
{
    const struct walk walk = { .scopes = scopes, .arena = arena, .detail = ret_detail };

    return scopes == SCOPES_ALL ? ERR_OK : check_messages(&walk, message, 0);
}
