#include <inttypes.h>

#include "router/rpc/definitions/definition_call.h"
#include "router/rpc/request/list_page.h"

typedef Holdfast__V1__ListDefinitionsRequest list_request;

static void told(struct request *request, const ProtobufCMessage *message)
{
    const Holdfast__Internal__V1__FindDefinitionsResponse *answer = (const void *)message;
    Holdfast__V1__ListDefinitionsResponse response = HOLDFAST__V1__LIST_DEFINITIONS_RESPONSE__INIT;
    struct arena *arena = request->arena;

    response.definitions =
        arena_alloc(arena, (answer->n_definitions + 1) * sizeof *response.definitions);
    for (size_t i = 0; i < answer->n_definitions; i++)
        response.definitions[response.n_definitions++] =
            definition_tell_found(arena, answer->definitions[i]);
    if (answer->more && answer->n_definitions > 0)
        response.next_cursor = list_page_next(
            request, arena_printf(arena, "%" PRIu64,
                                  response.definitions[response.n_definitions - 1]->number));
    request_reply(request, &response.base);
}

void definition_list_definitions_handle(struct request *request)
{
    const list_request *list = (const void *)request->message;
    Holdfast__Internal__V1__FindDefinitionsRequest find =
        HOLDFAST__INTERNAL__V1__FIND_DEFINITIONS_REQUEST__INIT;
    struct list_page page;

    if (!list_page_begin(
            request, (struct list_limits){ DEFINITION_PAGE_DEFAULT, DEFINITION_PAGE_MAX }, &page) ||
        !list_page_number(request, &page, UINT64_MAX, &find.after_number))
        return;
    find.kind = list->kind;
    find.deleted = list->deleted;
    find.limit = page.size;
    definition_find_ask(request, &find, told);
}
