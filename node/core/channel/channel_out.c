#include "node/core/channel/channel_out.h"

#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/handler/outcome_row.h"
#include "node/core/handler/refusal.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"
#include "runtime/cluster/placement.h"

#define THROTTLED_RETRY_MS 200u
#define FIELD_MAIL_ID      9u /* Of every response that a transfer has. */

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

static char *borrowed(const char *text)
{
    return text_lend(text != NULL ? text : "");
}

static struct slice payload_hash(struct arena *arena, const struct channel_record *record)
{
    const ProtobufCMessage *goods = record->mail != NULL      ? &record->mail->base
                                    : record->prepare != NULL ? &record->prepare->base
                                    : record->finish != NULL  ? &record->finish->base
                                                              : &record->receipt->base;
    struct hash128 none = { { 0 } };
    struct hash128 hash =
        hash_chain(none, slice_from_text(borrowed(record->to_player_id)), arena_pack(arena, goods));

    return arena_copy(arena, (struct slice){ hash.bytes, sizeof hash.bytes });
}

static void record_store(struct apply_context *context, uint32_t destination,
                         const struct channel_record *record, uint64_t seq)
{
    Holdfast__Internal__V1__ChannelCredit credit = HOLDFAST__INTERNAL__V1__CHANNEL_CREDIT__INIT;
    Holdfast__Internal__V1__OutboxRow row = HOLDFAST__INTERNAL__V1__OUTBOX_ROW__INIT;
    struct slice hash = payload_hash(context->arena, record);

    credit.seq = seq;
    credit.op_id = borrowed(record->op_id);
    credit.payload_hash = (ProtobufCBinaryData){ hash.size, (uint8_t *)(uintptr_t)hash.data };
    credit.to_player_id = borrowed(record->to_player_id);
    credit.mail = record->mail;
    credit.prepare = record->prepare;
    credit.finish = record->finish;
    credit.receipt = record->receipt;
    row.credit = &credit;
    row.player_id = borrowed(record->player_id);
    row.method = record->method;
    row.attempt = record->attempt;
    row.opened_at_ms = context->owner_ms;
    row.authority = borrowed(record->authority);
    row.response =
        (ProtobufCBinaryData){ record->response.size, (uint8_t *)(uintptr_t)record->response.data };
    row.mail_return = record->mail_return;
    row.finish = record->finish != NULL;
    row.operation = (ProtobufCBinaryData){ record->operation.size,
                                           (uint8_t *)(uintptr_t)record->operation.data };
    row.opened_cut = context->meta->cut_id;
    row.delta = record->delta;
    outbox_add(context, destination, &row);
}

/* ERR_NEED. In the arena; fresh when there is none. */
static err stands_find(struct apply_context *context, uint32_t destination,
                       Holdfast__Internal__V1__ChannelOutRow **ret_stands)
{
    enum state_found found =
        channel_out_find(context->state, context->arena, destination, context->need, ret_stands);

    if (found == STATE_MISSING)
        return ERR_NEED;
    if (found == STATE_PRESENT && *ret_stands == NULL)
        return channel_damaged(context, true, destination);
    if (found == STATE_ABSENT)
        *ret_stands = (Holdfast__Internal__V1__ChannelOutRow *)arena_message(
            context->arena, &holdfast__internal__v1__channel_out_row__descriptor);
    return ERR_OK;
}

err channel_next_seq(struct apply_context *context, uint32_t destination, uint64_t *ret_seq)
{
    Holdfast__Internal__V1__ChannelOutRow *stands = NULL;
    err e = stands_find(context, destination, &stands);

    if (e == ERR_OK)
        *ret_seq = stands->last_seq + 1;
    return e;
}

static void effect_opened(struct channel_effect *effect, uint32_t destination)
{
    if (!effect->touched)
        effect->destination = destination;
    effect->touched = true;
    for (uint32_t i = 0; i < effect->opened_count; i++) {
        if (effect->opened[i] == destination)
            return;
    }
    if (effect->opened_count < CHANNEL_OPENED_MAX)
        effect->opened[effect->opened_count++] = destination;
    else
        effect->several = true;
}

err channel_record_open(struct apply_context *context, uint32_t destination,
                        const struct channel_record *record, uint64_t *ret_seq)
{
    Holdfast__Internal__V1__ChannelOutRow *stands = NULL;
    bool always = record->finish != NULL;

    CHECK(destination != context->shard);
    if (!always) {
        err e = channel_check_room(context->arena, context->refusal, context->meta);
        if (e != ERR_OK)
            return e;
    }
    err e = stands_find(context, destination, &stands);
    if (e != ERR_OK)
        return e;
    if (!always && stands->last_seq - stands->watermark >= OUTBOX_MAX)
        return refuse_room(context->arena, context->refusal, "too many transfers to one shard");
    *ret_seq = ++stands->last_seq;
    record_store(context, destination, record, *ret_seq);
    channel_out_store(context, destination, stands);
    context->meta->outbox_open++;
    effect_opened(context->channel, destination);
    return ERR_OK;
}

err channel_open(struct apply_context *context, uint32_t destination,
                 const struct channel_send *send)
{
    struct arena *arena = context->arena;
    const struct channel_record record = {
        .to_player_id = send->to_player_id,
        .player_id = arena_text(arena, player_id(context->player)),
        .op_id = arena_text(arena, context->op->id.text),
        .authority = arena_text(arena, context->authority_text),
        .method = context->op->method,
        .attempt = context->op->attempt,
        .response = send->response,
        .mail_return = send->mail_return,
        .mail = send->mail,
    };
    uint64_t seq;

    err e = channel_record_open(context, destination, &record, &seq);
    if (e == ERR_OK && !send->mail_return) {
        context->pending = true;
        context->channel->destination = destination;
        context->channel->opened_seq = seq;
    }
    return e;
}

err channel_record_cancel(struct apply_context *context, uint32_t destination, uint64_t seq)
{
    Holdfast__Internal__V1__OutboxRow *row = NULL;
    struct channel_ref ref = { destination, seq };
    enum state_found found = outbox_find(context->state, context->arena, ref, context->need, &row);

    if (found == STATE_MISSING)
        return ERR_NEED;
    if (row == NULL)
        return ERR_OK; /* It cannot be read, or is gone: it stays as it is. */
    row->cancel = true;
    outbox_store(context, destination, row);
    context->channel->several = true;
    return ERR_OK;
}

err channel_cancel(struct apply_context *context, struct slice pending)
{
    Holdfast__Internal__V1__OutboxRow *row = NULL;
    struct channel_ref ref;

    if (!channel_ref_decode(pending, &ref))
        return apply_damaged(context, context->op->entity, OUTCOME_DAMAGE);
    enum state_found found = outbox_find(context->state, context->arena, ref, context->need, &row);
    if (found == STATE_MISSING)
        return ERR_NEED;
    if (found == STATE_ABSENT) /* It stands while its operation is PENDING. */
        return apply_damaged(context, context->op->entity, OUTBOX_DAMAGE);
    context->pending = true;
    context->channel->destination = ref.shard;
    context->channel->opened_seq = ref.seq;
    if (row == NULL || row->cancel) /* Without a row that can be read it stays PENDING. */
        return ERR_OK;
    row->cancel = true;
    outbox_store(context, ref.shard, row);
    context->channel->cancelled_seq = ref.seq;
    context->channel->touched = true;
    return ERR_OK;
}

struct slice channel_answer_body(struct arena *arena, const Holdfast__Internal__V1__OutboxRow *row,
                                 const char *mail_id)
{
    struct slice response = { row->response.data, row->response.len };
    size_t size = strlen(mail_id);
    uint8_t *bytes = arena_alloc(arena, response.size + size + 2);

    CHECK(size < 0x80); /* Decisions without a mail id are not logged, nor applied. */
    if (response.size > 0)
        memcpy(bytes, response.data, response.size);
    bytes[response.size] = FIELD_MAIL_ID << 3 | 2;
    bytes[response.size + 1] = (uint8_t)size;
    memcpy(bytes + response.size + 2, mail_id, size);
    return (struct slice){ bytes, response.size + size + 2 };
}
