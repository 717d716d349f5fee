/* AdminService.GetChannel: how far two shards are with what goes from one to the other. */
#include <string.h>

#include "holdfast/v1/admin.pb-c.h"
#include "tests/sim/oracle/answer.h"
#include "tests/sim/servers/workload.h"

/* op->player is the shard here. */
static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__GetChannelRequest request = HOLDFAST__V1__GET_CHANNEL_REQUEST__INIT;

    (void)parts;
    request.shard = op->player;
    request.other_shard = (op->player + 1 + op->twist % (sim->shard_count - 1)) % sim->shard_count;
    request.seq = op->twist / 8 % 3 > 0 ? 1 + op->twist / 32 % 12 : 0;
    request_pack(&request.base, out);
}

static uint64_t settled_until(const struct goods_book *book, uint32_t from, uint32_t to)
{
    uint64_t seq = 0;
    const struct transfer_model *t;

    while ((t = goods_record_find(book, from, to, seq + 1)) != NULL && t->settled)
        seq++;
    return seq;
}

static uint64_t decided_last(const struct goods_book *book, uint32_t from, uint32_t to)
{
    uint64_t seq = 0;

    for (uint32_t i = 0; i < book->transfer_count; i++) {
        const struct transfer_model *t = &book->transfers[i];
        if (t->source == from && t->destination == to && t->decision != UNDECIDED && t->seq > seq)
            seq = t->seq;
    }
    return seq;
}

static void check_sent(const struct told *t)
{
    const Holdfast__V1__GetChannelRequest *request = (const void *)t->request;
    const Holdfast__V1__GetChannelResponse *response = (const void *)t->response;
    const struct transfer_model *sent = goods_record_find(&t->sim->oracle->book, request->shard,
                                                          request->other_shard, request->seq);
    bool open = sent != NULL && !sent->settled;

    if (response->sent == NULL) {
        told_fail(t, "a record that was asked for is not told", request->seq, 0);
        return;
    }
    if (response->sent->seq != (open ? request->seq : 0)) {
        told_fail(t, "whether a record is on its way", response->sent->seq, open);
        return;
    }
    if (!open || sent->txn != 0 || sent->receipt != 0)
        return;
    if (response->sent->to_player_id[0] != 'p' ||
        model_player_of_id(response->sent->to_player_id) != sent->to)
        told_fail(t, "to whom a record goes", 0, sent->to);
}

/* As of the newest entry alone: the model keeps nothing of before. */
static void told(const struct told *t)
{
    const Holdfast__V1__GetChannelRequest *request = (const void *)t->request;
    const Holdfast__V1__GetChannelResponse *response = (const void *)t->response;
    const struct goods_book *book = &t->sim->oracle->book;
    uint32_t own = request->shard, other = request->other_shard;

    if (told_index(t) != t->shard->count)
        return;
    t->sim->counts.channels_told++;
    if (response->outgoing->last_seq != book->last_seq[own][other])
        told_fail(t, "the last record that was opened", response->outgoing->last_seq,
                  book->last_seq[own][other]);
    if (response->outgoing->watermark != settled_until(book, own, other))
        told_fail(t, "up to where all is settled", response->outgoing->watermark,
                  settled_until(book, own, other));
    if (response->incoming->last_seq != decided_last(book, other, own))
        told_fail(t, "the last record that was decided", response->incoming->last_seq,
                  decided_last(book, other, own));
    if (response->incoming->watermark != book->watermark[other][own])
        told_fail(t, "up to where nothing comes any more", response->incoming->watermark,
                  book->watermark[other][own]);
    if (request->seq > 0)
        check_sent(t);
}

const struct workload_row workload_get_channel = {
    .method = METHOD_GET_CHANNEL,
    .encode = encode,
    .rule = { .told = told },
};
