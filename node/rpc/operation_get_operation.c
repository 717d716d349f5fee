#include "holdfast/v1/operation_service.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/codec/text_rule.h"
#include "node/core/handler/operation_floor.h"
#include "node/core/handler/refusal.h"
#include "node/core/receipt/receipt.h"
#include "node/rpc/methods.h"

static err operation_get_operation_read(struct read_context *context,
                                        const ProtobufCMessage *message, ProtobufCMessage *reply)
{
    const Holdfast__V1__GetOperationRequest *request =
        (const Holdfast__V1__GetOperationRequest *)message;
    Holdfast__Internal__V1__OperationAnswer *response =
        (Holdfast__Internal__V1__OperationAnswer *)reply;
    struct slice text = slice_from_text(request->op_id);
    struct outcome_row row;
    struct op_id id;
    const char *why;

    if (op_id_parse(text, &id, &why) != ERR_OK)
        return refuse_invalid(context->arena, context->refusal, "op_id", why,
                              text_shorten(context->arena, text));
    response->operation = (Holdfast__Internal__V1__OperationRecord *)arena_message(
        context->arena, &holdfast__internal__v1__operation_record__descriptor);
    if (receipt_is(context->entity)) {
        err e = receipt_status(context->state, context->arena, context->need, context->entity,
                               response->operation);
        return e == ERR_CORRUPT ? read_damaged(context, RECEIPT_DAMAGE) : e;
    }
    enum state_found found =
        outcome_row_find(context->state, context->entity, &id, context->need, &row);
    switch (found) {
    case STATE_MISSING:
        return ERR_NEED;
    case STATE_ABSENT:
        response->operation->state =
            operation_expired(context->meta, FLOOR_APPLY_VERSION, &id, found)
                ? HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_EXPIRED
                : HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_UNKNOWN;
        break;
    case STATE_PRESENT:
        if (outcome_row_is_over(&row, &id, context->now_unix_ms)) {
            response->operation->state = HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_UNKNOWN;
            break;
        }
        if (!outcome_row_body_is_sound(&row, context->arena))
            return read_damaged(context, OUTCOME_DAMAGE);
        response->operation = outcome_row_status(
            &row, &(struct outcome_teller){ context->meta, context->shard, AS_OF_APPLY_VERSION },
            context->arena);
        break;
    }
    return ERR_OK;
}

const struct handler operation_get_operation_handler = {
    .method = METHOD_GET_OPERATION,
    .read = operation_get_operation_read,
};
