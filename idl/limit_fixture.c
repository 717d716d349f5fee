#include "idl/limit_fixture.h"

#include <string.h>

#include "runtime/base/buf.h"
#include "runtime/base/check.h"

static void *member(ProtobufCMessage *message, unsigned offset)
{
    return (char *)message + offset;
}

ProtobufCMessage *limit_message(struct arena *arena, const ProtobufCMessageDescriptor *type)
{
    ProtobufCMessage *message = arena_alloc(arena, type->sizeof_message);

    protobuf_c_message_init(type, message);
    return message;
}

/* Texts are hex digits, each another. */
static void *list_make(struct arena *arena, const ProtobufCFieldDescriptor *field, size_t count)
{
    if (field->type == PROTOBUF_C_TYPE_ENUM)
        return arena_zalloc(arena, (count + 1) * sizeof(int));

    void **list = arena_alloc(arena, (count + 1) * sizeof *list);
    for (size_t i = 0; i < count; i++)
        list[i] = field->type == PROTOBUF_C_TYPE_MESSAGE
                      ? (void *)limit_message(arena, field->descriptor)
                      : (void *)arena_printf(arena, "%032zx", i);
    return list;
}

static char *nested_make(struct arena *arena, size_t depth)
{
    struct buf text = { 0 };

    for (size_t i = 0; i + 1 < depth; i++)
        buf_append(&text, "{\"a\":", 5);
    buf_append(&text, "{", 1);
    for (size_t i = 0; i < depth; i++)
        buf_append(&text, "}", 1);
    char *copy = arena_printf(arena, "%.*s", (int)text.size, (const char *)text.data);
    buf_deinit(&text);
    return copy;
}

/* One that is shorter than its two ends is letters alone. */
static char *text_make(struct arena *arena, enum limit_shape shape, size_t size)
{
    static const struct {
        const char *head, *tail;
    } ends[] = { [LIMIT_TEXT] = { "", "" },          [LIMIT_OBJECT] = { "{\"a\":\"", "\"}" },
                 [LIMIT_PATH] = { "/", "" },         [LIMIT_URL] = { "https://a/", "" },
                 [LIMIT_ENTITY] = { "player:", "" }, [LIMIT_OP_ID] = { "admin:", "" } };

    if (shape == LIMIT_NESTED)
        return nested_make(arena, size);
    CHECK(shape < ARRAY_SIZE(ends) && ends[shape].head != NULL);
    char *text = arena_alloc(arena, size + 1);
    size_t head = strlen(ends[shape].head), tail = strlen(ends[shape].tail);

    memset(text, 'x', size);
    text[size] = 0;
    if (size >= head + tail) {
        memcpy(text, ends[shape].head, head);
        memcpy(text + size - tail, ends[shape].tail, tail);
    }
    return text;
}

/* The first entry of a list that is made if it is empty, or a part that is. */
static ProtobufCMessage *part_of(struct arena *arena, ProtobufCMessage *message,
                                 const ProtobufCFieldDescriptor *field)
{
    void *place = member(message, field->offset);

    CHECK(field->type == PROTOBUF_C_TYPE_MESSAGE);
    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0)
            *(uint32_t *)member(message, field->quantifier_offset) = field->id;
        if (*(void **)place == NULL)
            *(void **)place = limit_message(arena, field->descriptor);
        return *(ProtobufCMessage **)place;
    }
    size_t *count = member(message, field->quantifier_offset);
    if (*count == 0)
        *(void **)place = list_make(arena, field, *count = 1);
    return **(ProtobufCMessage ***)place;
}

static void value_set(struct arena *arena, ProtobufCMessage *message,
                      const ProtobufCFieldDescriptor *field, enum limit_shape shape, int64_t value)
{
    void *place = member(message, field->offset);

    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        *(size_t *)member(message, field->quantifier_offset) = (size_t)value;
        *(void **)place = list_make(arena, field, (size_t)value);
        return;
    }
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) /* `optional` is one, too. */
        *(uint32_t *)member(message, field->quantifier_offset) = field->id;
    if (field->type == PROTOBUF_C_TYPE_STRING)
        *(char **)place = text_make(arena, shape, (size_t)value);
    else if (field->type == PROTOBUF_C_TYPE_UINT32 || field->type == PROTOBUF_C_TYPE_ENUM)
        *(uint32_t *)place = (uint32_t)value;
    else
        *(int64_t *)place = value;
}

void limit_set(struct arena *arena, ProtobufCMessage *message, const char *path,
               enum limit_shape shape, int64_t value)
{
    const ProtobufCFieldDescriptor *field;
    const char *rest;

    while ((rest = strchr(path, '.')) != NULL) {
        field = protobuf_c_message_descriptor_get_field_by_name(
            message->descriptor, arena_printf(arena, "%.*s", (int)strcspn(path, ".["), path));
        CHECK(field != NULL);
        message = part_of(arena, message, field);
        path = rest + 1;
    }
    field = protobuf_c_message_descriptor_get_field_by_name(message->descriptor, path);
    CHECK(field != NULL);
    value_set(arena, message, field, shape, value);
}
