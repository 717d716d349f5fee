#include "idl/method.h"
#include "node/core/channel/channel_out.h"
#include "node/core/codec/text_rule.h"
#include "node/core/delivery/channel_in.h"
#include "node/core/goods/goods_sound.h"
#include "node/core/goods/mailbox.h"
#include "node/core/handler/refusal.h"
#include "node/core/receipt/receipt.h"
#include "node/core/transaction/txn_member.h"
#include "node/rpc/methods.h"
#include "runtime/base/hash.h"

typedef Holdfast__Internal__V1__DeliverRequest deliver_request;

/* What apply relies on: another version of this program may have sent it. */
static bool credit_is_sound(struct check_context *context, uint32_t source,
                            const Holdfast__Internal__V1__ChannelCredit *credit)
{
    const Holdfast__V1__Mail *mail = credit->mail;
    int kinds = (mail != NULL) + (credit->prepare != NULL) + (credit->finish != NULL) +
                (credit->receipt != NULL);

    if (credit->seq == 0 || kinds != 1 || credit->payload_hash.len != sizeof(struct hash128))
        return false;
    if (credit->receipt != NULL)
        return receipt_is_sound(credit, context->shard, context->shard_count);
    if (player_id_check(slice_from_text(credit->to_player_id)) != ERR_OK ||
        !goods_text_is_sound(credit->op_id))
        return false;
    if (mail == NULL)
        return txn_member_is_sound(context->arena, source, context->shard, context->shard_count,
                                   credit);
    return mail_is_sound(mail) &&
           (context->shard_count == 0 || channel_shard_of(context->arena, credit->to_player_id,
                                                          context->shard_count) == context->shard);
}

/* Nothing of it is logged but its number and its hash, so apply holds it (channel_in.h). */
static void credit_empty(Holdfast__Internal__V1__ChannelCredit *credit)
{
    credit->op_id = text_lend("");
    credit->to_player_id = text_lend("");
    credit->mail = NULL;
    credit->prepare = NULL;
    credit->finish = NULL;
    credit->receipt = NULL;
    if (credit->payload_hash.len != sizeof(struct hash128))
        credit->payload_hash = (ProtobufCBinaryData){ 0, NULL };
}

static err channel_deliver_check(struct check_context *context, ProtobufCMessage *message)
{
    const deliver_request *request = (const deliver_request *)message;
    struct arena *arena = context->arena;

    if (request->source > UINT16_MAX || request->source == context->shard)
        return refuse_number(arena, context->refusal, "source", "another shard", request->source);
    if (request->n_credits > CHANNEL_BATCH_MAX || request->n_cancels > CHANNEL_BATCH_MAX)
        return refuse_number(arena, context->refusal, "credits", "at most 256",
                             (int64_t)(request->n_credits + request->n_cancels));
    for (size_t i = 0; i < request->n_credits; i++) {
        Holdfast__Internal__V1__ChannelCredit *credit = request->credits[i];

        if (credit_is_sound(context, request->source, credit))
            continue;
        if (credit->seq == 0 || context->meta->apply_version < CREDIT_HELD_APPLY_VERSION)
            return refuse_invalid(arena, context->refusal, "credits",
                                  "records for players of this shard", "");
        credit_empty(credit);
    }
    return ERR_OK;
}

static void channel_deliver_keys(const struct op *op, const ProtobufCMessage *message,
                                 struct need *keys)
{
    (void)op;
    channel_deliver_footprint((const deliver_request *)message, keys);
}

static err channel_deliver_handle(struct apply_context *context, const ProtobufCMessage *message,
                                  ProtobufCMessage *reply)
{
    return channel_deliver(context, (const deliver_request *)message,
                           (Holdfast__Internal__V1__DeliverResponse *)reply);
}

const struct handler channel_deliver_handler = {
    .method = METHOD_CHANNEL_DELIVER,
    .check = channel_deliver_check,
    .footprint = channel_deliver_keys,
    .handle = channel_deliver_handle,
};
