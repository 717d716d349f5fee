#include "router/rpc/operation_tell.h"

#include <string.h>

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

static void tell_result(const struct method_info *method, ProtobufCBinaryData bytes,
                        struct arena *arena, Status *status)
{
    const ProtobufCFieldDescriptor *field = method != NULL ? operation_result_field(method) : NULL;
    struct codec_scope scope = { .arena = arena };
    ProtobufCMessage *result;

    if (field == NULL || proto_decode(method->response, (struct slice){ bytes.data, bytes.len },
                                      &scope, &result) != ERR_OK)
        return;
    CHECK(field->quantifier_offset == offsetof(Status, result_case));
    memcpy((uint8_t *)status + field->offset, &result, sizeof result);
    status->result_case = (Holdfast__V1__OperationStatus__ResultCase)field->id;
}

static Status *tell_status(const Holdfast__Internal__V1__OperationRecord *record,
                           const ProtobufCMessage *request, struct arena *arena)
{
    const struct method_info *method = method_find_name(slice_from_text(record->method));
    Status *status = arena_alloc(arena, sizeof *status);

    holdfast__v1__operation_status__init(status);
    status->state = record->state;
    status->attempt = record->attempt;
    status->method =
        method != NULL ? arena_printf(arena, "%s", method_told(method)->name) : record->method;
    status->dot = record->dot;
    status->decided_at_ms = record->decided_at_ms;
    status->bound_player_id = record->bound_player_id;
    if (record->state == HOLDFAST__V1__OPERATION_STATE__OPERATION_STATE_COMMITTED)
        tell_result(method, record->result, arena, status);
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
