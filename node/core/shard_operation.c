/* What GetOperation is told of a transfer whose decision this shard has not logged: callers may
 * know more than the log does, and what they were told never goes back. DESIGN sections 6 and 7. */
#include <string.h>

#include "holdfast/v1/operation.pb-c.h"
#include "idl/method.h"
#include "node/core/arena_proto.h"
#include "node/core/channel_row.h"
#include "node/core/outcome_row.h"
#include "node/core/shard_internal.h"
#include "node/core/text_rule.h"

typedef Holdfast__Internal__V1__SettleRequest settle_request;
typedef Holdfast__V1__GetOperationResponse get_response;

/* The operation that a GetOperation asks for, and its row. */
struct asked {
    struct slice entity;
    const char *op_id;
    struct outcome_row row;
};

/* False: its row is not here, or says that it is decided. */
static bool find_pending(struct shard *shard, const struct call *call, struct asked *asked)
{
    const Holdfast__V1__GetOperationRequest *request = (const void *)arena_unpack(
        &shard->arena, &holdfast__v1__get_operation_request__descriptor, buf_slice(&call->request));
    struct op_id id;
    const char *why;

    if (request == NULL || op_id_parse(slice_from_text(request->op_id), &id, &why) != ERR_OK)
        return false;
    asked->entity = slice_from_text(request->entity);
    asked->op_id = request->op_id;
    return outcome_row_find(applier_state(shard->applier), asked->entity, &id, &shard->need,
                            &asked->row) == STATE_PRESENT &&
           asked->row.state == OUTCOME_ROW_PENDING && asked->row.method != METHOD_START_SESSION;
}

/* Whether this channel's decisions, taken and not logged, have it among those that arrived. */
static bool find_arrived(struct shard *shard, const settle_request *request,
                         const struct asked *asked, struct outcome *ret_outcome)
{
    for (size_t i = 0; i < request->n_items; i++) {
        const Holdfast__Internal__V1__SettleItem *item = request->items[i];
        if (strcmp(item->op_id, asked->op_id) != 0 || !shard_settles_arrived(item) ||
            !slice_equal(entity_of_player(&shard->arena, item->player_id), asked->entity))
            continue;
        return shard_settles_outcome(shard, request->destination, item, ret_outcome);
    }
    return false;
}

static bool find_unlogged(struct shard *shard, const struct asked *asked,
                          struct outcome *ret_outcome)
{
    const settle_request *kept = (const void *)arena_unpack(
        &shard->arena, &holdfast__internal__v1__settle_request__descriptor,
        buf_slice(&shard->lanes.settles.bytes));
    bool found = kept != NULL && find_arrived(shard, kept, asked, ret_outcome);

    for (size_t i = 0; kept != NULL && !found && i < kept->n_more; i++)
        found = find_arrived(shard, kept->more[i], asked, ret_outcome);
    return found;
}

static void tell_committed(struct shard *shard, const get_response *told, const struct asked *asked,
                           const struct outcome *outcome)
{
    get_response response = *told;
    struct outcome_row row = asked->row;

    row.state = OUTCOME_ROW_COMMITTED;
    row.body = outcome->body;
    response.operation = outcome_row_status(&row, shard_meta(shard), &shard->arena);
    struct slice body = arena_pack(&shard->arena, &response.base);
    buf_clear(&shard->scratch);
    buf_append(&shard->scratch, body.data, body.size);
}

/* Its caller is told when the other shard has decided, before this one's log says so. ERR_NEED. */
static err find_told_early(struct shard *shard, const struct asked *asked, bool *ret_told)
{
    Holdfast__Internal__V1__OutboxRow *row = NULL;
    uint32_t destination;
    uint64_t seq;

    *ret_told = false;
    if (!channel_ref_decode(asked->row.body, &destination, &seq))
        return ERR_OK;
    if (outbox_find(applier_state(shard->applier), &shard->arena, destination, seq, &shard->need,
                    &row) == STATE_MISSING)
        return ERR_NEED;
    *ret_told = row != NULL && row->credit->mail != NULL;
    return ERR_OK;
}

bool shard_operation_told(struct shard *shard, struct call *call, struct shard_out *out)
{
    bool early;

    const get_response *told =
        (const void *)arena_unpack(&shard->arena, &holdfast__v1__get_operation_response__descriptor,
                                   buf_slice(&shard->scratch));
    struct asked asked;
    struct outcome outcome;

    if (told == NULL || told->operation == NULL ||
        told->operation->state != HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_PENDING ||
        !find_pending(shard, call, &asked))
        return true;
    if (shard->lanes.settles.items > 0 && find_unlogged(shard, &asked, &outcome)) {
        tell_committed(shard, told, &asked, &outcome);
        return true;
    }
    /* A caller of an owner before this one may have been told; the other shard knows. */
    bool of_another = asked.row.dot.epoch < rep_epoch(shard->rep);
    if (call->round == 0 || !of_another || !shard_serves(shard))
        return true;
    call->blocked = find_told_early(shard, &asked, &early) == ERR_NEED;
    if (call->blocked) {
        shard_ask_rows(shard, out);
        return false;
    }
    if (!early)
        return true;
    call->index = applier_applied_index(shard->applier) + 1;
    return false;
}
