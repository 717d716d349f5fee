#include "router/rpc/counts/top_request.h"

#include <inttypes.h>
#include <string.h>

#include "router/core/count_ask.h"
#include "router/core/refusal.h"
#include "runtime/base/check.h"
#include "runtime/base/nearest.h"

static const struct {
    const char *name;
    Holdfast__V1__TopWindow window;
} windows[] = { { "24h", HOLDFAST__V1__TOP_WINDOW__TOP_WINDOW_24H },
                { "7d", HOLDFAST__V1__TOP_WINDOW__TOP_WINDOW_7D },
                { "all", HOLDFAST__V1__TOP_WINDOW__TOP_WINDOW_ALL } };

const char *top_window_name(Holdfast__V1__TopWindow window)
{
    for (size_t i = 0; i < ARRAY_SIZE(windows); i++) {
        if (windows[i].window == window)
            return windows[i].name;
    }
    return "";
}

Holdfast__V1__TopEntry **top_request_entries(struct request *request, const struct top_told *told)
{
    Holdfast__V1__TopEntry **list = arena_alloc(request->arena, (told->count + 1) * sizeof(void *));
    Holdfast__V1__TopEntry *entries =
        arena_alloc(request->arena, (told->count + 1) * sizeof *entries);

    for (size_t i = 0; i < told->count; i++) {
        holdfast__v1__top_entry__init(&entries[i]);
        entries[i].target_id = text_lend(told->places[i].target);
        entries[i].count = told->places[i].count;
        list[i] = &entries[i];
    }
    return list;
}

static bool find_window(const char *given, Holdfast__V1__TopWindow *ret_window)
{
    for (size_t i = 0; i < ARRAY_SIZE(windows); i++) {
        if (strcmp(given[0] != 0 ? given : windows[0].name, windows[i].name) == 0) {
            *ret_window = windows[i].window;
            return true;
        }
    }
    return false;
}

static void refuse_window(struct request *request, const char *given)
{
    Holdfast__V1__ErrorDetail detail;
    char hint[NEAREST_HINT_BYTES];
    struct nearest nearest;

    nearest_init(&nearest, slice_from_text(given));
    for (size_t i = 0; i < ARRAY_SIZE(windows); i++)
        nearest_offer_text(&nearest, windows[i].name);
    const char *message =
        arena_printf(request->arena, "there is no such window%s", nearest_hint(nearest.name, hint));
    refusal_make_field(
        request->arena, &detail,
        &(struct refusal_field){ "window", "24h, 7d or all", slice_from_text(given) }, message);
    request_fail(request, &detail);
}

struct top_ask *top_request_ask(struct request *request, const struct top_fields *fields)
{
    const char *target = "t"; /* The collection's name is checked with those of counts. */
    const struct count_ask names = { fields->collection, &target, 1, true, fields->is_counter };
    struct top_ask *ask = arena_zalloc(request->arena, sizeof *ask);
    Holdfast__V1__ErrorDetail detail;

    ask->is_counter = fields->is_counter;
    ask->limit = fields->limit != NULL ? *fields->limit : TOP_LIMIT_DEFAULT;
    if (count_ask_check(&names, request->arena, &detail) != ERR_OK) {
        request_fail(request, &detail);
        return NULL;
    }
    ask->collection = (const char *)count_ask_collection(&names).data;
    if (ask->limit == 0 || ask->limit > TOP_LIMIT_MAX) {
        const char *given = arena_printf(request->arena, "%" PRIu32, ask->limit);
        refusal_make_field(
            request->arena, &detail,
            &(struct refusal_field){ "limit", "1 to 1000, or absent", slice_from_text(given) },
            "no call tells so many targets");
        request_fail(request, &detail);
        return NULL;
    }
    if (!find_window(fields->window, &ask->window)) {
        refuse_window(request, fields->window);
        return NULL;
    }
    return ask;
}
