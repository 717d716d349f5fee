/* What GetOperation is told of a transfer whose decision this shard has not logged: callers may
 * know more than the log does, and what they were told never goes back. DESIGN sections 6 and 7. */
#include <string.h>

#include "holdfast/internal/v1/operation.pb-c.h"
#include "holdfast/v1/operation_service.pb-c.h"
#include "idl/method.h"
#include "node/core/channel/channel_row.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/handler/outcome_row.h"
#include "node/core/shard/shard_internal.h"

typedef Holdfast__Internal__V1__SettleRequest settle_request;
typedef Holdfast__Internal__V1__OperationAnswer get_response;

/* The operation that a GetOperation asks for, and its row. */
struct asked {
    struct slice entity;
    const char *op_id;
    struct outcome_row row;
};

/* False: its row is not here, or says that it is decided. */
static bool find_pending(struct shard *shard, struct asked *asked)
{
    struct op_id id;
    const char *why;

    if (op_id_parse(slice_from_text(asked->op_id), &id, &why) != ERR_OK)
        return false;
    return outcome_row_find(applier_state(shard->applier), asked->entity, &id, &shard->need,
                            &asked->row) == STATE_PRESENT &&
           asked->row.state == OUTCOME_ROW_PENDING && asked->row.method != METHOD_START_SESSION;
}

/* Looks for it among those that arrived by this channel's decisions, taken and not logged.
 * ERR_NEED, ERR_NOT_FOUND. */
static err find_arrived(struct shard *shard, const settle_request *request,
                        const struct asked *asked, struct answer *ret_answer)
{
    for (size_t i = 0; i < request->n_items; i++) {
        const Holdfast__Internal__V1__SettleItem *item = request->items[i];
        if (strcmp(item->op_id, asked->op_id) != 0 || !shard_settles_arrived(item) ||
            !slice_equal(entity_of_player(&shard->arena, item->player_id), asked->entity))
            continue;
        return shard_settles_answer(shard, request->destination, item, ret_answer);
    }
    return ERR_NOT_FOUND;
}

static err find_unlogged(struct shard *shard, const struct asked *asked, struct answer *ret_answer)
{
    if (shard->lanes.settles.items == 0)
        return ERR_NOT_FOUND;
    const settle_request *kept = (const void *)arena_unpack(
        &shard->arena, &holdfast__internal__v1__settle_request__descriptor,
        buf_slice(&shard->lanes.settles.bytes));
    err e = kept != NULL ? find_arrived(shard, kept, asked, ret_answer) : ERR_NOT_FOUND;

    for (size_t i = 0; kept != NULL && e == ERR_NOT_FOUND && i < kept->n_more; i++)
        e = find_arrived(shard, kept->more[i], asked, ret_answer);
    return e;
}

static void tell_committed(struct shard *shard, const get_response *told, const struct asked *asked,
                           const struct answer *answer)
{
    get_response response = *told;
    struct outcome_row row = asked->row;
    const struct outcome_teller teller = { shard_meta(shard), shard->number, AS_OF_APPLY_VERSION };

    row.state = OUTCOME_ROW_COMMITTED;
    row.body = answer->body;
    response.operation = outcome_row_status(&row, &teller, &shard->arena);
    struct slice body = arena_pack(&shard->arena, &response.base);
    buf_clear(&shard->scratch);
    buf_append(&shard->scratch, body.data, body.size);
}

/* A caller of an owner before this one may have been told when the other shard had decided, before
 * this one's log said so. *ret_early: so it may be, and the other shard knows. ERR_NEED. */
static err find_told_early(struct shard *shard, const struct asked *asked, struct call *call,
                           bool *ret_early)
{
    Holdfast__Internal__V1__OutboxRow *row = NULL;
    struct channel_ref ref;

    *ret_early = false;
    if (asked->row.dot.epoch >= rep_epoch(shard->rep) || !shard_serves(shard) ||
        !channel_ref_decode(asked->row.body, &ref))
        return ERR_OK;
    call->destination = ref.shard;
    call->seq = ref.seq;
    if (outbox_find(applier_state(shard->applier), &shard->arena, ref, &shard->need, &row) ==
        STATE_MISSING)
        return ERR_NEED;
    *ret_early = row != NULL && row->credit->mail != NULL;
    return ERR_OK;
}

static bool is_pending(const Holdfast__Internal__V1__OperationRecord *status)
{
    return status != NULL &&
           status->state == HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_PENDING;
}

bool shard_operation_told(struct shard *shard, struct call *call, struct shard_out *out)
{
    const get_response *told = (const void *)arena_unpack(
        &shard->arena, &holdfast__internal__v1__operation_answer__descriptor,
        buf_slice(&shard->scratch));
    const Holdfast__V1__GetOperationRequest *request = (const void *)arena_unpack(
        &shard->arena, &holdfast__v1__get_operation_request__descriptor, buf_slice(&call->request));
    struct answer answer;
    struct asked asked;
    bool early = false;

    if (told == NULL || request == NULL || !is_pending(told->operation))
        return true;
    asked.entity = slice_from_text(request->entity);
    asked.op_id = request->op_id;
    if (!find_pending(shard, &asked))
        return true;
    err e = find_unlogged(shard, &asked, &answer);
    if (e == ERR_OK) {
        tell_committed(shard, told, &asked, &answer);
        return true;
    }
    if (e != ERR_NEED && call->round == 0)
        return true;
    if (e == ERR_NEED || find_told_early(shard, &asked, call, &early) == ERR_NEED) {
        shard_wait_rows(shard, call, CALL_LOADING, out);
        return false;
    }
    if (early)
        call_lag(shard, call, applier_applied_index(shard->applier) + 1);
    return !early;
}

bool shard_operation_waits(struct shard *shard, struct call *call, struct slice body)
{
    const Holdfast__Internal__V1__OperationAnswer *told = (const void *)arena_unpack(
        &shard->arena, &holdfast__internal__v1__operation_answer__descriptor, body);
    const Holdfast__V1__ResolveOperationRequest *request = NULL;
    struct asked asked;
    struct op op;
    bool early = false;

    if (told == NULL || !is_pending(told->operation) ||
        op_decode(buf_slice(&call->request), &op) != ERR_OK)
        return false;
    request = (const void *)arena_unpack(
        &shard->arena, &holdfast__v1__resolve_operation_request__descriptor, op.request);
    if (request == NULL)
        return false;
    asked.entity = op.entity;
    asked.op_id = request->op_id;
    return find_pending(shard, &asked) && find_told_early(shard, &asked, call, &early) == ERR_OK &&
           early;
}
