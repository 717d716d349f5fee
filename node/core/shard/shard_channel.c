#include <stdlib.h>

#include "idl/method.h"
#include "node/core/apply/apply.h"
#include "node/core/channel/channel_out.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/proto_scan.h"
#include "node/core/codec/text_rule.h"
#include "node/core/delivery/channel_settle.h"
#include "node/core/rows/rows.h"
#include "node/core/shard/shard_internal.h"
#include "node/core/transaction/txn_home.h"
#include "runtime/base/check.h"

#define BATCH_BYTES_MAX     (256u * 1024u)
#define ITEM_BYTES_MAX      1280u
#define LOOKED_AT_MAX       4096u
#define SCAN_NEED_MAX       256u
#define LOST_MS             5000u
#define HELD_RETRY_MS       10000u /* A person has to do something first. */
#define TELL_AT             256u   /* A watermark that has moved so far leaves alone. */
#define LATER_MS            10u
#define OLDEST_EVERY_MS     200u
#define OUTBOX_PLAYER_FIELD 2u     /* OutboxRow.player_id */
#define REFUSAL_BYTES_MAX   65536u /* Of another shard, packed: it is stored as an outcome. */

typedef Holdfast__Internal__V1__DeliverRequest deliver_request;
typedef Holdfast__Internal__V1__DeliverResponse deliver_response;
typedef Holdfast__Internal__V1__SettleRequest settle_request;
typedef Holdfast__Internal__V1__SettleItem settle_item;
typedef Holdfast__Internal__V1__OutboxRow outbox_row;

/* ---- a batch is made from what is open and not on its way ---- */

struct batch {
    deliver_request deliver;
    settle_request settle; /* Items: those of credits, then those of cancels. */
    settle_item **cancelled;
    uint64_t last_seq, watermark, end; /* end: records up to here were looked at. */
    uint32_t records_max;
    size_t bytes;
    bool missing;
};

/* `records`: at most so many are looked at. */
static void batch_init(struct shard *shard, uint64_t records, struct batch *batch)
{
    size_t count = records < CHANNEL_BATCH_MAX ? (size_t)records : CHANNEL_BATCH_MAX;

    *batch = (struct batch){
        .deliver = HOLDFAST__INTERNAL__V1__DELIVER_REQUEST__INIT,
        .settle = HOLDFAST__INTERNAL__V1__SETTLE_REQUEST__INIT,
    };
    batch->deliver.source = shard->number;
    batch->deliver.cut = shard_meta(shard)->cut_id;
    batch->deliver.credits = arena_alloc(&shard->arena, sizeof *batch->deliver.credits * count);
    batch->deliver.cancels = arena_alloc(&shard->arena, sizeof *batch->deliver.cancels * count);
    batch->cancelled = arena_alloc(&shard->arena, sizeof(settle_item *) * count);
    batch->settle.items = arena_alloc(&shard->arena, sizeof(settle_item *) * 2 * count);
}

static settle_item *settle_item_of(struct arena *arena, const outbox_row *row)
{
    settle_item *item =
        (settle_item *)arena_message(arena, &holdfast__internal__v1__settle_item__descriptor);

    item->result = (Holdfast__Internal__V1__ChannelResult *)arena_message(
        arena, &holdfast__internal__v1__channel_result__descriptor);
    item->result->seq = row->credit->seq;
    item->player_id = row->player_id;
    item->op_id = row->credit->op_id;
    if (row->credit->prepare != NULL)
        item->txn = row->credit->prepare->txn;
    item->finish = row->finish;
    item->receipt = row->credit->receipt != NULL;
    return item;
}

/* Votes carry the items that they take; a cancel, too, is answered by a vote that was cast before.
 */
static size_t vote_bytes(const outbox_row *row)
{
    const Holdfast__Internal__V1__TxnPrepare *prepare = row->credit->prepare;
    size_t bytes = 0;

    for (size_t i = 0; prepare != NULL && i < prepare->n_parts; i++)
        bytes += prepare->parts[i]->n_take_uids * ITEM_BYTES_MAX;
    return bytes;
}

static void batch_add(struct arena *arena, struct batch *batch, outbox_row *row)
{
    settle_item *item = settle_item_of(arena, row);

    batch->bytes += vote_bytes(row);
    if (row->cancel) {
        batch->cancelled[batch->deliver.n_cancels] = item;
        batch->deliver.cancels[batch->deliver.n_cancels++] = row->credit->seq;
        return;
    }
    batch->settle.items[batch->settle.n_items++] = item;
    batch->deliver.credits[batch->deliver.n_credits++] = row->credit;
    batch->bytes += protobuf_c_message_get_packed_size(&row->credit->base);
}

static bool batch_is_full(const struct batch *batch)
{
    return batch->deliver.n_credits >= batch->records_max ||
           batch->deliver.n_cancels >= batch->records_max || batch->bytes >= BATCH_BYTES_MAX;
}

/* A record that is not sent: the player whose it is gets contained, if the row still tells. */
static void record_unreadable(struct shard *shard, uint32_t destination, uint64_t seq)
{
    struct row_key key;
    struct slice row, player;

    row_key_outbox(&key, destination, seq);
    if (state_find(applier_state(shard->applier), row_key_slice(&key), &row) != STATE_PRESENT ||
        !proto_scan_bytes(row, OUTBOX_PLAYER_FIELD, &player))
        return;
    char *text = arena_text(&shard->arena, player);
    if (player_id_check(slice_from_text(text)) == ERR_OK)
        applier_note_damage(shard->applier, entity_of_player(&shard->arena, text),
                            "a record of the outbox cannot be read");
}

/* ERR_NEED: rows are missing, and noted. */
static err batch_collect(struct shard *shard, const struct channel_lane *lane, struct batch *batch)
{
    struct state *state = applier_state(shard->applier);
    Holdfast__Internal__V1__ChannelOutRow *stands = NULL;
    outbox_row *row = NULL;

    enum state_found found =
        channel_out_find(state, &shard->arena, lane->destination, &shard->need, &stands);
    if (found == STATE_MISSING)
        return ERR_NEED;
    uint64_t last_seq = stands != NULL ? stands->last_seq : 0;
    uint64_t watermark = stands != NULL ? stands->watermark : 0;
    uint64_t from = lane->sent_to > watermark ? lane->sent_to : watermark;
    batch_init(shard, last_seq > from ? last_seq - from : 0, batch);
    batch->last_seq = last_seq;
    batch->watermark = watermark;
    batch->records_max = lane->batch_max;
    batch->end = from;
    for (uint32_t i = 0; i < LOOKED_AT_MAX && batch->end < batch->last_seq; i++) {
        if (batch_is_full(batch) || shard->need.key_count >= SCAN_NEED_MAX)
            break;
        found = outbox_find(state, &shard->arena,
                            (struct channel_ref){ lane->destination, batch->end + 1 }, &shard->need,
                            &row);
        if (found == STATE_PRESENT && row != NULL)
            batch_add(&shard->arena, batch, row);
        else if (found == STATE_PRESENT)
            record_unreadable(shard, lane->destination, batch->end + 1);
        batch->missing |= found == STATE_MISSING;
        batch->end++;
    }
    for (size_t i = 0; i < batch->deliver.n_cancels; i++)
        batch->settle.items[batch->settle.n_items++] = batch->cancelled[i];
    return batch->missing ? ERR_NEED : ERR_OK;
}

static void pack(const ProtobufCMessage *message, struct buf *out)
{
    size_t size = protobuf_c_message_get_packed_size(message);

    protobuf_c_message_pack(message, buf_reserve(out, size + 1));
    out->size += size;
}

static struct shard_delivery *delivery_add(struct shard_out *out)
{
    if (out->delivery_count == out->delivery_capacity) {
        out->delivery_capacity = out->delivery_capacity > 0 ? out->delivery_capacity * 2 : 8;
        out->deliveries =
            mem_realloc(out->deliveries, sizeof *out->deliveries * out->delivery_capacity);
    }
    struct shard_delivery *delivery = &out->deliveries[out->delivery_count++];
    *delivery = (struct shard_delivery){ .offset = (uint32_t)out->bytes.size };
    return delivery;
}

static void lane_send(struct shard *shard, struct channel_lane *lane, struct batch *batch,
                      const struct shard_event *event, struct shard_out *out)
{
    struct shard_delivery *delivery = delivery_add(out);

    lane->token = channel_lanes_token(&shard->lanes, lane);
    lane->lost_ms = event->now_ms + LOST_MS;
    lane->sent_to = batch->end;
    lane->idle = batch->end == batch->last_seq;
    lane->telling = false;
    lane->records = (uint32_t)batch->settle.n_items;
    batch->deliver.shard = lane->destination;
    batch->deliver.watermark = batch->watermark;
    batch->settle.destination = lane->destination;
    buf_clear(&lane->settle);
    pack(&batch->settle.base, &lane->settle);
    pack(&batch->deliver.base, &out->bytes);
    delivery->token = lane->token;
    delivery->destination = lane->destination;
    delivery->size = (uint32_t)out->bytes.size - delivery->offset;
    shard->stats.transfers_sent += lane->records;
}

static bool must_tell(const struct channel_lane *lane, const struct batch *batch, uint64_t now_ms)
{
    return batch->watermark > lane->told &&
           (batch->watermark - lane->told >= TELL_AT || now_ms >= lane->tell_ms);
}

static void lane_step(struct shard *shard, struct channel_lane *lane,
                      const struct shard_event *event, struct shard_out *out)
{
    struct batch batch;

    if (lane->token != 0 && event->now_ms < lane->lost_ms)
        return;
    if (lane->token != 0) {
        channel_lane_answered(lane, false);
        channel_lane_fail(&shard->lanes, lane, event->now_ms);
    }
    if (lane->held_ms != 0 && event->now_ms >= lane->held_ms) {
        lane->held_ms = 0;
        lane->sent_to = 0; /* All that is open is sent again. */
        lane->idle = lane->telling = false;
    }
    if (lane->idle || event->now_ms < lane->retry_ms ||
        (lane->telling && event->now_ms < lane->tell_ms) ||
        (lane->blocked && event->type != SHARD_ROWS))
        return;
    bool blocked = batch_collect(shard, lane, &batch) == ERR_NEED;
    channel_lane_set_blocked(&shard->lanes, lane, blocked);
    if (blocked) {
        shard_ask_rows(shard, out);
        return;
    }
    if (batch.settle.n_items > 0 || must_tell(lane, &batch, event->now_ms)) {
        lane_send(shard, lane, &batch, event, out);
        return;
    }
    lane->sent_to = batch.end;
    lane->telling = batch.end == batch.last_seq;
    lane->idle = lane->telling && batch.watermark <= lane->told;
}

/* What only time changes is looked at with the ticks. */
static void lanes_step(struct shard *shard, const struct shard_event *event, struct shard_out *out)
{
    struct channel_lanes *lanes = &shard->lanes;
    bool all = event->type == SHARD_TICK || (event->type == SHARD_ROWS && lanes->blocked > 0);
    struct channel_lane *lane;

    for (uint32_t i = 0; all && i < lanes->count; i++)
        lane_step(shard, &lanes->list[i], event, out);
    while ((lane = channel_lanes_take_woken(lanes)) != NULL)
        lane_step(shard, lane, event, out);
}

/* ---- a new owner looks at every channel there may be ---- */

static void scan(struct shard *shard, const struct shard_event *event, struct shard_out *out)
{
    struct channel_lanes *lanes = &shard->lanes;
    Holdfast__Internal__V1__ChannelOutRow *stands = NULL;

    if (lanes->scan_blocked && event->type != SHARD_ROWS)
        return;
    lanes->scan_blocked = false;
    for (uint32_t at = lanes->scanned; at < shard->limits.shard_count; at++) {
        if (shard->need.key_count >= SCAN_NEED_MAX)
            break;
        enum state_found found = channel_out_find(applier_state(shard->applier), &shard->arena, at,
                                                  &shard->need, &stands);
        lanes->scan_blocked |= found == STATE_MISSING;
        if (found == STATE_PRESENT)
            (void)channel_lanes_get(lanes, at);
        if (!lanes->scan_blocked)
            lanes->scanned = at + 1;
    }
    if (lanes->scan_blocked)
        shard_ask_rows(shard, out);
}

/* ---- what is open, for operators ---- */

static void oldest_find(struct shard *shard, const struct shard_event *event)
{
    struct channel_lanes *lanes = &shard->lanes;
    struct state *state = applier_state(shard->applier);
    uint64_t opened_ms = event->unix_ms;

    if (event->now_ms < lanes->oldest_due_ms)
        return;
    lanes->oldest_due_ms = event->now_ms + OLDEST_EVERY_MS;
    for (uint32_t i = 0; i < lanes->count && shard_meta(shard)->outbox_open > 0; i++) {
        Holdfast__Internal__V1__ChannelOutRow *stands = NULL;
        outbox_row *row = NULL;
        uint32_t destination = lanes->list[i].destination;
        (void)channel_out_find(state, &shard->arena, destination, NULL, &stands);
        if (stands == NULL)
            continue;
        /* The first above the watermark is open, or it would have moved on. */
        if (stands->last_seq > stands->watermark &&
            outbox_find(state, &shard->arena,
                        (struct channel_ref){ destination, stands->watermark + 1 }, NULL,
                        &row) == STATE_PRESENT &&
            row != NULL && row->opened_at_ms < opened_ms)
            opened_ms = row->opened_at_ms;
    }
    lanes->oldest_ms = event->unix_ms - opened_ms;
}

void shard_channel_progress(struct shard *shard, const struct shard_event *event,
                            struct shard_out *out)
{
    struct channel_lanes *lanes = &shard->lanes;

    if (!shard_serves(shard) || shard->limits.shard_count < 2)
        return;
    if (shard_meta(shard)->use.kind == USE_RESTORING) {
        channel_lanes_clear(lanes); /* Its outbox is looked at once it is whole. */
        return;
    }
    if (lanes->scanned < shard->limits.shard_count)
        scan(shard, event, out);
    if (!lanes->wanted && event->type != SHARD_TICK && event->type != SHARD_ROWS)
        return;
    shard_settles_progress(shard, event, out);
    lanes->wanted = false;
    lanes_step(shard, event, out);
    if (event->type == SHARD_TICK)
        oldest_find(shard, event);
}

/* ---- answers come back ---- */

/* What is logged is applied by every replica: only what the destination's rules could have said. */
static bool result_is_sound(const settle_item *item,
                            const Holdfast__Internal__V1__ChannelResult *result)
{
    uint8_t mail_id[ITEM_UID_BYTES];

    if (protobuf_c_message_get_packed_size(&result->base) > SETTLE_RESULT_BYTES_MAX)
        return false;
    switch (result->decision) {
    case HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_APPLIED:
        if (item->txn != NULL)
            return txn_vote_is_sound(result->vote);
        return item->finish || item->receipt ||
               item_uid_parse(slice_from_text(result->mail_id), mail_id) == ERR_OK;
    case HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_REJECTED:
        return result->refusal != NULL && !item->finish &&
               protobuf_c_message_get_packed_size(&result->refusal->base) <= REFUSAL_BYTES_MAX;
    case HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_CANCELLED:
        return !item->finish;
    default:
        return true;
    }
}

/* What makes no sense holds up its own record, and operators are told. */
static void hold_unsound(struct shard *shard, settle_item *item, const struct shard_event *event,
                         struct shard_out *out)
{
    struct damage damage = { .found = true };

    item->result->decision = HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_HELD;
    text_copy(damage.reason, sizeof damage.reason,
              SLICE_LITERAL("another shard answered a record with what cannot be logged"));
    incident_unreadable(shard, &damage, event, out);
}

/* Puts the decisions where they belong. False: the answer is to another question, or none. */
static bool results_fill(struct shard *shard, settle_request *settle,
                         const deliver_response *response, const struct shard_event *event,
                         struct shard_out *out)
{
    if (settle->n_items != response->n_results)
        return false;
    for (size_t i = 0; i < settle->n_items; i++) {
        settle_item *item = settle->items[i];
        if (item->result->seq != response->results[i]->seq)
            return false;
        if (result_is_sound(item, response->results[i]))
            item->result = response->results[i];
        else
            hold_unsound(shard, item, event, out);
    }
    settle->cut = response->cut;
    return true;
}

static bool is_later(const deliver_response *response, uint64_t seq)
{
    for (size_t i = 0; i < response->n_later; i++) {
        if (response->later[i] == seq)
            return true;
    }
    return false;
}

/* Takes out what the destination has not decided yet, since reads go first. The first record that
 * is to be sent again; 0: none. */
static uint64_t later_take_out(settle_request *settle, const deliver_response *response)
{
    uint64_t first = 0;
    size_t kept = 0;

    for (size_t i = 0; i < settle->n_items && response->n_later > 0; i++) {
        const Holdfast__Internal__V1__ChannelResult *result = settle->items[i]->result;
        if (channel_result_decides(result) || !is_later(response, result->seq)) {
            settle->items[kept++] = settle->items[i];
            continue;
        }
        if (first == 0 || result->seq < first)
            first = result->seq;
    }
    if (response->n_later > 0)
        settle->n_items = kept;
    return first;
}

/* What comes meanwhile puts nothing off. */
static void hold_lane(struct channel_lane *lane, const struct shard_event *event)
{
    if (lane->held_ms == 0)
        lane->held_ms = event->now_ms + HELD_RETRY_MS;
}

/* Has what was decided logged. False: nothing is, or not all. */
static bool settle_take(struct shard *shard, struct channel_lane *lane,
                        const deliver_response *response, const struct shard_event *event,
                        struct shard_out *out)
{
    settle_request *settle = (settle_request *)arena_unpack(
        &shard->arena, &holdfast__internal__v1__settle_request__descriptor,
        buf_slice(&lane->settle));
    bool all = true;

    CHECK(settle != NULL);
    if (!results_fill(shard, settle, response, event, out))
        return false;
    lane->again_seq = later_take_out(settle, response);
    if (response->watermark > lane->told)
        lane->told = response->watermark;
    for (size_t i = 0; i < settle->n_items; i++) {
        bool held = settle->items[i]->result->decision ==
                    HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_HELD;
        all &= held || channel_result_decides(settle->items[i]->result);
        if (held)
            hold_lane(lane, event);
    }
    if (settle->n_items == 0)
        return true;
    if (!shard_settles_add(shard, settle, event, out))
        return false;
    shard_settles_tell(shard, settle, event, out);
    return all;
}

void shard_channel_delivered(struct shard *shard, const struct shard_event *event,
                             struct shard_out *out)
{
    struct channel_lane *lane = channel_lanes_find_token(&shard->lanes, event->call);
    deliver_response *response = NULL;

    if (lane == NULL)
        return;
    shard->lanes.wanted = true;
    lane->token = 0;
    if (event->status == REPLY_OK)
        response = (deliver_response *)arena_unpack(
            &shard->arena, &holdfast__internal__v1__deliver_response__descriptor, event->request);
    channel_lane_answered(lane, response != NULL);
    if (response == NULL || !settle_take(shard, lane, response, event, out)) {
        channel_lane_fail(&shard->lanes, lane, event->now_ms);
        return;
    }
    lane->failures = 0;
    if (lane->again_seq != 0)
        channel_lane_again(&shard->lanes, lane, event->now_ms + LATER_MS);
    else if (lane->idle) /* It took all there was, and nothing was opened since. */
        channel_lane_tell(lane, event->now_ms + shard->limits.watermark_tell_ms);
    else
        channel_lane_wake(&shard->lanes, lane);
}

/* ---- entries about the channel were applied ---- */

static void answer_settled(struct shard *shard, struct call *call, const struct settled *settled,
                           struct shard_out *out)
{
    const struct answer answer = {
        .method = settled->method,
        .shard = shard->number,
        .duplicate = !call->claimed,
        .version = settled->version,
        .dot = settled->dot,
        .body = settled->body,
        .replicas_fsynced = rep_membership(shard->rep)->count / 2 + 1,
    };

    if (settled->refused) {
        reply_bytes(shard, call, REPLY_REFUSED, settled->body, out);
        return;
    }
    buf_clear(&shard->scratch);
    answer_encode(&answer, &shard->scratch);
    reply_bytes(shard, call, REPLY_OK, buf_slice(&shard->scratch), out);
}

static void wake_record(struct shard *shard, const struct settled *settled,
                        const struct shard_event *event, struct shard_out *out)
{
    struct call *next;

    for (struct call *call = call_of_record(shard, settled->destination, settled->seq, NULL);
         call != NULL; call = next) {
        next = call_of_record(shard, settled->destination, settled->seq, call);
        if (call->method == METHOD_RESOLVE_OPERATION)
            (void)shard_call_propose(shard, call, event, out); /* Asks again: it is decided now. */
        else
            answer_settled(shard, call, settled, out);
    }
}

static void wake_sending(struct shard *shard, const struct channel_effect *effect,
                         const struct shard_event *event, struct shard_out *out)
{
    for (uint32_t i = 0; i < effect->settled_count; i++)
        wake_record(shard, &effect->settled[i], event, out);
}

/* A record is to be cancelled, and somebody waits for what becomes of it. */
static void resend_from(struct shard *shard, uint32_t destination, uint64_t seq,
                        const struct shard_event *event)
{
    struct channel_lane *lane = channel_lanes_get(&shard->lanes, destination);

    if (lane->sent_to >= seq)
        lane->sent_to = seq - 1;
    channel_lane_wake(&shard->lanes, lane);
    shard->lanes.settles.due_ms = event->now_ms;
}

/* A decision waits for a row to be repaired here. */
static void hold_channel(struct shard *shard, uint32_t destination, const struct shard_event *event)
{
    if (destination < shard->limits.shard_count)
        hold_lane(channel_lanes_get(&shard->lanes, destination), event);
}

void shard_channel_follow(struct shard *shard, const struct outcome *outcome,
                          const struct shard_event *event, struct shard_out *out)
{
    const struct channel_effect *effect = &outcome->channel;

    if (!shard_serves(shard))
        return;
    for (uint32_t i = 0; i < effect->settled_count; i++) {
        shard->stats.transfers_settled += !effect->settled[i].refused;
        shard->stats.transfers_refunded +=
            effect->settled[i].refused && !effect->settled[i].receipt;
    }
    wake_sending(shard, effect, event, out);
    if (effect->cancelled_seq != 0)
        resend_from(shard, effect->destination, effect->cancelled_seq, event);
    for (uint32_t i = 0; i < effect->left_count; i++)
        hold_channel(shard, effect->left[i], event);
    for (uint32_t i = 0; i < effect->opened_count; i++)
        channel_lane_wake(&shard->lanes, channel_lanes_get(&shard->lanes, effect->opened[i]));
    if (outcome->method == METHOD_CHANNEL_SETTLE)
        channel_lanes_settled(&shard->lanes, event->now_ms + shard->limits.watermark_tell_ms);
    if (effect->several)
        channel_lanes_look_again(&shard->lanes);
    shard->lanes.wanted = true;
}
