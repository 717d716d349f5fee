#include "holdfast/v1/favorites.pb-c.h"
#include "idl/method.h"
#include "node/rpc/favorite_edge.h"
#include "node/rpc/methods.h"

static err favorites_unfavorite_check(struct check_context *context, ProtobufCMessage *message)
{
    const Holdfast__V1__UnfavoriteRequest *request = (const void *)message;
    const struct favorite_call call = FAVORITE_CALL(request, false);

    return favorite_check(context, &call);
}

static err favorites_unfavorite_handle(struct apply_context *context,
                                       const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    const Holdfast__V1__UnfavoriteRequest *request = (const void *)message;
    Holdfast__V1__UnfavoriteResponse *response = (void *)reply;
    const struct favorite_call call = FAVORITE_CALL(request, false);
    struct favorite_result result;

    err e = favorite_change(context, &call, &result);
    if (e == ERR_OK)
        FAVORITE_TELL(&result, response);
    return e;
}

const struct handler favorites_unfavorite_handler = {
    .method = METHOD_UNFAVORITE,
    .check = favorites_unfavorite_check,
    .footprint = favorite_footprint,
    .handle = favorites_unfavorite_handle,
};
