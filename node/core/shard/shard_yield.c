/*
 * Writes that wait for a moment, since reads of their players go first (read_hold.h): callers'
 * operations wait here; a PREPARE of another shard stays in its outbox and is sent again. Nothing
 * of them is in the log before. docs/transactions.md.
 */
#include <string.h>

#include "holdfast/internal/v1/transaction.pb-c.h"
#include "idl/method.h"
#include "node/core/apply/apply.h"
#include "node/core/channel/channel_row.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/shard/shard_internal.h"
#include "node/core/transaction/txn_row.h"
#include "runtime/base/check.h"

typedef Holdfast__Internal__V1__DeliverRequest deliver_request;
typedef Holdfast__Internal__V1__DeliverResponse deliver_response;
typedef Holdfast__Internal__V1__ChannelCredit channel_credit;
typedef Holdfast__Internal__V1__TxnPrepare txn_prepare;

/* ---- callers' operations ---- */

static bool stops(const struct shard *shard, struct slice entity, uint64_t now_ms)
{
    return read_holds_stop(&shard->holds_of_reads, entity, NULL, now_ms);
}

/* The other players of a transaction, those of other shards too: no one holds them here. */
static bool stops_others(struct shard *shard, const struct op *op, uint64_t now_ms)
{
    struct arena *arena = &shard->arena;

    if (op->method == METHOD_SWAP_GOODS) {
        const Holdfast__Internal__V1__SwapGoodsRequest *swap =
            (const Holdfast__Internal__V1__SwapGoodsRequest *)arena_unpack(
                arena, &holdfast__internal__v1__swap_goods_request__descriptor, op->request);
        CHECK(swap != NULL);
        return stops(shard, entity_of_player(arena, swap->other_player_id), now_ms);
    }
    if (op->method != METHOD_EXECUTE_TRANSACTION)
        return false;
    const Holdfast__V1__ExecuteTransactionRequest *execute =
        (const Holdfast__V1__ExecuteTransactionRequest *)arena_unpack(
            arena, &holdfast__v1__execute_transaction_request__descriptor, op->request);
    CHECK(execute != NULL);
    for (size_t i = 0; i < execute->n_others; i++) {
        if (stops(shard, entity_of_player(arena, execute->others[i]->player_id), now_ms))
            return true;
    }
    return false;
}

/* What a transaction would refuse, too; seals and releases pass both. */
static bool must_wait(struct shard *shard, struct slice body, uint64_t now_ms)
{
    struct op op;

    if (shard->holds_of_reads.active == 0)
        return false;
    CHECK(op_decode(body, &op) == ERR_OK);
    if ((method_find(op.method)->traits & METHOD_PASSES_READS) != 0 || op.entity.size == 0)
        return false;
    return stops(shard, op.entity, now_ms) || stops_others(shard, &op, now_ms);
}

/* It waits once, however many reads come one after the other. */
static bool has_waited(const struct shard *shard, const struct call *call, uint64_t now_ms)
{
    return now_ms >= call->since_ms + shard->limits.read_hold_ms ||
           now_ms + WAIT_ANSWER_EARLY_MS >= call->deadline_ms;
}

bool shard_yield_begin(struct shard *shard, const struct shard_event *event, struct slice body)
{
    if (event->now_ms + WAIT_ANSWER_EARLY_MS >= event->deadline_ms ||
        shard->calls[CALL_YIELDING].count >= shard->limits.writes_waiting_max ||
        !must_wait(shard, body, event->now_ms))
        return false;
    struct call *call = call_new(shard, event);
    shard_call_keep_body(call, body);
    call->since_ms = event->now_ms;
    call_move(shard, call, CALL_YIELDING);
    shard->stats.writes_yielded++;
    return true;
}

/* Some write may go on: reads let a player go, or the oldest has waited for its time. */
static bool is_time(struct shard *shard, const struct shard_event *event)
{
    const struct call *oldest = shard->calls[CALL_YIELDING].first;
    bool freed = shard->holds_ended != shard->holds_of_reads.ended;

    shard->holds_ended = shard->holds_of_reads.ended;
    return oldest != NULL &&
           (freed || event->type == SHARD_TICK || has_waited(shard, oldest, event->now_ms));
}

void shard_yield_progress(struct shard *shard, const struct shard_event *event,
                          struct shard_out *out)
{
    struct call *next;

    if (event->type == SHARD_TICK || shard->holds_of_reads.active > 0)
        read_holds_step(&shard->holds_of_reads, event->now_ms);
    if (is_time(shard, event)) {
        for (struct call *call = shard->calls[CALL_YIELDING].first; call != NULL; call = next) {
            next = call->next;
            if (has_waited(shard, call, event->now_ms) ||
                !must_wait(shard, buf_slice(&call->request), event->now_ms))
                (void)shard_call_propose(shard, call, event, out);
        }
    }
    struct call *oldest = shard->calls[CALL_YIELDING].first;
    shard->stats.oldest_write_ms = oldest != NULL ? event->now_ms - oldest->since_ms : 0;
}

/* ---- PREPAREs of other shards ---- */

/* It came in before: only the answer is wanted. */
static bool stands(struct shard *shard, struct slice entity, struct txn_ref ref)
{
    Holdfast__Internal__V1__TxnIntent *intent = NULL;

    return intent_find(applier_state(shard->applier), &shard->arena, entity, NULL, &intent) ==
               STATE_PRESENT &&
           intent != NULL && txn_ref_equal(txn_ref_of(intent->txn), ref);
}

static bool prepare_stops(struct shard *shard, const txn_prepare *prepare, uint64_t now_ms)
{
    if (prepare == NULL || prepare->txn == NULL)
        return false;
    struct txn_ref ref = txn_ref_of(prepare->txn);
    for (size_t i = 0; i < prepare->n_parts; i++) {
        if (player_id_check(slice_from_text(prepare->parts[i]->player_id)) != ERR_OK)
            return false; /* Refused by what comes next. */
        struct slice entity = entity_of_player(&shard->arena, prepare->parts[i]->player_id);
        if (read_holds_stop(&shard->holds_of_reads, entity, &ref, now_ms))
            return !stands(shard, entity, ref);
    }
    return false;
}

/* Takes the credits that must wait out of the request; notes each as its place and number. */
static void sort_out(struct shard *shard, deliver_request *request, uint64_t now_ms,
                     struct buf *ret_later)
{
    size_t kept = 0;

    for (size_t i = 0; i < request->n_credits; i++) {
        channel_credit *credit = request->credits[i];
        if (prepare_stops(shard, credit->prepare, now_ms)) {
            buf_put_u32(ret_later, (uint32_t)i);
            buf_put_u64(ret_later, credit->seq);
        } else {
            request->credits[kept++] = credit;
        }
    }
    request->n_credits = kept;
}

/* The results of those that were left out, in their places. */
static deliver_response *with_later(struct shard *shard, deliver_response *response,
                                    struct slice later)
{
    struct reader reader = reader_from(later);
    size_t count = later.size / (sizeof(uint32_t) + sizeof(uint64_t));
    size_t total = response->n_results + count;
    size_t from = 0;
    Holdfast__Internal__V1__ChannelResult **results =
        arena_messages(&shard->arena, &holdfast__internal__v1__channel_result__descriptor, total);

    response->later = arena_alloc(&shard->arena, sizeof *response->later * (count + 1));
    uint32_t place = read_u32(&reader);
    for (size_t i = 0; i < total; i++) {
        if (reader.bad || i != place) {
            CHECK(from < response->n_results);
            results[i] = response->results[from++];
            continue;
        }
        results[i]->seq = read_u64(&reader);
        response->later[response->n_later++] = results[i]->seq;
        place = read_u32(&reader);
    }
    CHECK(response->n_later == count);
    response->results = results;
    response->n_results = total;
    return response;
}

static void reply_packed(struct shard *shard, struct call *call, const deliver_response *response,
                         struct shard_out *out)
{
    reply_bytes(shard, call, REPLY_OK, arena_pack(&shard->arena, &response->base), out);
}

bool shard_yield_deliver(struct shard *shard, const struct shard_event *event,
                         struct slice *ret_request, struct buf *ret_later, struct shard_out *out)
{
    *ret_request = event->request;
    if (shard->holds_of_reads.active == 0 || event->method != METHOD_CHANNEL_DELIVER)
        return false;
    deliver_request *request = (deliver_request *)arena_unpack(
        &shard->arena, &holdfast__internal__v1__deliver_request__descriptor, event->request);
    if (request == NULL || request->n_credits > CHANNEL_BATCH_MAX)
        return false; /* Refused by what comes next. */
    sort_out(shard, request, event->now_ms, ret_later);
    if (ret_later->size == 0)
        return false;
    shard->stats.prepares_later += ret_later->size / (sizeof(uint32_t) + sizeof(uint64_t));
    if (request->n_credits + request->n_cancels > 0) {
        *ret_request = arena_pack(&shard->arena, &request->base);
        return false;
    }
    deliver_response response = HOLDFAST__INTERNAL__V1__DELIVER_RESPONSE__INIT;
    response.cut = shard_meta(shard)->cut_id;
    reply_packed(shard, call_new(shard, event), with_later(shard, &response, buf_slice(ret_later)),
                 out);
    return true;
}

void shard_yield_answer(struct shard *shard, struct call *call, struct slice body,
                        struct shard_out *out)
{
    deliver_response *response = (deliver_response *)arena_unpack(
        &shard->arena, &holdfast__internal__v1__deliver_response__descriptor, body);

    CHECK(response != NULL); /* As apply made it. */
    reply_packed(shard, call, with_later(shard, response, buf_slice(&call->answer)), out);
}
