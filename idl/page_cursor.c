#include "idl/page_cursor.h"

#include <string.h>

#include "runtime/base/base64.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"

#define BIND_BYTES 6u /* Of the hash; with it base64 needs no padding before the place. */

static const ProtobufCFieldDescriptor *find_text(const ProtobufCMessageDescriptor *type,
                                                 const char *name)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(type, name);

    if (field == NULL || field->type != PROTOBUF_C_TYPE_STRING ||
        field->label == PROTOBUF_C_LABEL_REPEATED)
        return NULL;
    return field;
}

bool page_cursor_concerns(const struct method_info *method)
{
    return !method->internal && method->id != METHOD_LIST_INCIDENTS && method->id != METHOD_POLL &&
           !method->writes &&
           protobuf_c_message_descriptor_get_field_by_name(method->request, "page_size") != NULL &&
           find_text(method->request, "cursor") != NULL &&
           find_text(method->response, "next_cursor") != NULL;
}

static char **text_in(ProtobufCMessage *message, const char *name)
{
    const ProtobufCFieldDescriptor *field = find_text(message->descriptor, name);

    CHECK(field != NULL);
    return (char **)(void *)((char *)message + field->offset);
}

char **page_cursor_of_request(ProtobufCMessage *request)
{
    return text_in(request, "cursor");
}

char **page_cursor_of_response(ProtobufCMessage *response)
{
    return text_in(response, "next_cursor");
}

/* Sets a field to what it is when it is absent. */
static void clear(ProtobufCMessage *message, const char *name)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);

    if (field == NULL)
        return;
    bool pointer = field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE;
    memset((char *)message + field->offset, 0, pointer ? sizeof(void *) : sizeof(uint32_t));
}

/* Of the list and its filters. */
static void bind(const ProtobufCMessage *request, struct arena *arena,
                 uint8_t ret_bytes[BIND_BYTES])
{
    size_t size = request->descriptor->sizeof_message;
    ProtobufCMessage *filters = arena_alloc(arena, size);
    size_t name = strlen(request->descriptor->name);

    memcpy(filters, request, size);
    filters->n_unknown_fields = 0;
    clear(filters, "page_size");
    clear(filters, "cursor");
    clear(filters, "read");
    size = protobuf_c_message_get_packed_size(filters);
    uint8_t *bytes = arena_alloc(arena, name + size + 1);
    memcpy(bytes, request->descriptor->name, name);
    (void)protobuf_c_message_pack(filters, bytes + name);
    uint64_t hash = hash_u64((struct slice){ bytes, name + size });
    for (unsigned i = 0; i < BIND_BYTES; i++)
        ret_bytes[i] = (uint8_t)(hash >> 8 * i);
}

char *page_cursor_print(const ProtobufCMessage *request, const char *place, struct arena *arena)
{
    size_t size = strlen(place);
    uint8_t *bytes = arena_alloc(arena, BIND_BYTES + size);
    struct buf text = { 0 };

    CHECK(size > 0);
    bind(request, arena, bytes);
    memcpy(bytes + BIND_BYTES, place, size);
    base64_encode_url((struct slice){ bytes, BIND_BYTES + size }, &text);
    char *printed = (char *)(uintptr_t)arena_copy(arena, buf_slice(&text)).data;
    buf_deinit(&text);
    return printed;
}

err page_cursor_parse(const ProtobufCMessage *request, struct arena *arena, char **ret_place)
{
    static char first[] = "";
    const ProtobufCFieldDescriptor *field = find_text(request->descriptor, "cursor");
    uint8_t own[BIND_BYTES];
    size_t size = 0;
    const char *text;

    CHECK(field != NULL);
    memcpy(&text, (const char *)request + field->offset, sizeof text);
    *ret_place = first;
    if (text == NULL || text[0] == 0)
        return ERR_OK;
    const struct slice cursor = slice_from_text(text);
    uint8_t *bytes = arena_alloc(arena, base64_size_max(cursor.size) + 1);
    bind(request, arena, own);
    if (!base64_decode(cursor, bytes, &size) || size <= BIND_BYTES ||
        memcmp(bytes, own, BIND_BYTES) != 0 || memchr(bytes + BIND_BYTES, 0, size - BIND_BYTES))
        return ERR_INVALID;
    bytes[size] = 0;
    *ret_place = (char *)(bytes + BIND_BYTES);
    return ERR_OK;
}
