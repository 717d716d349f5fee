#include <string.h>

#include "idl/error_code.h"
#include "router/core/refusal.h"
#include "router/rpc/definitions/definition_call.h"

typedef Holdfast__V1__PutDefinitionRequest put_request;

static void told(struct request *request, const ProtobufCMessage *message)
{
    const Holdfast__Internal__V1__ChangeDefinitionResponse *answer = (const void *)message;
    const put_request *put = (const void *)request->message;
    Holdfast__V1__PutDefinitionResponse response = HOLDFAST__V1__PUT_DEFINITION_RESPONSE__INIT;

    response.definition = definition_tell_made(request->arena, answer, put->dry_run);
    response.duplicate = answer->duplicate;
    response.unchanged = answer->unchanged;
    request_reply(request, &response.base);
}

void definition_put_definition_handle(struct request *request)
{
    const put_request *put = (const void *)request->message;
    Holdfast__Internal__V1__ChangeDefinitionRequest change =
        HOLDFAST__INTERNAL__V1__CHANGE_DEFINITION_REQUEST__INIT;
    const char *kind = definition_body_kind(put->body);
    Holdfast__V1__ErrorDetail detail;

    if (put->kind[0] != 0 && kind[0] != 0 && strcmp(put->kind, kind) != 0) {
        refusal_make_field(
            request->arena, &detail,
            &(struct refusal_field){ "kind", arena_printf(request->arena, "%s, as the body", kind),
                                     slice_from_text(put->kind) },
            "the body is of another kind");
        request_fail(request, &detail);
        return;
    }
    change.deed = HOLDFAST__INTERNAL__V1__DEFINITION_DEED__DEFINITION_DEED_PUT;
    change.name = put->name;
    change.body = put->body;
    if (put->_if_version_case != HOLDFAST__V1__PUT_DEFINITION_REQUEST___IF_VERSION__NOT_SET) {
        change._if_version_case =
            HOLDFAST__INTERNAL__V1__CHANGE_DEFINITION_REQUEST___IF_VERSION_IF_VERSION;
        change.if_version = put->if_version;
    }
    change.dry_run = put->dry_run;
    change.wait_ms = put->wait_ms;
    change.op_id = put->op_id;
    change.reason = put->reason;
    definition_change_ask(request, &change, told);
}
