#include "holdfast/v1/erasure.pb-c.h"
#include "idl/method.h"
#include "node/rpc/erasure_player.h"
#include "node/rpc/methods.h"

static err erasure_restore_player_check(struct check_context *context, ProtobufCMessage *message)
{
    (void)message;
    return erasure_check_version(context);
}

static err erasure_restore_player_handle(struct apply_context *context,
                                         const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    Holdfast__V1__RestorePlayerResponse *response = (void *)reply;
    struct erasure_row row;

    (void)message;
    err e = erasure_authority(context);
    if (e == ERR_OK)
        e = erasure_undo(context, &row);
    if (e == ERR_OK)
        response->erasure = erasure_told(context->arena, &row);
    return e;
}

const struct handler erasure_restore_player_handler = {
    .method = METHOD_RESTORE_PLAYER,
    .admits = ADMITS_SYSTEM,
    .check = erasure_restore_player_check,
    .footprint = erasure_footprint,
    .handle = erasure_restore_player_handle,
};
