#include "router/core/route.h"

#include <string.h>

#include "router/core/name_form.h"
#include "router/core/refusal.h"
#include "runtime/base/check.h"

#define PLAYER_PREFIX "player:"

/* The text of field `number` if the message has such a string field under that name. */
static bool find_text(const ProtobufCMessage *message, unsigned number, const char *name,
                      struct slice *ret_text)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    const ProtobufCFieldDescriptor *field;
    char *text;

    /* Fields lie in the order of their numbers, and an envelope's numbers begin at 1. */
    if (number > type->n_fields)
        return false;
    field = &type->fields[number - 1];
    if (field->id != number || field->type != PROTOBUF_C_TYPE_STRING ||
        field->label == PROTOBUF_C_LABEL_REPEATED || strcmp(field->name, name) != 0)
        return false;
    memcpy(&text, (const char *)message + field->offset, sizeof text);
    *ret_text = slice_from_text(text != NULL ? text : "");
    return true;
}

static bool has_control(struct slice text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < 0x20 || text.data[i] == 0x7f)
            return true;
    }
    return false;
}

static err check_text(struct slice text, size_t bytes_max, struct arena *arena,
                      const struct refusal_field *field, Holdfast__V1__ErrorDetail *ret_detail)
{
    if (text.size == 0) {
        refusal_make_field(arena, ret_detail, field, "a required field is empty");
        return ERR_INVALID;
    }
    if (text.size > bytes_max) {
        refusal_make_field(arena, ret_detail, field, "a field is too long");
        return ERR_INVALID;
    }
    if (has_control(text)) {
        refusal_make_field(arena, ret_detail, field, "a field holds control characters");
        return ERR_INVALID;
    }
    return ERR_OK;
}

struct route_entity route_entity_of_player(struct slice player_id)
{
    struct route_entity entity;
    size_t prefix = sizeof PLAYER_PREFIX - 1;

    CHECK(player_id.size <= ROUTE_PLAYER_BYTES_MAX);
    memcpy(entity.text, PLAYER_PREFIX, prefix);
    memcpy(entity.text + prefix, player_id.data, player_id.size);
    entity.size = prefix + player_id.size;
    entity.text[entity.size] = 0;
    return entity;
}

static err find_home(const ProtobufCMessage *message, struct arena *arena,
                     struct route_entity *ret_entity, Holdfast__V1__ErrorDetail *ret_detail)
{
    struct slice text;

    if (find_text(message, 1, "player_id", &text)) {
        err e =
            check_text(text, ROUTE_PLAYER_BYTES_MAX, arena,
                       &(struct refusal_field){ "player_id", "1 to 100 bytes", text }, ret_detail);
        if (e == ERR_OK)
            *ret_entity = route_entity_of_player(text);
        return e;
    }
    if (find_text(message, 1, "entity", &text)) {
        err e = check_text(text, ROUTE_ENTITY_BYTES_MAX, arena,
                           &(struct refusal_field){ "entity", "1 to 128 bytes", text }, ret_detail);
        if (e != ERR_OK)
            return e;
        memcpy(ret_entity->text, text.data, text.size);
        ret_entity->size = text.size;
        ret_entity->text[text.size] = 0;
        return ERR_OK;
    }
    refusal_make(arena, ret_detail, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_INTERNAL,
                 "%s has no entity in field 1", message->descriptor->name);
    return ERR_INVALID;
}

/* Names of users are written by claims and releases alone, whose home is a player; a person may
 * mend them. */
static err check_writable(const ProtobufCMessage *message, struct arena *arena,
                          Holdfast__V1__ErrorDetail *ret_detail)
{
    const size_t prefix = sizeof PLAYER_PREFIX - 1;
    const char *field = "player_id";
    struct slice text;

    if (!find_text(message, 1, field, &text)) {
        field = "entity";
        if (!find_text(message, 1, field, &text) || text.size < prefix ||
            memcmp(text.data, PLAYER_PREFIX, prefix) != 0)
            return ERR_OK;
        text = (struct slice){ text.data + prefix, text.size - prefix };
    }
    if (!name_form_is_name(text))
        return ERR_OK;
    name_form_refuse_id(arena, field, text, ret_detail);
    return ERR_INVALID;
}

err route_find_entity(const struct method_info *method, const ProtobufCMessage *message,
                      struct arena *arena, struct route_entity *ret_entity,
                      Holdfast__V1__ErrorDetail *ret_detail)
{
    struct slice op_id;
    err e;

    CHECK(method->route == METHOD_MUTATION || method->route == METHOD_READ ||
          method->route == METHOD_MEMBER_READ || method->route == METHOD_MEMBER_WRITE);
    e = find_home(message, arena, ret_entity, ret_detail);
    if (e == ERR_OK && method->writes && (method->traits & METHOD_PASSES_REVIEW) == 0)
        e = check_writable(message, arena, ret_detail);
    if (e != ERR_OK || !find_text(message, 2, "op_id", &op_id))
        return e;
    return check_text(op_id, ROUTE_OP_ID_BYTES_MAX, arena,
                      &(struct refusal_field){ "op_id",
                                               "a UUIDv7, or a typed key of at most 160 "
                                               "bytes",
                                               op_id },
                      ret_detail);
}

static bool is_sound(struct slice text, size_t bytes_max)
{
    return text.size > 0 && text.size <= bytes_max && !has_control(text);
}

void route_name(const ProtobufCMessage *message, struct arena *arena,
                Holdfast__V1__ErrorDetail *detail)
{
    bool named = detail->entity != NULL && detail->entity[0] != 0;
    struct slice text;

    if (!named && find_text(message, 1, "player_id", &text) &&
        is_sound(text, ROUTE_PLAYER_BYTES_MAX))
        detail->entity =
            (char *)arena_copy(arena, slice_from_text(route_entity_of_player(text).text)).data;
    if (!named && find_text(message, 1, "entity", &text) && is_sound(text, ROUTE_ENTITY_BYTES_MAX))
        detail->entity = (char *)arena_copy(arena, text).data;
    if ((detail->op_id == NULL || detail->op_id[0] == 0) && find_text(message, 2, "op_id", &text) &&
        is_sound(text, ROUTE_OP_ID_BYTES_MAX))
        detail->op_id = (char *)arena_copy(arena, text).data;
}

struct route_target route_find_target(const struct shard_map *map, uint32_t shard)
{
    const struct shard_entry *entry = shard_map_find(map, shard);

    if (entry == NULL)
        return (struct route_target){ 0, 0 };
    return (struct route_target){ entry->record.owner, entry->record.epoch };
}

static void add_member(const struct route_reach *reach, uint64_t member, uint64_t *found,
                       uint32_t *count)
{
    for (uint32_t i = 0; i < *count; i++) {
        if (found[i] == member)
            return;
    }
    if (member != 0 && (reach->reaches == NULL || reach->reaches(reach->context, member)))
        found[(*count)++] = member;
}

struct route_target route_find_member(const struct shard_map *map, uint32_t shard,
                                      const struct route_reach *reach)
{
    const struct shard_entry *entry = shard_map_find(map, shard);
    uint64_t found[1 + 2 * ARRAY_SIZE(((struct shard_record *)0)->members)];
    uint32_t count = 0;

    if (entry == NULL)
        return (struct route_target){ 0, 0 };
    const struct shard_record *record = &entry->record;

    add_member(reach, record->owner, found, &count);
    for (uint32_t i = 0; i < record->member_count; i++)
        add_member(reach, record->members[i], found, &count);
    for (uint32_t i = 0; i < record->new_member_count; i++)
        add_member(reach, record->new_members[i], found, &count);
    if (count == 0)
        return (struct route_target){ 0, record->epoch };
    return (struct route_target){ found[reach->turn % count], record->epoch };
}
