#include "idl/field_path.h"

#include <string.h>

#define NAME_BYTES_MAX 64

static const ProtobufCFieldDescriptor *take_field(const ProtobufCMessageDescriptor *message,
                                                  const char **path)
{
    char name[NAME_BYTES_MAX + 1];
    size_t size = strcspn(*path, ".[");

    if (size == 0 || size > NAME_BYTES_MAX)
        return NULL;
    memcpy(name, *path, size);
    name[size] = 0;
    *path += size;
    return protobuf_c_message_descriptor_get_field_by_name(message, name);
}

/* `[2]` or `["gold"]`; a key may have brackets and quotes of its own. */
static bool take_place(const char **path, bool *ret_key)
{
    const char *at = *path + 1;

    *ret_key = *at == '"';
    if (*ret_key) {
        const char *end = NULL;
        for (const char *next = strstr(at, "\"]"); next != NULL; next = strstr(next + 1, "\"]")) {
            if (end == NULL || next[2] == 0 || next[2] == '.')
                end = next;
        }
        if (end == NULL || end == at)
            return false;
        *path = end + 2;
        return true;
    }
    size_t digits = strspn(at, "0123456789");
    if (digits == 0 || at[digits] != ']')
        return false;
    *path = at + digits + 1;
    return true;
}

/* What an entry of a map holds; NULL: the message is no such entry, or holds no message. */
static const ProtobufCMessageDescriptor *value_of(const ProtobufCMessageDescriptor *entry)
{
    const ProtobufCFieldDescriptor *key =
        protobuf_c_message_descriptor_get_field_by_name(entry, "key");
    const ProtobufCFieldDescriptor *value =
        protobuf_c_message_descriptor_get_field_by_name(entry, "value");

    return key != NULL && value != NULL && value->type == PROTOBUF_C_TYPE_MESSAGE
               ? value->descriptor
               : NULL;
}

bool field_path_fits(const ProtobufCMessageDescriptor *message, const char *path)
{
    for (;;) {
        const ProtobufCFieldDescriptor *field = take_field(message, &path);
        bool has_key = false;

        if (field == NULL)
            return false;
        bool is_json =
            field->type == PROTOBUF_C_TYPE_BYTES || field->type == PROTOBUF_C_TYPE_STRING;
        bool is_list = field->label == PROTOBUF_C_LABEL_REPEATED;
        if (*path == '[') {
            if (!is_list)
                return is_json;
            if (!take_place(&path, &has_key))
                return false;
        }
        if (*path == 0)
            return true;
        if (*path != '.' || field->type != PROTOBUF_C_TYPE_MESSAGE)
            return *path == '.' && is_json && path[1] != 0;
        path++;
        message = field->descriptor;
        if (has_key && value_of(message) != NULL)
            message = value_of(message);
    }
}
