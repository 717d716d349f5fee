#include "router/core/authority_walk.h"

#include <stdio.h>
#include <string.h>

#include "idl/error_code.h"
#include "router/core/refusal.h"
#include "runtime/base/check.h"

#define DEPTH_MAX  8u /* No message of the API nests deeper. */
#define NAME_BYTES 64u

bool authority_is_field(const ProtobufCFieldDescriptor *field)
{
    const char *at = strstr(field->name, "authority");

    return field->type == PROTOBUF_C_TYPE_STRING && field->label != PROTOBUF_C_LABEL_REPEATED &&
           at != NULL && strcmp(at, "authority") == 0 && (at == field->name || at[-1] == '_');
}

const ProtobufCFieldDescriptor *authority_player_field(const ProtobufCMessageDescriptor *descriptor,
                                                       const ProtobufCFieldDescriptor *field)
{
    size_t prefix = strlen(field->name) - strlen("authority");
    char name[NAME_BYTES];

    int size = snprintf(name, sizeof name, "%.*splayer_id", (int)prefix, field->name);
    CHECK(size > 0 && (size_t)size < sizeof name);
    const ProtobufCFieldDescriptor *player =
        protobuf_c_message_descriptor_get_field_by_name(descriptor, name);
    if (player == NULL || player->type != PROTOBUF_C_TYPE_STRING ||
        player->label == PROTOBUF_C_LABEL_REPEATED)
        return NULL;
    return player;
}

static err visit_field(const struct authority_visitor *visitor, const struct message_place *within,
                       const ProtobufCFieldDescriptor *field)
{
    const ProtobufCMessage *message = within->message;
    const ProtobufCFieldDescriptor *player = authority_player_field(message->descriptor, field);
    char *base = (char *)(uintptr_t)message;
    struct authority_place place = {
        .name = field->name,
        .within = within,
        .text = (char **)(void *)(base + field->offset),
        .player = "",
        .has_player = player != NULL,
    };

    if (player != NULL) {
        const char *id = *(char **)(void *)(base + player->offset);
        place.player = id != NULL ? id : "";
    }
    return visitor->visit(visitor->user, &place);
}

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

const char *message_path(const struct message_place *place, struct arena *arena)
{
    const char *path = "";

    for (; place->outer != NULL; place = place->outer) { /* At most DEPTH_MAX. */
        if (place->field->label == PROTOBUF_C_LABEL_REPEATED)
            path = arena_printf(arena, "%s[%zu].%s", place->field->name, place->at, path);
        else
            path = arena_printf(arena, "%s.%s", place->field->name, path);
    }
    return path;
}

static err walk_message(const struct message_visitor *visitor, const struct message_place *place,
                        uint32_t depth)
{
    const ProtobufCMessageDescriptor *descriptor = place->message->descriptor;
    err e;

    if (depth > DEPTH_MAX) {
        refusal_make(visitor->arena, visitor->detail, CODE(INVALID_ARGUMENT),
                     "messages are nested deeper than %u", DEPTH_MAX);
        return ERR_INVALID;
    }
    e = visitor->visit(visitor->user, place);
    for (unsigned i = 0; e == ERR_OK && i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        size_t count;

        if (field->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        const ProtobufCMessage *const *messages = messages_of(place->message, field, &count);
        for (size_t n = 0; e == ERR_OK && n < count; n++) {
            const struct message_place inner = { messages[n], place, field, n };
            e = messages[n] != NULL ? walk_message(visitor, &inner, depth + 1) : ERR_OK;
        }
    }
    return e;
}

err message_walk(const struct message_visitor *visitor, const ProtobufCMessage *message)
{
    return walk_message(visitor, &(struct message_place){ .message = message }, 0);
}

/* The authorities of one message. */
static err visit_message(void *user, const struct message_place *place)
{
    const ProtobufCMessageDescriptor *descriptor = place->message->descriptor;
    err e = ERR_OK;

    for (unsigned i = 0; e == ERR_OK && i < descriptor->n_fields; i++) {
        if (authority_is_field(&descriptor->fields[i]))
            e = visit_field(user, place, &descriptor->fields[i]);
    }
    return e;
}

err authority_walk(const struct authority_visitor *visitor, const ProtobufCMessage *message)
{
    struct authority_visitor copy = *visitor;

    return message_walk(
        &(struct message_visitor){ visit_message, &copy, visitor->arena, visitor->detail },
        message);
}
