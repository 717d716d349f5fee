#include "holdfast/v1/erasure.pb-c.h"
#include "idl/method.h"
#include "node/rpc/erasure_player.h"
#include "node/rpc/methods.h"

typedef Holdfast__V1__ErasePlayerRequest erase_request;

static err erasure_erase_player_check(struct check_context *context, ProtobufCMessage *message)
{
    const erase_request *request = (const void *)message;

    if (request->_grace_ms_case != 0 &&
        (request->grace_ms < 0 || request->grace_ms > ERASURE_GRACE_MS_MAX))
        return refuse_number(context->arena, context->refusal, "grace_ms", "0 to 2592000000",
                             request->grace_ms);
    return erasure_check_version(context);
}

static err erasure_erase_player_handle(struct apply_context *context,
                                       const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    const erase_request *request = (const void *)message;
    Holdfast__V1__ErasePlayerResponse *response = (void *)reply;
    struct erasure_row row;

    err e = erasure_authority(context);
    if (e == ERR_OK)
        e = erasure_begin(
            context, request->_grace_ms_case != 0 ? request->grace_ms : ERASURE_GRACE_MS_DEFAULT,
            &row);
    if (e == ERR_OK)
        response->erasure = erasure_told(context->arena, &row);
    return e;
}

const struct handler erasure_erase_player_handler = {
    .method = METHOD_ERASE_PLAYER,
    .admits = ADMITS_SYSTEM,
    .check = erasure_erase_player_check,
    .footprint = erasure_footprint,
    .handle = erasure_erase_player_handle,
};
