#include <inttypes.h>
#include <string.h>

#include "router/rpc/definitions/definition_call.h"
#include "router/rpc/request/list_page.h"
#include "runtime/base/check.h"

typedef Holdfast__V1__ListDefinitionVersionsRequest list_request;

static void told(struct request *request, const ProtobufCMessage *message)
{
    const Holdfast__Internal__V1__FindDefinitionsResponse *answer = (const void *)message;
    const list_request *list = (const void *)request->message;
    Holdfast__V1__ListDefinitionVersionsResponse response =
        HOLDFAST__V1__LIST_DEFINITION_VERSIONS_RESPONSE__INIT;
    struct arena *arena = request->arena;

    response.versions = arena_alloc(arena, (answer->n_definitions + 1) * sizeof *response.versions);
    for (size_t i = 0; i < answer->n_definitions; i++)
        response.versions[response.n_versions++] =
            definition_tell_found(arena, answer->definitions[i]);
    if (answer->n_definitions == 0) {
        definition_fail_unknown(request, "name", list->name);
        return;
    }
    if (answer->more) {
        const Holdfast__V1__Definition *last = response.versions[response.n_versions - 1];
        response.next_cursor = list_page_next(
            request, arena_printf(arena, "%" PRIu64 "-%" PRIu64, last->number, last->version));
    }
    request_reply(request, &response.base);
}

/* "number-version"; false: the place is none. */
static bool place_read(struct slice place, uint64_t *ret_number, uint64_t *ret_version)
{
    const uint8_t *dash = place.size > 0 ? memchr(place.data, '-', place.size) : NULL;

    if (place.size == 0)
        return true;
    if (dash == NULL)
        return false;
    struct slice number = { place.data, (size_t)(dash - place.data) };
    struct slice version = { dash + 1, place.size - number.size - 1 };

    return decimal_parse(number, ret_number) == ERR_OK &&
           decimal_parse(version, ret_version) == ERR_OK;
}

void definition_list_definition_versions_handle(struct request *request)
{
    const list_request *list = (const void *)request->message;
    Holdfast__Internal__V1__FindDefinitionsRequest find =
        HOLDFAST__INTERNAL__V1__FIND_DEFINITIONS_REQUEST__INIT;
    struct list_page page;

    if (!list_page_begin(
            request, (struct list_limits){ DEFINITION_PAGE_DEFAULT, DEFINITION_PAGE_MAX }, &page))
        return;
    if (list->kind[0] == 0 || list->name[0] == 0) {
        definition_fail_unknown(request, list->kind[0] == 0 ? "kind" : "name", "");
        return;
    }
    if (!place_read(slice_from_text(page.place), &find.after_number, &find.after_version)) {
        if (!list_page_number(request, &page, 0, &find.after_number)) /* Refuses it. */
            return;
    }
    find.kind = list->kind;
    find.name = list->name;
    find.history = true;
    find.limit = page.size;
    definition_find_ask(request, &find, told);
}
