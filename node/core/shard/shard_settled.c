/*
 * Reads of players that no transaction may hold (READ_SETTLED): what meets an intent waits here
 * until the entry that ends it is applied, or until shortly before its caller's deadline. Bounded:
 * reads_waiting_max. docs/transactions.md.
 */
#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "node/core/apply/apply.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/handler/refusal.h"
#include "node/core/rows/rows.h"
#include "node/core/shard/shard_internal.h"
#include "node/core/transaction/txn_row.h"
#include "runtime/base/check.h"

/* Of ReadSettledResponse. */
#define FIELD_HELD     4u
#define FIELD_MAY_HOLD 5u

typedef Holdfast__Internal__V1__ReadSettledRequest settled_request;

/* NULL: malformed, which the read itself reports. */
static const settled_request *request_of(struct shard *shard, const struct call *call,
                                         struct slice *ret_entity)
{
    const settled_request *request = (const settled_request *)arena_unpack(
        &shard->arena, &holdfast__internal__v1__read_settled_request__descriptor,
        buf_slice(&call->request));

    if (request == NULL || player_id_check(slice_from_text(request->player_id)) != ERR_OK)
        return NULL;
    *ret_entity = entity_of_player(&shard->arena, request->player_id);
    return request;
}

/* What was proposed before is to be seen by the read that new writes wait for: the next ones begin
 * when it is done. */
static void hold(struct shard *shard, struct call *call, const settled_request *request,
                 const struct read_ask *plain, uint64_t now_ms)
{
    struct read_ask ask = *plain;

    for (size_t i = 0; i < request->n_pass && i < READ_HOLD_PASS_MAX; i++)
        ask.pass[ask.pass_count++] = txn_ref_of(request->pass[i]);
    if (!read_holds_take(&shard->holds_of_reads, &ask, now_ms))
        return;
    call->index = rep_last_index(shard->rep);
}

void shard_settled_begin(struct shard *shard, struct call *call, const struct shard_event *event)
{
    struct slice entity;
    const settled_request *request = request_of(shard, call, &entity);

    if (request == NULL || request->reader == 0)
        return;
    const struct read_ask ask = { .entity = entity,
                                  .reader = request->reader,
                                  .urgent = request->urgent };
    if (request->release)
        read_holds_release(&shard->holds_of_reads, entity, request->reader, event->now_ms);
    else if (request->hold)
        hold(shard, call, request, &ask, event->now_ms);
}

/* The read is over, whatever came of it. */
void shard_settled_end(struct shard *shard, const struct call *call, uint64_t now_ms)
{
    struct slice entity;
    const settled_request *request = request_of(shard, call, &entity);

    if (request != NULL && request->reader != 0)
        read_holds_release(&shard->holds_of_reads, entity, request->reader, now_ms);
}

static void put_true(struct buf *out, uint32_t field)
{
    buf_put_u8(out, (uint8_t)(field << 3));
    buf_put_u8(out, 1);
}

void shard_settled_answer(struct shard *shard, struct call *call, const struct shard_event *event,
                          struct shard_out *out)
{
    const struct read_holds *holds = &shard->holds_of_reads;
    struct slice entity;
    const settled_request *request = request_of(shard, call, &entity);

    CHECK(request != NULL); /* It has been read. */
    if (request->reader != 0 && read_holds_held(holds, entity, request->reader, event->now_ms))
        put_true(&shard->scratch, FIELD_HELD);
    if (read_holds_may(holds, entity, request->urgent, event->now_ms))
        put_true(&shard->scratch, FIELD_MAY_HOLD);
    reply_bytes(shard, call, REPLY_OK, buf_slice(&shard->scratch), out);
}

void shard_settled_wait(struct shard *shard, struct call *call, const struct refusal *refusal,
                        struct shard_out *out)
{
    if (call->id == 0 || shard->calls[CALL_SETTLING].count >= shard->limits.reads_waiting_max) {
        shard->stats.reads_turned_away += call->id != 0;
        reply_refusal(shard, call, refusal, out);
        return;
    }
    shard->stats.reads_waited += call->answer.size == 0;
    buf_clear(&call->answer);
    refusal_encode(refusal, &call->answer);
    call_move(shard, call, CALL_SETTLING);
}

bool shard_settled_is_held(struct shard *shard, const struct call *call)
{
    struct slice entity, value;
    struct row_key key;

    if (request_of(shard, call, &entity) == NULL)
        return false;
    row_key_intent(&key, entity);
    return state_find(applier_state(shard->applier), row_key_slice(&key), &value) == STATE_PRESENT;
}
