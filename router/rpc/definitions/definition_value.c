#include "router/rpc/definitions/definition_value.h"

#include <inttypes.h>

char *definition_value(struct arena *arena, const ProtobufCMessage *body,
                       const ProtobufCFieldDescriptor *field)
{
    const void *at = (const char *)body + field->offset;

    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return NULL;
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT64:
        return arena_printf(arena, "%" PRId64, *(const int64_t *)at);
    case PROTOBUF_C_TYPE_UINT64:
        return arena_printf(arena, "%" PRIu64, *(const uint64_t *)at);
    case PROTOBUF_C_TYPE_UINT32:
        return arena_printf(arena, "%" PRIu32, *(const uint32_t *)at);
    case PROTOBUF_C_TYPE_BOOL:
        return arena_printf(arena, "%s", *(const protobuf_c_boolean *)at ? "true" : "false");
    case PROTOBUF_C_TYPE_STRING:
        return arena_printf(arena, "%s", *(char *const *)at);
    case PROTOBUF_C_TYPE_ENUM: {
        const ProtobufCEnumValue *value =
            protobuf_c_enum_descriptor_get_value(field->descriptor, *(const int *)at);
        return arena_printf(arena, "%s", value != NULL ? value->name : "");
    }
    default:
        return NULL;
    }
}
