#include "router/rpc/forward/operation_tell.h"

#include <string.h>

#include "holdfast/internal/v1/earlier.pb-c.h"
#include "holdfast/internal/v1/operation.pb-c.h"
#include "idl/error_tell.h"
#include "router/core/route.h"
#include "runtime/base/check.h"
#include "runtime/codec/proto_codec.h"

typedef Holdfast__V1__OperationStatus Status;

const ProtobufCFieldDescriptor *operation_result_field(const struct method_info *method)
{
    const ProtobufCMessageDescriptor *status = &holdfast__v1__operation_status__descriptor;

    for (unsigned i = 0; i < status->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &status->fields[i];
        if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 &&
            field->descriptor == method->response)
            return field;
    }
    return NULL;
}

/* A Mint of an earlier version, as the Grant that does its deed today. */
static ProtobufCMessage *grant_of_mint(const ProtobufCMessage *message, struct arena *arena)
{
    const Holdfast__Internal__V1__MintResponse *mint = (const void *)message;
    Holdfast__V1__GrantResponse *grant = arena_alloc(arena, sizeof *grant);

    holdfast__v1__grant_response__init(grant);
    grant->write = mint->write;
    grant->ledger_seq = mint->ledger_seq;
    grant->n_item_uids = mint->n_items;
    grant->item_uids = arena_alloc(arena, sizeof *grant->item_uids * (mint->n_items + 1));
    for (size_t i = 0; i < mint->n_items; i++)
        grant->item_uids[i] = mint->items[i]->uid;
    return &grant->base;
}

/* A Consume of an earlier version, as the Spend that does its deed today. */
static ProtobufCMessage *spend_of_consume(const ProtobufCMessage *message, struct arena *arena)
{
    const Holdfast__Internal__V1__ConsumeResponse *consume = (const void *)message;
    Holdfast__V1__SpendResponse *spend = arena_alloc(arena, sizeof *spend);

    holdfast__v1__spend_response__init(spend);
    spend->write = consume->write;
    spend->ledger_seq = consume->ledger_seq;
    spend->n_items = consume->n_items;
    spend->items = consume->items;
    spend->n_balances = consume->n_balances;
    spend->balances = consume->balances;
    return &spend->base;
}

static const struct method_info *successor_of(const struct method_info *method)
{
    if (method->id == METHOD_MINT)
        return method_find(METHOD_GRANT);
    if (method->id == METHOD_CONSUME)
        return method_find(METHOD_SPEND);
    return method;
}

static ProtobufCMessage *result_of_today(const struct method_info *method, ProtobufCMessage *result,
                                         struct arena *arena)
{
    if (method->id == METHOD_MINT)
        return grant_of_mint(result, arena);
    if (method->id == METHOD_CONSUME)
        return spend_of_consume(result, arena);
    return result;
}

/* A token is its owner's alone: the answer of StartSession, or of its repetition, brings it. */
static void hide_token(const struct method_info *method, ProtobufCMessage *result)
{
    static char none[] = "";

    if (method->id == METHOD_START_SESSION)
        ((Holdfast__V1__StartSessionResponse *)(void *)result)->token = none;
}

static void tell_result(const char *name, ProtobufCBinaryData bytes, struct arena *arena,
                        Status *status)
{
    const struct method_info *method = method_find_told(slice_from_text(name));
    const ProtobufCFieldDescriptor *field =
        method != NULL ? operation_result_field(successor_of(method)) : NULL;
    struct codec_scope scope = { .arena = arena };
    ProtobufCMessage *result;

    if (field == NULL || proto_decode(method->response, (struct slice){ bytes.data, bytes.len },
                                      &scope, &result) != ERR_OK)
        return;
    result = result_of_today(method, result, arena);
    hide_token(method, result);
    CHECK(field->quantifier_offset == offsetof(Status, result_case));
    memcpy((uint8_t *)status + field->offset, &result, sizeof result);
    status->result_case = (Holdfast__V1__OperationStatus__ResultCase)field->id;
}

static Status *tell_status(const Holdfast__Internal__V1__OperationRecord *record,
                           const ProtobufCMessage *request, struct arena *arena)
{
    Status *status = arena_alloc(arena, sizeof *status);

    holdfast__v1__operation_status__init(status);
    status->state = record->state;
    status->attempt = record->attempt;
    status->method = record->method;
    status->dot = record->dot;
    status->decided_at_ms = record->decided_at_ms;
    status->bound_player_id = record->bound_player_id;
    if (record->state == HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_COMMITTED)
        tell_result(record->method, record->result, arena, status);
    if (record->refusal != NULL) {
        status->refusal = arena_alloc(arena, sizeof *status->refusal);
        *status->refusal = error_tell(record->refusal, arena);
        route_name(request, arena, status->refusal);
    }
    return status;
}

ProtobufCMessage *operation_tell(const struct method_info *method, struct slice answer,
                                 const ProtobufCMessage *request, struct arena *arena)
{
    struct codec_scope scope = { .arena = arena };
    const Holdfast__Internal__V1__OperationAnswer *told;
    Holdfast__V1__GetOperationResponse *response;
    ProtobufCMessage *message;

    CHECK(method->id == METHOD_GET_OPERATION || method->id == METHOD_RESOLVE_OPERATION);
    if (proto_decode(method_answer(method), answer, &scope, &message) != ERR_OK)
        return NULL;
    told = (const void *)message;
    /* Both responses have one field, the same. */
    response = arena_zalloc(arena, method->response->sizeof_message);
    protobuf_c_message_init(method->response, response);
    if (told->operation != NULL)
        response->operation = tell_status(told->operation, request, arena);
    return &response->base;
}
