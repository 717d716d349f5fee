#include "idl/method.h"
#include "node/core/channel/channel_out.h"
#include "node/core/delivery/channel_settle.h"
#include "node/rpc/methods.h"

typedef Holdfast__Internal__V1__SettleRequest settle_request;

static void channel_settle_keys(const struct op *op, const ProtobufCMessage *message,
                                struct need *keys)
{
    (void)op;
    channel_settle_footprint((const settle_request *)message, keys);
}

static err channel_settle_handle(struct apply_context *context, const ProtobufCMessage *message,
                                 ProtobufCMessage *reply)
{
    (void)reply;
    return channel_settle(context, (const settle_request *)message);
}

const struct handler channel_settle_handler = {
    .method = METHOD_CHANNEL_SETTLE,
    .footprint = channel_settle_keys,
    .handle = channel_settle_handle,
};
