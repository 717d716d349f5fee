#include "idl/method.h"
#include "node/core/profile/profile.h"
#include "node/core/transaction/txn_part.h"
#include "node/rpc/methods.h"

static err profile_get_profile_read(struct read_context *context, const ProtobufCMessage *message,
                                    ProtobufCMessage *reply)
{
    const Holdfast__V1__GetProfileRequest *request =
        (const Holdfast__V1__GetProfileRequest *)message;
    Holdfast__V1__GetProfileResponse *response = (Holdfast__V1__GetProfileResponse *)reply;
    struct include include;
    struct player player;

    err e = include_parse(context->arena, context->refusal, request->n_include, request->include,
                          &include);
    if (e == ERR_OK)
        e = player_row_read(context, &player);
    if (e == ERR_OK && request->settled && player.txn.seq != 0)
        e = txn_refuse_held(context->arena, context->refusal, request->player_id,
                            slice_from_text(request->player_id));
    if (e == ERR_OK)
        e = profile_read(context, &player, &include, &response->profile);
    if (e == ERR_OK)
        response->as_of = as_of_text(context);
    return e;
}

const struct handler profile_get_profile_handler = {
    .method = METHOD_GET_PROFILE,
    .read = profile_get_profile_read,
};
