/* definition_find: definitions and their histories, as the copy has them. */
#include <string.h>

#include "coordinator/core/definition_find.h"
#include "coordinator/core/definition_kind.h"
#include "coordinator/core/definition_send.h"
#include "coordinator/core/definitions.h"
#include "idl/error_code.h"
#include "runtime/base/check.h"
#include "runtime/base/nearest.h"

#define LIMIT_MAX 200u

typedef Holdfast__Internal__V1__FindDefinitionsRequest find_request;
typedef Holdfast__Internal__V1__FindDefinitionsResponse find_response;
typedef Holdfast__Internal__V1__FoundDefinition found_definition;

struct search {
    struct coord *coord;
    struct arena *arena;
    const find_request *request;
    uint32_t kind; /* 0: every one. */
    find_response response;
};

/* False: there is no room for it. */
static bool add(struct search *search, const struct definition *definition,
                const struct definition_version *version)
{
    find_response *response = &search->response;

    if (response->n_definitions == search->request->limit) {
        response->more = true;
        return false;
    }
    found_definition *found = arena_alloc(search->arena, sizeof *found);

    holdfast__internal__v1__found_definition__init(found);
    found->version = definition_unpack(version);
    found->current = version == definition_newest(definition);
    found->shards_left = definition_left(search->coord, version->revision);
    found->in_force = found->current && found->shards_left == 0;
    response->definitions[response->n_definitions++] = found;
    return true;
}

static bool is_wanted(const struct search *search, const struct definition *definition)
{
    const find_request *request = search->request;

    return (search->kind == 0 || definition->kind == search->kind) &&
           (request->name[0] == 0 || strcmp(definition->name, request->name) == 0);
}

static void find_current(struct search *search)
{
    const struct definitions *all = &search->coord->definitions;

    for (uint32_t i = 0; i < all->count; i++) {
        const struct definition_version *newest = definition_newest(all->list[i]);

        if (all->list[i]->number <= search->request->after_number ||
            !is_wanted(search, all->list[i]) || (newest->deleted && !search->request->deleted))
            continue;
        if (!add(search, all->list[i], newest))
            return;
    }
}

/* Whether `a` was made before `b`: numbers tell the generation, and then nothing of the order. */
static bool is_older(const struct definition *a, const struct definition *b)
{
    uint64_t a_generation = a->number >> DEFINITION_GENERATION_BITS;
    uint64_t b_generation = b->number >> DEFINITION_GENERATION_BITS;

    if (a_generation != b_generation)
        return a_generation < b_generation;
    if (a->versions[0].revision != b->versions[0].revision)
        return a->versions[0].revision < b->versions[0].revision;
    return a->number < b->number;
}

/* The newest of those that are wanted and older than `than`; NULL: there is none. */
static const struct definition *find_older(const struct search *search,
                                           const struct definition *than)
{
    const struct definitions *all = &search->coord->definitions;
    const struct definition *found = NULL;

    for (uint32_t i = 0; i < all->count; i++) {
        const struct definition *one = all->list[i];

        if (is_wanted(search, one) && (than == NULL || is_older(one, than)) &&
            (found == NULL || is_older(found, one)))
            found = one;
    }
    return found;
}

/* Of all lives of the name, the newest first. */
static void find_history(struct search *search)
{
    uint64_t number = search->request->after_number;
    const struct definition *definition =
        number != 0 ? definition_find(search->coord, number) : find_older(search, NULL);

    for (; definition != NULL; definition = find_older(search, definition)) {
        for (uint32_t j = definition->count; j > 0; j--) {
            const struct definition_version *version = &definition->versions[j - 1];
            if (definition->number == number && version->version >= search->request->after_version)
                continue;
            if (!add(search, definition, version))
                return;
        }
    }
}

static void refuse(struct coord_out *out, uint64_t call, Holdfast__V1__ErrorCode code,
                   const char *field, const char *message)
{
    Holdfast__Internal__V1__Refusal refusal = HOLDFAST__INTERNAL__V1__REFUSAL__INIT;

    refusal.code = code;
    refusal.field = text_lend(field);
    refusal.message = text_lend(message);
    coord_refusal_put(out, call, &refusal);
}

static void refuse_limit(struct coord_out *out, uint64_t call, uint32_t limit)
{
    Holdfast__Internal__V1__Refusal refusal = HOLDFAST__INTERNAL__V1__REFUSAL__INIT;

    refusal.code = CODE(INVALID_ARGUMENT);
    refusal.field = text_lend("limit");
    refusal.limit = text_lend("1 to 200");
    refusal.value = arena_printf(&out->arena, "%u", limit);
    refusal.message = text_lend("that is no size of a page");
    coord_refusal_put(out, call, &refusal);
}

static void answer(struct search *search, uint64_t call, struct coord_out *out)
{
    const find_request *request = search->request;

    search->response.definitions =
        arena_alloc(search->arena, (request->limit + 1) * sizeof(void *));
    if (request->history)
        find_history(search);
    else
        find_current(search);
    coord_answer_put(out, call, WIRE_OK, &search->response.base);
    for (size_t i = 0; i < search->response.n_definitions; i++)
        holdfast__internal__v1__definition_version__free_unpacked(
            search->response.definitions[i]->version, NULL);
}

void definition_search(struct coord *coord, const struct coord_event *event, struct coord_out *out)
{
    struct search search = { .coord = coord, .arena = &out->arena };
    find_request *request = holdfast__internal__v1__find_definitions_request__unpack(
        NULL, event->body.size, event->body.data);
    const char *near_miss = "";
    char hint[NEAREST_HINT_BYTES];

    holdfast__internal__v1__find_definitions_response__init(&search.response);
    search.request = request;
    if (request != NULL && request->kind[0] != 0)
        search.kind = definition_kind_find(request->kind, &near_miss);
    if (request == NULL || request->limit < 1 || request->limit > LIMIT_MAX)
        refuse_limit(out, event->call, request != NULL ? request->limit : 0);
    else if (request->kind[0] != 0 && search.kind == 0)
        refuse(
            out, event->call, CODE(INVALID_ARGUMENT), "kind",
            arena_printf(&out->arena, "there is no such kind%s",
                         near_miss[0] != 0 ? nearest_hint(slice_from_text(near_miss), hint) : ""));
    else if (!coord_decides(coord))
        refuse(out, event->call, CODE(UNAVAILABLE), "", "this coordinator does not decide");
    else
        answer(&search, event->call, out);
    if (request != NULL)
        holdfast__internal__v1__find_definitions_request__free_unpacked(request, NULL);
}
