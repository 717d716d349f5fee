#include <string.h>

#include "holdfast/v1/operation_service.pb-c.h"
#include "idl/method.h"
#include "node/core/channel/channel_out.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/handler/operation_floor.h"
#include "node/core/handler/refusal.h"
#include "node/core/receipt/receipt.h"
#include "node/core/rows/rows.h"
#include "node/core/session/session_apply.h"
#include "node/core/transaction/txn_home.h"
#include "node/rpc/methods.h"
#include "runtime/base/check.h"

static struct op_id target_of(const ProtobufCMessage *message)
{
    const Holdfast__V1__ResolveOperationRequest *request =
        (const Holdfast__V1__ResolveOperationRequest *)message;
    struct op_id id;
    const char *why;

    CHECK(op_id_parse(slice_from_text(request->op_id), &id, &why) == ERR_OK);
    return id;
}

static void operation_resolve_operation_footprint(const struct op *op,
                                                  const ProtobufCMessage *message,
                                                  struct need *keys)
{
    struct op_id id = target_of(message);
    struct row_key key;

    row_key_operation(&key, op->entity, &id);
    need_add_key(keys, row_key_slice(&key));
}

/* The caller that waits for the steal learns that it never will be. */
static void tell_aborted(struct apply_context *context, const struct op_id *id)
{
    struct refusal refusal;

    (void)refuse(context->arena, &refusal, CODE(OPERATION_ABORTED), "op_id",
                 "the operation was sealed before it was carried out; it never will be");
    refusal.final = true;
    *context->decided = (struct decided){
        .op_id = id->text,
        .refused = true,
        .body = refusal_pack(&refusal, context->arena),
        .version = context->player->version,
    };
}

/* True: the claim of this operation stood and is gone. */
static bool cancel_claim(struct apply_context *context, const struct op_id *id)
{
    const struct session *session = &context->player->session;

    if (!session_has_claim(session) || !slice_equal(session->claim.op_id, id->text))
        return false;
    claim_clear(context);
    tell_aborted(context, id);
    return true;
}

/* Poisons the id: whatever is still on its way finds the highest attempt stored. */
static void seal(struct apply_context *context, const struct op_id *id, bool is_new,
                 struct outcome_row *row)
{
    if (row->state == OUTCOME_ROW_COMMITTED || row->attempt == UINT32_MAX)
        return;
    /* Without a claim the player's row was damaged, and repaired: nothing is left to cancel. */
    if (row->state == OUTCOME_ROW_PENDING && !cancel_claim(context, id))
        tell_aborted(context, id);
    if (row->state != OUTCOME_ROW_REFUSED) {
        row->state = OUTCOME_ROW_ABORTED;
        row->dot = context->dot;
        row->version = context->player->version;
        row->decided_at_ms = context->owner_ms;
        row->body = (struct slice){ 0 };
    }
    row->attempt = UINT32_MAX;
    if (id->is_key && context->version >= KEYS_APPLY_VERSION)
        row->decided_at_ms = context->owner_ms; /* The seal stands its full time. */
    outcome_row_store(context, id, is_new, row);
}

/* Of the receipt itself, whichever player it pays. */
static err resolve_receipt(struct apply_context *context, bool seal_it,
                           Holdfast__Internal__V1__OperationRecord *status)
{
    err e = seal_it ? receipt_seal(context, context->op->entity) : ERR_OK;

    if (e == ERR_OK)
        e = receipt_status(context->state, context->arena, context->need, context->op->entity,
                           status);
    return e == ERR_CORRUPT ? apply_damaged(context, context->op->entity, RECEIPT_DAMAGE) : e;
}

static err operation_resolve_operation_handle(struct apply_context *context,
                                              const ProtobufCMessage *message,
                                              ProtobufCMessage *reply)
{
    const Holdfast__V1__ResolveOperationRequest *request =
        (const Holdfast__V1__ResolveOperationRequest *)message;
    Holdfast__Internal__V1__OperationAnswer *response =
        (Holdfast__Internal__V1__OperationAnswer *)reply;
    struct op_id id = target_of(message);
    struct outcome_row row = { 0 };

    response->operation = (Holdfast__Internal__V1__OperationRecord *)arena_message(
        context->arena, &holdfast__internal__v1__operation_record__descriptor);
    if (receipt_is(context->op->entity))
        return resolve_receipt(context, request->seal, response->operation);
    enum state_found found = STATE_MISSING;
    if (!operation_expired(context->meta, context->version, &id, found)) {
        found = outcome_row_find(context->state, context->op->entity, &id, context->need, &row);
        if (found == STATE_MISSING)
            return ERR_NEED;
    }
    if (operation_expired(context->meta, context->version, &id, found)) {
        response->operation->state = HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_EXPIRED;
        if (request->seal)
            (void)cancel_claim(context, &id); /* Its outcome may be forgotten before it ends. */
        return ERR_OK;
    }
    if (found == STATE_PRESENT && outcome_row_is_over(&row, &id, context->owner_ms)) {
        found = STATE_ABSENT;
        row = (struct outcome_row){ 0 };
    }
    if (found == STATE_ABSENT && !request->seal) {
        response->operation->state = HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_UNKNOWN;
        return ERR_OK;
    }
    if (found == STATE_PRESENT && !outcome_row_body_is_sound(&row, context->arena))
        return apply_damaged(context, context->op->entity, OUTCOME_DAMAGE);
    row.body = arena_copy(context->arena, row.body);
    bool is_transaction =
        row.method == METHOD_EXECUTE_TRANSACTION || row.method == METHOD_SWAP_GOODS;
    /* A transfer on its way is decided where it goes: the answer waits for that. */
    bool elsewhere = row.method != METHOD_START_SESSION;
    if (request->seal && row.state == OUTCOME_ROW_PENDING && is_transaction) {
        err e = txn_seal(context, row.body); /* Here is where it is decided. */
        if (e != ERR_OK && e != ERR_NOT_FOUND)
            return e;
        elsewhere = e == ERR_OK; /* Nothing is left of it: this seal decides alone. */
        (void)outcome_row_find(context->state, context->op->entity, &id, context->need, &row);
        row.body = arena_copy(context->arena, row.body);
    }
    if (request->seal && row.state == OUTCOME_ROW_PENDING && elsewhere)
        return channel_cancel(context, row.body);
    if (request->seal)
        seal(context, &id, found == STATE_ABSENT, &row);
    response->operation = outcome_row_status(
        &row, &(struct outcome_teller){ context->meta, context->shard, context->version },
        context->arena);
    return ERR_OK;
}

const struct handler operation_resolve_operation_handler = {
    .method = METHOD_RESOLVE_OPERATION,
    .footprint = operation_resolve_operation_footprint,
    .handle = operation_resolve_operation_handle,
};
