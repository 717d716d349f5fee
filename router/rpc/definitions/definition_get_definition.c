#include "router/rpc/definitions/definition_call.h"

typedef Holdfast__V1__GetDefinitionRequest get_request;

/* Its newest life alone: the first number that comes. */
static void told(struct request *request, const ProtobufCMessage *message)
{
    const Holdfast__Internal__V1__FindDefinitionsResponse *answer = (const void *)message;
    const get_request *get = (const void *)request->message;
    Holdfast__V1__GetDefinitionResponse response = HOLDFAST__V1__GET_DEFINITION_RESPONSE__INIT;

    for (size_t i = 0; i < answer->n_definitions; i++) {
        const Holdfast__Internal__V1__FoundDefinition *found = answer->definitions[i];

        if (found->version->number != answer->definitions[0]->version->number)
            break;
        if (get->version == 0 ? !found->current || found->version->deleted
                              : found->version->version != get->version)
            continue;
        response.definition = definition_tell_found(request->arena, found);
        request_reply(request, &response.base);
        return;
    }
    definition_fail_unknown(
        request, get->version == 0 ? "name" : "version",
        get->version == 0 ? get->name
                          : arena_printf(request->arena, "%llu", (unsigned long long)get->version));
}

void definition_get_definition_handle(struct request *request)
{
    const get_request *get = (const void *)request->message;
    Holdfast__Internal__V1__FindDefinitionsRequest find =
        HOLDFAST__INTERNAL__V1__FIND_DEFINITIONS_REQUEST__INIT;

    if (get->kind[0] == 0 || get->name[0] == 0) {
        definition_fail_unknown(request, get->kind[0] == 0 ? "kind" : "name", "");
        return;
    }
    find.kind = get->kind;
    find.name = get->name;
    find.history = true;
    find.limit = DEFINITION_HISTORY_LIMIT;
    definition_find_ask(request, &find, told);
}
