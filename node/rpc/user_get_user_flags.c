#include "idl/method.h"
#include "node/core/handler/player_row.h"
#include "node/core/profile/user_flags.h"
#include "node/rpc/methods.h"

static err user_get_user_flags_read(struct read_context *context, const ProtobufCMessage *message,
                                    ProtobufCMessage *reply)
{
    Holdfast__V1__GetUserFlagsResponse *response = (void *)reply;
    struct player player;

    (void)message;
    err e = player_row_read(context, &player);
    if (e == ERR_OK)
        e = user_flags_read(context, &player, response);
    if (e == ERR_OK)
        response->as_of = as_of_text(context);
    return e;
}

const struct handler user_get_user_flags_handler = {
    .method = METHOD_GET_USER_FLAGS,
    .read = user_get_user_flags_read,
};
