#include "router/rpc/metadata/metadata_include.h"

#include <string.h>

#include "router/core/count_ask.h"
#include "router/core/refusal.h"

#define METADATA "metadata"

bool metadata_include_check(struct request *request, size_t count, char *const *include)
{
    Holdfast__V1__ErrorDetail detail;

    for (size_t i = 0; i < count; i++) {
        if (strcmp(include[i], METADATA) == 0)
            continue;
        const struct refusal_field field = {
            .field = arena_printf(request->arena, "include[%zu]", i),
            .limit = METADATA,
            .value = slice_from_text(include[i]),
        };
        refusal_make_field(request->arena, &detail, &field,
                           "lists of targets include nothing else");
        request_fail(request, &detail);
        return false;
    }
    return true;
}

struct metadata_ask *metadata_ask_new(struct request *request, const char *collection, size_t count,
                                      char ***ret_targets)
{
    const struct count_ask names = { .collection = collection };
    struct metadata_ask *ask = arena_zalloc(request->arena, sizeof *ask);
    char **targets = arena_alloc(request->arena, (count + 1) * sizeof *targets);

    ask->request = request;
    ask->collection = count_ask_collection(&names);
    ask->targets = targets;
    ask->count = count;
    *ret_targets = targets;
    return ask;
}

Holdfast__V1__TargetMetadata *metadata_listed(Holdfast__V1__TargetMetadata *told)
{
    static char unnamed[] = "";

    if (told != NULL)
        told->changed_by = unnamed;
    return told;
}
