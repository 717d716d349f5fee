#include "idl/method.h"
#include "node/core/favorite/metadata.h"
#include "node/rpc/methods.h"

typedef Holdfast__V1__DeleteTargetMetadataRequest delete_request;
typedef Holdfast__V1__DeleteTargetMetadataResponse delete_response;

static err favorites_delete_target_metadata_check(struct check_context *context,
                                                  ProtobufCMessage *message)
{
    const delete_request *request = (const void *)message;

    return metadata_check(context, request->collection, request->target_id);
}

static err favorites_delete_target_metadata_handle(struct apply_context *context,
                                                   const ProtobufCMessage *message,
                                                   ProtobufCMessage *reply)
{
    const delete_request *request = (const void *)message;
    delete_response *response = (void *)reply;
    const bool has_version = request->_if_version_case != 0;
    struct metadata metadata;

    err e = metadata_find_applied(context, request->collection, request->target_id, &metadata);
    if (e == ERR_OK && metadata.exists)
        e = metadata_check_version(context, &metadata, has_version ? &request->if_version : NULL);
    if (e != ERR_OK)
        return e;
    response->deleted = metadata.exists;
    if (metadata.exists)
        metadata_remove(context, &metadata);
    return ERR_OK;
}

const struct handler favorites_delete_target_metadata_handler = {
    .method = METHOD_DELETE_TARGET_METADATA,
    .check = favorites_delete_target_metadata_check,
    .handle = favorites_delete_target_metadata_handle,
};
