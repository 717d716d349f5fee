#include "node/core/shard/request_shard.h"

#include <string.h>

#include "idl/method.h"
#include "node/core/codec/proto_scan.h"
#include "runtime/base/check.h"
#include "runtime/cluster/placement.h"

#define FIELD_HOME      1u
#define PLAYER_PREFIX   "player:"
#define CONSUMER_PREFIX "consumer:"
#define PREFIX_BYTES    16u /* Of the longest, and more. */

static err refuse_home(struct refusal *refusal, const char *field, const char *message)
{
    *refusal = (struct refusal){
        .code = HOLDFAST__V1__ERROR_CODE__ERROR_CODE_INVALID_ARGUMENT,
        .field = field,
        .message = message,
    };
    return ERR_INVALID;
}

/* One, or several of one shard: any of them. */
static bool names_target(const ProtobufCFieldDescriptor *field)
{
    return strcmp(field->name, "target_id") == 0 || strcmp(field->name, "target_ids") == 0;
}

/* What stands before a name, as an entity. */
static struct slice prefix_of(const ProtobufCFieldDescriptor *field)
{
    if (strcmp(field->name, "player_id") == 0)
        return SLICE_LITERAL(PLAYER_PREFIX);
    if (strcmp(field->name, "consumer") == 0)
        return SLICE_LITERAL(CONSUMER_PREFIX);
    return names_target(field) ? SLICE_LITERAL(TARGET_ENTITY)
                               : (struct slice){ (const uint8_t *)"", 0 };
}

/* A shard is named by its number, or by what lives there. */
static bool has_home(const struct method_info *method)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(method->request, FIELD_HOME);

    return method->route == METHOD_MUTATION || method->route == METHOD_READ ||
           (field != NULL && (strcmp(field->name, "consumer") == 0 || names_target(field)));
}

static err shard_of_home(const struct method_info *method, struct slice request,
                         uint32_t shard_count, uint32_t *ret_shard, struct refusal *ret_refusal)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(method->request, FIELD_HOME);
    uint8_t entity[PREFIX_BYTES + ENTITY_BYTES_MAX];
    const struct slice prefix = prefix_of(field);
    struct slice home;

    CHECK(prefix.size <= PREFIX_BYTES);
    if (!proto_scan_bytes(request, FIELD_HOME, &home) || home.size == 0)
        return refuse_home(ret_refusal, field->name, "the request names no home entity");
    if (home.size > ENTITY_BYTES_MAX)
        return refuse_home(ret_refusal, field->name, "the home entity's id has over 128 bytes");
    memcpy(entity, prefix.data, prefix.size);
    memcpy(entity + prefix.size, home.data, home.size);
    *ret_shard = shard_of_entity((struct slice){ entity, prefix.size + home.size }, shard_count);
    return ERR_OK;
}

err request_shard(uint32_t method, struct slice request, uint32_t shard_count, uint32_t *ret_shard,
                  struct refusal *ret_refusal)
{
    const struct method_info *info = method_find(method);
    uint64_t number = 0;

    CHECK(info != NULL);
    if (has_home(info))
        return shard_of_home(info, request, shard_count, ret_shard, ret_refusal);
    /* proto3 leaves shard 0 out of the bytes. */
    (void)proto_scan_varint(request, FIELD_HOME, &number);
    if (number >= shard_count)
        return refuse_home(ret_refusal, "shard", "there is no such shard");
    *ret_shard = (uint32_t)number;
    return ERR_OK;
}
