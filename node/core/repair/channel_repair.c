#include "node/core/repair/channel_repair.h"

#include "node/core/channel/channel_row.h"
#include "runtime/base/check.h"

#define LOOK_AHEAD 256u

bool channel_key_parse(const struct row_key *key, bool *ret_outgoing, uint32_t *ret_shard)
{
    struct row_key same;

    if (key->size < 4 || key->bytes[0] != TABLE_CHANNEL)
        return false;
    *ret_outgoing = key->bytes[1] == 'o';
    *ret_shard = (uint32_t)key->bytes[2] << 8 | key->bytes[3];
    row_key_channel(&same, *ret_outgoing, *ret_shard);
    return slice_equal(row_key_slice(&same), row_key_slice(key));
}

/* What was opened since the receiver decided last is open without a gap. ERR_NEED. */
static err last_find(struct apply_context *context, uint32_t destination, uint64_t decided,
                     uint64_t *ret_last)
{
    for (uint64_t last = decided;; last++) {
        enum state_found found = outbox_look(context->state, destination, last + 1, NULL);

        if (found == STATE_PRESENT)
            continue;
        *ret_last = last;
        if (found == STATE_ABSENT)
            return ERR_OK;
        for (uint64_t seq = last + 1; seq <= last + LOOK_AHEAD; seq++)
            (void)outbox_look(context->state, destination, seq, context->need);
        return ERR_NEED;
    }
}

static err outgoing_repair(struct apply_context *context, uint32_t destination,
                           const Holdfast__V1__ChannelEnd *other, Holdfast__V1__ChannelEnd *now)
{
    Holdfast__Internal__V1__ChannelOutRow row = HOLDFAST__INTERNAL__V1__CHANNEL_OUT_ROW__INIT;

    err e = last_find(context, destination, other->last_seq, &row.last_seq);
    if (e != ERR_OK)
        return e;
    row.watermark = other->watermark;
    CHECK(row.last_seq >= other->last_seq);
    channel_out_store(context, destination, &row);
    now->last_seq = row.last_seq;
    now->watermark = row.watermark;
    /* Answers that came meanwhile had no effect: all that is open is sent again. */
    context->channel->destination = destination;
    context->channel->cancelled_seq = row.watermark + 1;
    context->channel->touched = true;
    return ERR_OK;
}

/* Decisions that no one asks about any more; those further back stay, and do no harm. */
static void forget_decisions(struct apply_context *context, uint32_t source, uint64_t watermark)
{
    uint64_t count = watermark < CHANNEL_DROP_MAX ? watermark : CHANNEL_DROP_MAX;
    struct row_key key;

    for (uint64_t i = 0; i < count; i++) {
        row_key_inbox(&key, source, watermark - i);
        state_delete(context->state, row_key_slice(&key));
    }
}

static void incoming_repair(struct apply_context *context, uint32_t source,
                            const Holdfast__V1__ChannelEnd *other, Holdfast__V1__ChannelEnd *now)
{
    Holdfast__Internal__V1__ChannelInRow row = HOLDFAST__INTERNAL__V1__CHANNEL_IN_ROW__INIT;

    row.watermark = now->watermark = other->watermark;
    row.decided = now->last_seq = other->last_seq;
    forget_decisions(context, source, row.watermark);
    channel_in_store(context, source, &row);
}

err channel_repair(struct apply_context *context, const struct row_key *key,
                   const Holdfast__V1__ChannelEnd *other, Holdfast__V1__ChannelEnd *ret_now)
{
    bool outgoing;
    uint32_t shard;

    CHECK(channel_key_parse(key, &outgoing, &shard));
    CHECK(other->watermark <= other->last_seq);
    if (outgoing)
        return outgoing_repair(context, shard, other, ret_now);
    incoming_repair(context, shard, other, ret_now);
    return ERR_OK;
}
