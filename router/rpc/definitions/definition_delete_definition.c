#include "router/rpc/definitions/definition_call.h"

typedef Holdfast__V1__DeleteDefinitionRequest delete_request;

static void told(struct request *request, const ProtobufCMessage *message)
{
    const Holdfast__Internal__V1__ChangeDefinitionResponse *answer = (const void *)message;
    const delete_request *asked = (const void *)request->message;
    Holdfast__V1__DeleteDefinitionResponse response =
        HOLDFAST__V1__DELETE_DEFINITION_RESPONSE__INIT;

    response.definition = definition_tell_made(request->arena, answer, asked->dry_run);
    response.duplicate = answer->duplicate;
    request_reply(request, &response.base);
}

void definition_delete_definition_handle(struct request *request)
{
    const delete_request *asked = (const void *)request->message;
    Holdfast__Internal__V1__ChangeDefinitionRequest change =
        HOLDFAST__INTERNAL__V1__CHANGE_DEFINITION_REQUEST__INIT;

    change.deed = HOLDFAST__INTERNAL__V1__DEFINITION_DEED__DEFINITION_DEED_DELETE;
    change.kind = asked->kind;
    change.name = asked->name;
    if (asked->_if_version_case != HOLDFAST__V1__DELETE_DEFINITION_REQUEST___IF_VERSION__NOT_SET) {
        change._if_version_case =
            HOLDFAST__INTERNAL__V1__CHANGE_DEFINITION_REQUEST___IF_VERSION_IF_VERSION;
        change.if_version = asked->if_version;
    }
    change.dry_run = asked->dry_run;
    change.wait_ms = asked->wait_ms;
    change.op_id = asked->op_id;
    change.reason = asked->reason;
    definition_change_ask(request, &change, told);
}
