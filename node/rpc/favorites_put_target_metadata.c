/* What a target is called and looks like: all of it at once, so that no two writers mix. */
#include "idl/method.h"
#include "node/core/favorite/metadata.h"
#include "node/rpc/methods.h"

typedef Holdfast__V1__PutTargetMetadataRequest put_request;
typedef Holdfast__V1__PutTargetMetadataResponse put_response;

static err favorites_put_target_metadata_check(struct check_context *context,
                                               ProtobufCMessage *message)
{
    put_request *request = (void *)message;

    err e = metadata_check(context, request->collection, request->target_id);
    return e == ERR_OK ? metadata_check_put(context, request) : e;
}

static err favorites_put_target_metadata_handle(struct apply_context *context,
                                                const ProtobufCMessage *message,
                                                ProtobufCMessage *reply)
{
    const put_request *request = (const void *)message;
    put_response *response = (void *)reply;
    const bool has_version = request->_if_version_case != 0;
    struct metadata metadata;
    bool repeats = false;

    err e = metadata_find_applied(context, request->collection, request->target_id, &metadata);
    if (e == ERR_OK)
        e = metadata_repeats(context, &metadata, request->op_id, &repeats);
    if (e == ERR_OK && !repeats)
        e = metadata_check_version(context, &metadata, has_version ? &request->if_version : NULL);
    if (e == ERR_OK && !repeats)
        e = metadata_store(context, request, &metadata);
    if (e != ERR_OK)
        return e;
    response->metadata = metadata_tell(context->arena, &metadata);
    response->duplicate = repeats;
    return ERR_OK;
}

const struct handler favorites_put_target_metadata_handler = {
    .method = METHOD_PUT_TARGET_METADATA,
    .check = favorites_put_target_metadata_check,
    .handle = favorites_put_target_metadata_handle,
};
