#include "holdfast/v1/backup.pb-c.h"
#include "router/rpc/definitions/definition_call.h"

typedef Holdfast__V1__RestoreDefinitionRequest restore_request;

static void told(struct request *request, const ProtobufCMessage *message)
{
    const Holdfast__Internal__V1__ChangeDefinitionResponse *answer = (const void *)message;
    const restore_request *asked = (const void *)request->message;
    Holdfast__V1__RestoreDefinitionResponse response =
        HOLDFAST__V1__RESTORE_DEFINITION_RESPONSE__INIT;

    response.definition =
        definition_tell_made(request->arena, answer, asked->dry_run && !answer->duplicate);
    response.duplicate = answer->duplicate;
    request_reply(request, &response.base);
}

void backup_restore_definition_handle(struct request *request)
{
    const restore_request *asked = (const void *)request->message;
    const Holdfast__V1__Definition *given = asked->definition;
    Holdfast__Internal__V1__DefinitionVersion restored =
        HOLDFAST__INTERNAL__V1__DEFINITION_VERSION__INIT;
    Holdfast__Internal__V1__ChangeDefinitionRequest change =
        HOLDFAST__INTERNAL__V1__CHANGE_DEFINITION_REQUEST__INIT;

    if (given != NULL) {
        restored.number = given->number;
        restored.version = given->version;
        restored.name = given->name;
        restored.body = given->body;
        restored.deleted = given->deleted;
        restored.author = given->author;
        restored.at_ms = given->made_at_ms;
        restored.reason = given->reason;
        restored.op_id = given->op_id;
        restored.rolled_back_to = given->rolled_back_to;
        change.name = given->name;
        change.kind = text_lend(definition_body_kind(given->body));
    }
    change.deed = HOLDFAST__INTERNAL__V1__DEFINITION_DEED__DEFINITION_DEED_RESTORE;
    change.restored = &restored;
    change.dry_run = asked->dry_run;
    change.wait_ms = asked->wait_ms;
    definition_change_ask(request, &change, told);
}
