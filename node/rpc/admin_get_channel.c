/* What one shard knows of its channels with another: for the repair of a row (channel_repair.h). */
#include "holdfast/v1/admin.pb-c.h"
#include "idl/method.h"
#include "node/core/channel/channel_row.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/handler/refusal.h"
#include "node/core/profile/profile.h"
#include "node/core/rows/rows.h"
#include "node/rpc/methods.h"

typedef Holdfast__V1__ChannelEnd channel_end;

static channel_end *end_new(struct arena *arena)
{
    return (channel_end *)arena_message(arena, &holdfast__v1__channel_end__descriptor);
}

static enum state_found outgoing_tell(struct read_context *context, uint32_t other,
                                      channel_end *end)
{
    Holdfast__Internal__V1__ChannelOutRow *row = NULL;
    enum state_found found =
        channel_out_find(context->state, context->arena, other, context->need, &row);

    end->unreadable = found == STATE_PRESENT && row == NULL;
    end->last_seq = row != NULL ? row->last_seq : 0;
    end->watermark = row != NULL ? row->watermark : 0;
    return found;
}

static enum state_found incoming_tell(struct read_context *context, uint32_t other,
                                      channel_end *end)
{
    Holdfast__Internal__V1__ChannelInRow *row = NULL;
    enum state_found found =
        channel_in_find(context->state, context->arena, other, context->need, &row);

    end->uncounted = !context->meta->inboxes_told;
    end->unreadable = found == STATE_PRESENT && row == NULL;
    end->last_seq = row != NULL ? row->decided : 0;
    end->watermark = row != NULL ? row->watermark : 0;
    return found;
}

static err admin_get_channel_read(struct read_context *context, const ProtobufCMessage *message,
                                  ProtobufCMessage *reply)
{
    const Holdfast__V1__GetChannelRequest *request =
        (const Holdfast__V1__GetChannelRequest *)message;
    Holdfast__V1__GetChannelResponse *response = (Holdfast__V1__GetChannelResponse *)reply;

    if (request->other_shard > UINT16_MAX || request->other_shard == request->shard)
        return refuse_number(context->arena, context->refusal, "other_shard",
                             "0 to shard_count - 1, and another than shard", request->other_shard);
    response->outgoing = end_new(context->arena);
    response->incoming = end_new(context->arena);
    enum state_found outgoing = outgoing_tell(context, request->other_shard, response->outgoing);
    enum state_found incoming = incoming_tell(context, request->other_shard, response->incoming);
    if (outgoing == STATE_MISSING || incoming == STATE_MISSING)
        return ERR_NEED;
    response->as_of = as_of_text(context);
    return ERR_OK;
}

const struct handler admin_get_channel_handler = {
    .method = METHOD_GET_CHANNEL,
    .read = admin_get_channel_read,
};
