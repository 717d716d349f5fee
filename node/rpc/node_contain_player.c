#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/channel/channel_out.h"
#include "node/core/codec/text_rule.h"
#include "node/core/handler/refusal.h"
#include "node/rpc/methods.h"

#define REASON_MAX 64u

typedef Holdfast__Internal__V1__ContainPlayerRequest contain_request;

static err node_contain_player_check(struct check_context *context, ProtobufCMessage *message)
{
    const contain_request *request = (const contain_request *)message;
    struct slice reason = slice_from_text(request->reason);

    if (player_id_check(slice_from_text(request->player_id)) != ERR_OK ||
        (context->shard_count > 0 && channel_shard_of(context->arena, request->player_id,
                                                      context->shard_count) != context->shard))
        return refuse_invalid(context->arena, context->refusal, "player_id",
                              "a player of this shard",
                              text_shorten(context->arena, slice_from_text(request->player_id)));
    if (reason.size == 0 || reason.size > REASON_MAX || !text_is_clean(reason))
        return refuse_invalid(context->arena, context->refusal, "reason",
                              "1 to 64 bytes of UTF-8 without control characters",
                              text_shorten(context->arena, reason));
    return ERR_OK;
}

static err node_contain_player_handle(struct apply_context *context,
                                      const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    const contain_request *request = (const contain_request *)message;
    Holdfast__Internal__V1__ContainPlayerResponse *response =
        (Holdfast__Internal__V1__ContainPlayerResponse *)reply;

    response->contained = meta_quarantine(context->meta, slice_from_text(request->player_id),
                                          slice_from_text(request->reason), context->owner_ms);
    return ERR_OK;
}

const struct handler node_contain_player_handler = {
    .method = METHOD_CONTAIN_PLAYER,
    .check = node_contain_player_check,
    .handle = node_contain_player_handle,
};
