#include "node/core/repair/channel_repair.h"

#include "node/core/channel/channel_row.h"
#include "node/core/handler/refusal.h"
#include "runtime/base/check.h"

#define LOOK_AHEAD 256u
#define PAGE_ROWS  1000u

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

bool channel_repair_sound(const struct row_key *key, const Holdfast__V1__ChannelEnd *other)
{
    bool outgoing;
    uint32_t shard;

    return channel_key_parse(key, &outgoing, &shard) && other != NULL &&
           other->last_seq <= CHANNEL_REPAIR_SEQ_MAX && other->watermark <= other->last_seq &&
           other->highest_record <= CHANNEL_REPAIR_SEQ_MAX;
}

struct span {
    struct arena *arena;
    struct slice last; /* Key. */
    uint64_t lowest, highest;
    uint32_t count;
};

static bool span_take(void *user, struct slice key, struct slice value)
{
    struct span *span = user;
    struct reader reader = reader_from(key);

    (void)value;
    (void)read_raw(&reader, 1 + sizeof(uint16_t));
    span->highest = read_u64_be(&reader);
    if (span->count++ == 0)
        span->lowest = span->highest;
    span->last = arena_copy(span->arena, key);
    return true;
}

err channel_rows_span(const struct record_look *look, bool outgoing, uint64_t *ret_lowest,
                      uint64_t *ret_highest)
{
    struct span span = { .arena = look->arena };
    struct row_key key;
    uint32_t before;

    if (outgoing)
        row_key_outbox(&key, look->other, 0);
    else
        row_key_inbox(&key, look->other, 0);
    const struct slice prefix = { key.bytes, 1 + sizeof(uint16_t) };
    span.last = prefix;
    do {
        const struct state_range range = { prefix, span.last, PAGE_ROWS };
        before = span.count;
        err e = state_range_visit(look->state, &range, look->need, span_take, &span);
        if (e != ERR_OK)
            return e;
    } while (span.count == before + PAGE_ROWS);
    *ret_lowest = span.lowest;
    *ret_highest = span.highest;
    return ERR_OK;
}

/* What was opened since the receiver decided last is open without a gap. ERR_NEED. */
static err last_find(struct apply_context *context, uint32_t destination, uint64_t decided,
                     uint64_t *ret_last)
{
    for (uint64_t last = decided;; last++) {
        enum state_found found =
            outbox_look(context->state, (struct channel_ref){ destination, last + 1 }, NULL);

        if (found == STATE_PRESENT)
            continue;
        *ret_last = last;
        if (found == STATE_ABSENT)
            return ERR_OK;
        for (uint64_t seq = last + 1; seq <= last + LOOK_AHEAD; seq++)
            (void)outbox_look(context->state, (struct channel_ref){ destination, seq },
                              context->need);
        return ERR_NEED;
    }
}

/* Neither end can be read: what has rows says where it stands. */
static err stands_find(struct apply_context *context, uint32_t destination,
                       const Holdfast__V1__ChannelEnd *other,
                       Holdfast__Internal__V1__ChannelOutRow *row)
{
    const struct record_look look = { .arena = context->arena,
                                      .state = context->state,
                                      .need = context->need,
                                      .shard = context->shard,
                                      .other = destination };
    uint64_t lowest, highest;

    err e = channel_rows_span(&look, true, &lowest, &highest);
    if (e != ERR_OK)
        return e;
    row->last_seq = highest > other->highest_record ? highest : other->highest_record;
    row->watermark = lowest > 0 ? lowest - 1 : row->last_seq;
    if (row->last_seq == 0)
        row->last_seq = row->watermark = context->owner_ms;
    if (row->last_seq <= CHANNEL_REPAIR_SEQ_MAX &&
        row->last_seq - row->watermark <= CHANNEL_REPAIR_SPAN_MAX)
        return ERR_OK;
    const char *field = "other_end.highest_record";
    const char *limit = "at most 1048576 above the lowest record that is open here";
    if (context->version < LETTERS_APPLY_VERSION) /* It had a sign. */
        return refuse_number(context->arena, context->refusal, field, limit,
                             (int64_t)other->highest_record);
    return refuse_unsigned(context->arena, context->refusal, field, limit, other->highest_record);
}

static err outgoing_repair(struct apply_context *context, uint32_t destination,
                           const Holdfast__V1__ChannelEnd *other, Holdfast__V1__ChannelEnd *now)
{
    Holdfast__Internal__V1__ChannelOutRow row = HOLDFAST__INTERNAL__V1__CHANNEL_OUT_ROW__INIT;
    bool lost = context->version >= RECORD_REPAIR_VERSION && other->unreadable;

    err e = lost ? stands_find(context, destination, other, &row)
                 : last_find(context, destination, other->last_seq, &row.last_seq);
    if (e != ERR_OK)
        return e;
    if (!lost)
        row.watermark = other->watermark;
    CHECK(lost || row.last_seq >= other->last_seq);
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

    CHECK(channel_key_parse(key, &outgoing, &shard) && channel_repair_sound(key, other));
    if (outgoing)
        return outgoing_repair(context, shard, other, ret_now);
    incoming_repair(context, shard, other, ret_now);
    return ERR_OK;
}
