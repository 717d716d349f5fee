/* Decisions of other shards on their way into this one's log: those that no caller waits for are
 * kept for a moment, so that one entry logs those of many transfers. DESIGN section 7. */
#include "idl/method.h"
#include "node/core/apply/apply.h"
#include "node/core/channel/channel_out.h"
#include "node/core/codec/text_rule.h"
#include "node/core/handler/outcome_row.h"
#include "node/core/shard/shard_internal.h"
#include "runtime/base/check.h"

#define ENTRY_ITEMS_DUE 64u /* So many are logged at once, without waiting. */
#define ENTRY_BYTES_MAX (64u * 1024u)
#define PART_BYTES_MAX  (512u * 1024u) /* Of one delivery's decisions, in one entry. */
#define ITEM_FRAME_MAX  8u             /* Tag and length of a SettleItem. */
#define FIELD_MORE      4u             /* SettleRequest.more */
_Static_assert(2 * SETTLE_RESULT_BYTES_MAX <= PART_BYTES_MAX, "every decision fits a part");
_Static_assert(2 * PART_BYTES_MAX <= ENTRY_BODY_BYTES_MAX, "every part fits an entry");

typedef Holdfast__Internal__V1__SettleRequest settle_request;
typedef Holdfast__Internal__V1__SettleItem settle_item;

err shard_settles_log(struct shard *shard, const struct shard_event *event, uint64_t *ret_index,
                      struct shard_out *out)
{
    struct channel_settles *settles = &shard->lanes.settles;
    struct op op = { .method = METHOD_CHANNEL_SETTLE, .request = buf_slice(&settles->bytes) };

    CHECK(settles->items > 0);
    buf_clear(&shard->scratch);
    op_encode(&op, &shard->scratch);
    err e = shard_propose(shard, buf_slice(&shard->scratch), event, ret_index, out);
    if (e != ERR_OK)
        return e;
    channel_settles_clear(settles);
    settles->logged_index = *ret_index;
    return ERR_OK;
}

static bool part_add(struct shard *shard, const settle_request *request,
                     const struct shard_event *event, struct shard_out *out)
{
    struct channel_settles *settles = &shard->lanes.settles;
    size_t size = protobuf_c_message_get_packed_size(&request->base);
    uint64_t index;

    bool fits = settles->bytes.size + size <= ENTRY_BYTES_MAX &&
                settles->items + request->n_items <= SETTLE_ITEMS_MAX;
    if (settles->items > 0 && !fits && shard_settles_log(shard, event, &index, out) != ERR_OK)
        return false;
    if (settles->items == 0) {
        settles->due_ms = event->now_ms + shard->limits.settle_wait_ms;
    } else {
        buf_put_u8(&settles->bytes, FIELD_MORE << 3 | 2);
        buf_put_compact(&settles->bytes, size);
    }
    protobuf_c_message_pack(&request->base, buf_reserve(&settles->bytes, size + 1));
    settles->bytes.size += size;
    settles->items += (uint32_t)request->n_items;
    if (settles->items >= ENTRY_ITEMS_DUE)
        settles->due_ms = event->now_ms;
    return true;
}

/* How many of them one entry takes; one at least. */
static size_t part_count(settle_item *const *items, size_t count)
{
    size_t bytes = 0;
    size_t taken = 0;

    for (; taken < count; taken++) {
        bytes += protobuf_c_message_get_packed_size(&items[taken]->base) + ITEM_FRAME_MAX;
        if (taken > 0 && bytes > PART_BYTES_MAX)
            break;
    }
    return taken;
}

bool shard_settles_add(struct shard *shard, const settle_request *request,
                       const struct shard_event *event, struct shard_out *out)
{
    settle_request part = *request;

    if (request->n_items > SETTLE_ITEMS_MAX) /* A delivery has no more than that. */
        return false;
    for (size_t at = 0; at < request->n_items; at += part.n_items) {
        part.items = request->items + at;
        part.n_items = part_count(part.items, request->n_items - at);
        if (!part_add(shard, &part, event, out))
            return false;
    }
    return true;
}

void shard_settles_progress(struct shard *shard, const struct shard_event *event,
                            struct shard_out *out)
{
    struct channel_settles *settles = &shard->lanes.settles;
    uint64_t index;

    /* What the log has no room for stays, and is tried again. */
    if (settles->items > 0 && event->now_ms >= settles->due_ms)
        (void)!shard_settles_log(shard, event, &index, out);
}

bool shard_settles_arrived(const settle_item *item)
{
    return item->result->decision ==
               HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_APPLIED &&
           item->txn == NULL && !item->receipt && !item->finish;
}

err shard_settles_answer(struct shard *shard, uint32_t destination, const settle_item *item,
                         struct answer *ret_answer)
{
    struct state *state = applier_state(shard->applier);
    Holdfast__Internal__V1__OutboxRow *row = NULL;
    struct outcome_row stored;
    struct op_id id;
    const char *why;

    enum state_found found =
        outbox_find(state, &shard->arena, (struct channel_ref){ destination, item->result->seq },
                    &shard->need, &row);
    if (found == STATE_MISSING)
        return ERR_NEED;
    if (row == NULL || row->mail_return ||
        op_id_parse(slice_from_text(row->credit->op_id), &id, &why) != ERR_OK)
        return ERR_NOT_FOUND;
    found = outcome_row_find(state, entity_of_player(&shard->arena, row->player_id), &id,
                             &shard->need, &stored);
    if (found == STATE_MISSING)
        return ERR_NEED;
    if (found != STATE_PRESENT || stored.state != OUTCOME_ROW_PENDING)
        return ERR_NOT_FOUND;
    *ret_answer = (struct answer){
        .version = stored.version,
        .dot = stored.dot,
        .body = channel_answer_body(&shard->arena, row, item->result->mail_id),
        .method = stored.method,
        .shard = shard->number,
        .replicas_fsynced = rep_membership(shard->rep)->count / 2 + 1,
    };
    return ERR_OK;
}

/* The caller that waits for this transfer is told that it arrived: that is decided for ever, and
 * this shard's log need not say so first. False: someone waits on. */
static bool tell_arrived(struct shard *shard, uint32_t destination, const settle_item *item,
                         struct shard_out *out)
{
    struct answer answer;
    bool found = false;
    struct call *next;

    for (struct call *call = call_of_record(shard, destination, item->result->seq, NULL);
         call != NULL; call = next) {
        next = call_of_record(shard, destination, item->result->seq, call);
        if (call->method == METHOD_RESOLVE_OPERATION)
            return false;
        if (!found && shard_settles_answer(shard, destination, item, &answer) != ERR_OK)
            return false;
        found = true;
        answer.duplicate = !call->claimed;
        buf_clear(&shard->scratch);
        answer_encode(&answer, &shard->scratch);
        reply_bytes(shard, call, REPLY_OK, buf_slice(&shard->scratch), out);
    }
    return true;
}

void shard_settles_tell(struct shard *shard, const settle_request *request,
                        const struct shard_event *event, struct shard_out *out)
{
    bool wait = true;

    for (size_t i = 0; i < request->n_items; i++) {
        const settle_item *item = request->items[i];
        bool applied = item->result->decision ==
                       HOLDFAST__INTERNAL__V1__CHANNEL_DECISION__CHANNEL_DECISION_APPLIED;
        if (!applied || item->txn != NULL || item->receipt)
            wait = false; /* Goods come back, a transaction goes on, a receipt pays. */
        else if (!item->finish)
            wait &= tell_arrived(shard, request->destination, item, out);
    }
    if (!wait)
        shard->lanes.settles.due_ms = event->now_ms;
    shard_ask_rows(shard, out);
}
