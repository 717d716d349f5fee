#include "node/core/channel/channel_row.h"

#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/goods/goods_sound.h"
#include "node/core/goods/mailbox.h"
#include "node/core/rows/rows.h"

#define CHANNEL_REF_BYTES 12u

Holdfast__Internal__V1__ChannelOutRow *channel_out_decode(struct arena *arena, struct slice value)
{
    Holdfast__Internal__V1__ChannelOutRow *row =
        (void *)arena_unpack(arena, &holdfast__internal__v1__channel_out_row__descriptor, value);

    if (row == NULL || row->watermark > row->last_seq ||
        row->last_seq - row->watermark > CHANNEL_SPAN_MAX)
        return NULL;
    return row;
}

Holdfast__Internal__V1__ChannelInRow *channel_in_decode(struct arena *arena, struct slice value)
{
    return (void *)arena_unpack(arena, &holdfast__internal__v1__channel_in_row__descriptor, value);
}

enum state_found channel_out_find(struct state *state, struct arena *arena, uint32_t destination,
                                  struct need *need, Holdfast__Internal__V1__ChannelOutRow **ret)
{
    struct row_key key;
    struct slice value;

    row_key_channel(&key, true, destination);
    enum state_found found = row_find(state, &key, need, &value);
    *ret = found == STATE_PRESENT ? channel_out_decode(arena, value) : NULL;
    return found;
}

enum state_found channel_in_find(struct state *state, struct arena *arena, uint32_t source,
                                 struct need *need, Holdfast__Internal__V1__ChannelInRow **ret)
{
    struct row_key key;
    struct slice value;

    row_key_channel(&key, false, source);
    enum state_found found = row_find(state, &key, need, &value);
    *ret = found == STATE_PRESENT ? channel_in_decode(arena, value) : NULL;
    return found;
}

/* What is relied on when it is settled. */
static bool operation_is_sound(const Holdfast__Internal__V1__OutboxRow *row)
{
    const Holdfast__Internal__V1__ChannelCredit *credit = row->credit;
    struct op_id id;
    const char *why;
    struct op op;

    if (credit->receipt != NULL)
        return op_decode((struct slice){ row->operation.data, row->operation.len }, &op) ==
                   ERR_OK &&
               op.entity.size > 0 && op.id.text.size > 0;
    return row->mail_return || op_id_parse(slice_from_text(credit->op_id), &id, &why) == ERR_OK;
}

static bool outbox_row_is_sound(const Holdfast__Internal__V1__OutboxRow *row, uint64_t seq)
{
    const Holdfast__Internal__V1__ChannelCredit *credit = row->credit;

    if (credit == NULL || credit->seq != seq)
        return false;
    int kinds = (credit->mail != NULL) + (credit->prepare != NULL) + (credit->finish != NULL) +
                (credit->receipt != NULL);
    if (kinds != 1 || (credit->mail != NULL && !mail_is_sound(credit->mail)) ||
        (credit->mail != NULL && !goods_text_is_sound(credit->to_player_id)) ||
        (credit->prepare != NULL &&
         (credit->prepare->txn == NULL ||
          player_id_check(slice_from_text(credit->prepare->player_id)) != ERR_OK)) ||
        (credit->finish != NULL && credit->finish->txn == NULL))
        return false;
    return player_id_check(slice_from_text(row->player_id)) == ERR_OK &&
           goods_text_is_sound(row->authority) && operation_is_sound(row);
}

Holdfast__Internal__V1__OutboxRow *outbox_decode(struct arena *arena, struct slice value,
                                                 uint64_t seq)
{
    Holdfast__Internal__V1__OutboxRow *row =
        (void *)arena_unpack(arena, &holdfast__internal__v1__outbox_row__descriptor, value);

    return row != NULL && outbox_row_is_sound(row, seq) ? row : NULL;
}

Holdfast__Internal__V1__InboxRow *inbox_decode(struct arena *arena, struct slice value)
{
    Holdfast__Internal__V1__InboxRow *row =
        (void *)arena_unpack(arena, &holdfast__internal__v1__inbox_row__descriptor, value);

    return row != NULL && row->result != NULL ? row : NULL;
}

enum state_found outbox_find(struct state *state, struct arena *arena, struct channel_ref ref,
                             struct need *need, Holdfast__Internal__V1__OutboxRow **ret)
{
    struct row_key key;
    struct slice value;

    row_key_outbox(&key, ref.shard, ref.seq);
    enum state_found found = row_find(state, &key, need, &value);
    *ret = found == STATE_PRESENT ? outbox_decode(arena, value, ref.seq) : NULL;
    return found;
}

enum state_found outbox_look(struct state *state, struct channel_ref ref, struct need *need)
{
    struct row_key key;
    struct slice value;

    row_key_outbox(&key, ref.shard, ref.seq);
    return row_find(state, &key, need, &value);
}

enum state_found inbox_find(struct state *state, struct arena *arena, struct channel_ref ref,
                            struct need *need, Holdfast__Internal__V1__InboxRow **ret)
{
    struct row_key key;
    struct slice value;

    row_key_inbox(&key, ref.shard, ref.seq);
    enum state_found found = row_find(state, &key, need, &value);
    *ret = found == STATE_PRESENT ? inbox_decode(arena, value) : NULL;
    return found;
}

err channel_damaged(struct apply_context *context, bool outgoing, uint32_t shard)
{
    return apply_damaged(context, (struct slice){ 0 },
                         arena_printf(context->arena,
                                      "the row of the channel %s shard %u cannot "
                                      "be read",
                                      outgoing ? "to" : "from", shard));
}

static void store(struct apply_context *context, const struct row_key *key,
                  const ProtobufCMessage *message)
{
    state_put(context->state, row_key_slice(key), arena_pack(context->arena, message));
}

void channel_out_store(struct apply_context *context, uint32_t destination,
                       const Holdfast__Internal__V1__ChannelOutRow *row)
{
    struct row_key key;
    row_key_channel(&key, true, destination);
    store(context, &key, &row->base);
}

void channel_in_store(struct apply_context *context, uint32_t source,
                      const Holdfast__Internal__V1__ChannelInRow *row)
{
    struct row_key key;
    row_key_channel(&key, false, source);
    store(context, &key, &row->base);
}

void outbox_add(struct apply_context *context, uint32_t destination,
                const Holdfast__Internal__V1__OutboxRow *row)
{
    struct row_key key;

    row_key_outbox(&key, destination, row->credit->seq);
    state_put_new(context->state, row_key_slice(&key), arena_pack(context->arena, &row->base));
}

void outbox_store(struct apply_context *context, uint32_t destination,
                  const Holdfast__Internal__V1__OutboxRow *row)
{
    struct row_key key;
    row_key_outbox(&key, destination, row->credit->seq);
    store(context, &key, &row->base);
}

void inbox_add(struct apply_context *context, uint32_t source,
               const Holdfast__Internal__V1__InboxRow *row)
{
    struct row_key key;

    row_key_inbox(&key, source, row->result->seq);
    state_put_new(context->state, row_key_slice(&key), arena_pack(context->arena, &row->base));
}

void inbox_store(struct apply_context *context, uint32_t source,
                 const Holdfast__Internal__V1__InboxRow *row)
{
    struct row_key key;
    row_key_inbox(&key, source, row->result->seq);
    store(context, &key, &row->base);
}

struct slice channel_ref_encode(struct arena *arena, struct channel_ref ref)
{
    uint8_t *bytes = arena_alloc(arena, CHANNEL_REF_BYTES);

    store_u32(bytes, ref.shard);
    store_u64(bytes + 4, ref.seq);
    return (struct slice){ bytes, CHANNEL_REF_BYTES };
}

bool channel_ref_decode(struct slice body, struct channel_ref *ret_ref)
{
    if (body.size != CHANNEL_REF_BYTES || load_u32(body.data) > UINT16_MAX)
        return false;
    *ret_ref = (struct channel_ref){ load_u32(body.data), load_u64(body.data + 4) };
    return true;
}
