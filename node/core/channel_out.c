#include "node/core/channel_out.h"

#include <string.h>

#include "idl/method.h"
#include "node/core/apply_internal.h"
#include "node/core/arena_proto.h"
#include "node/core/refusal.h"
#include "node/core/text_rule.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"
#include "runtime/cluster/placement.h"

#define THROTTLED_RETRY_MS 200u

uint32_t channel_shard_of(struct arena *arena, const char *player_id, uint32_t shard_count)
{
    return shard_of_entity(entity_of_player(arena, player_id), shard_count);
}

static err refuse_room(struct arena *arena, struct refusal *refusal, const char *what)
{
    err e = refuse(arena, refusal, CODE(THROTTLED), "",
                   "%s are on their way from this shard already, at most %u; nothing was done",
                   what, OUTBOX_MAX);

    refusal->limit = arena_printf(arena, "%u", OUTBOX_MAX);
    refusal->retry_after_ms = THROTTLED_RETRY_MS;
    refusal->transient = true;
    return e;
}

err channel_check_room(struct arena *arena, struct refusal *refusal, const struct meta *meta)
{
    if (meta->outbox_open < OUTBOX_MAX)
        return ERR_OK;
    return refuse_room(arena, refusal, "too many transfers");
}

static struct slice payload_hash(struct arena *arena, const char *to,
                                 const Holdfast__V1__Mail *mail)
{
    struct hash128 none = { { 0 } };
    struct hash128 hash = hash_chain(none, slice_from_text(to), arena_pack(arena, &mail->base));

    return arena_copy(arena, (struct slice){ hash.bytes, sizeof hash.bytes });
}

static char *text_of(struct arena *arena, struct slice text)
{
    return arena_text(arena, text);
}

static void record_fill(struct apply_context *context, const struct channel_send *send,
                        Holdfast__Internal__V1__ChannelCredit *credit,
                        Holdfast__Internal__V1__OutboxRow *row)
{
    struct arena *arena = context->arena;
    struct slice hash = payload_hash(arena, send->to_player_id, send->mail);

    credit->op_id = text_of(arena, context->op->id.text);
    credit->payload_hash = (ProtobufCBinaryData){ hash.size, (uint8_t *)(uintptr_t)hash.data };
    credit->to_player_id = (char *)(uintptr_t)send->to_player_id;
    credit->mail = send->mail;
    row->credit = credit;
    row->player_id = text_of(arena, player_id(context->player));
    row->method = context->op->method;
    row->attempt = context->op->attempt;
    row->opened_at_ms = context->owner_ms;
    row->authority = text_of(arena, context->authority_text);
    row->response =
        (ProtobufCBinaryData){ send->response.size, (uint8_t *)(uintptr_t)send->response.data };
    row->mail_return = send->mail_return;
}

err channel_open(struct apply_context *context, uint32_t destination,
                 const struct channel_send *send)
{
    Holdfast__Internal__V1__ChannelCredit credit = HOLDFAST__INTERNAL__V1__CHANNEL_CREDIT__INIT;
    Holdfast__Internal__V1__OutboxRow row = HOLDFAST__INTERNAL__V1__OUTBOX_ROW__INIT;
    Holdfast__Internal__V1__ChannelOutRow fresh = HOLDFAST__INTERNAL__V1__CHANNEL_OUT_ROW__INIT;
    Holdfast__Internal__V1__ChannelOutRow *stands = &fresh;

    CHECK(destination != context->shard);
    err e = channel_check_room(context->arena, context->refusal, context->meta);
    if (e != ERR_OK)
        return e;
    enum state_found found =
        channel_out_find(context->state, context->arena, destination, context->need, &stands);
    if (found == STATE_MISSING)
        return ERR_NEED;
    if (found == STATE_ABSENT)
        stands = &fresh;
    if (stands->last_seq - stands->watermark >= OUTBOX_MAX)
        return refuse_room(context->arena, context->refusal, "too many transfers to one shard");
    credit.seq = ++stands->last_seq;
    record_fill(context, send, &credit, &row);
    outbox_store(context, destination, &row);
    channel_out_store(context, destination, stands);
    context->meta->outbox_open++;
    context->channel->several |=
        context->channel->touched && context->channel->destination != destination;
    context->channel->touched = true;
    context->channel->destination = destination;
    if (!send->mail_return) {
        context->pending = true;
        context->channel->opened_seq = credit.seq;
    }
    return ERR_OK;
}

err channel_cancel(struct apply_context *context, struct slice ref)
{
    Holdfast__Internal__V1__OutboxRow *row = NULL;
    uint32_t destination;
    uint64_t seq;

    channel_ref_decode(ref, &destination, &seq);
    enum state_found found =
        outbox_find(context->state, context->arena, destination, seq, context->need, &row);
    if (found == STATE_MISSING)
        return ERR_NEED;
    CHECK(found == STATE_PRESENT); /* It stands while its operation is PENDING. */
    context->pending = true;
    context->channel->destination = destination;
    context->channel->opened_seq = seq;
    if (row->cancel)
        return ERR_OK;
    row->cancel = true;
    outbox_store(context, destination, row);
    context->channel->cancelled_seq = seq;
    context->channel->touched = true;
    return ERR_OK;
}

void channel_settle_encode(const Holdfast__Internal__V1__SettleRequest *request, struct buf *out)
{
    owner_op_encode(METHOD_CHANNEL_SETTLE, (struct slice){ 0 }, &request->base, out);
}
