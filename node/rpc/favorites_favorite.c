#include "holdfast/v1/favorites.pb-c.h"
#include "idl/method.h"
#include "node/rpc/favorite_edge.h"
#include "node/rpc/methods.h"

static err favorites_favorite_check(struct check_context *context, ProtobufCMessage *message)
{
    const Holdfast__V1__FavoriteRequest *request = (const void *)message;
    const struct favorite_call call = FAVORITE_CALL(request, true);

    return favorite_check(context, &call);
}

static err favorites_favorite_handle(struct apply_context *context, const ProtobufCMessage *message,
                                     ProtobufCMessage *reply)
{
    const Holdfast__V1__FavoriteRequest *request = (const void *)message;
    Holdfast__V1__FavoriteResponse *response = (void *)reply;
    const struct favorite_call call = FAVORITE_CALL(request, true);
    struct favorite_result result;

    err e = favorite_change(context, &call, &result);
    if (e == ERR_OK)
        FAVORITE_TELL(&result, response);
    return e;
}

const struct handler favorites_favorite_handler = {
    .method = METHOD_FAVORITE,
    .check = favorites_favorite_check,
    .footprint = favorite_footprint,
    .handle = favorites_favorite_handle,
};
