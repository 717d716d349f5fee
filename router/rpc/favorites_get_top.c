#include <inttypes.h>
#include <string.h>

#include "holdfast/v1/favorites.pb-c.h"
#include "router/core/count_ask.h"
#include "router/core/refusal.h"
#include "router/rpc/handlers.h"
#include "router/rpc/top_gather.h"
#include "runtime/base/check.h"
#include "runtime/base/nearest.h"

static const struct {
    const char *name;
    Holdfast__V1__TopWindow window;
} windows[] = { { "24h", HOLDFAST__V1__TOP_WINDOW__TOP_WINDOW_24H },
                { "7d", HOLDFAST__V1__TOP_WINDOW__TOP_WINDOW_7D },
                { "all", HOLDFAST__V1__TOP_WINDOW__TOP_WINDOW_ALL } };

static void reply(struct request *request, const struct top_ask *ask, const struct top_told *told)
{
    Holdfast__V1__GetTopResponse response = HOLDFAST__V1__GET_TOP_RESPONSE__INIT;

    response.entries = arena_alloc(request->arena, (told->count + 1) * sizeof(void *));
    Holdfast__V1__TopEntry *entries =
        arena_alloc(request->arena, (told->count + 1) * sizeof *entries);
    for (size_t i = 0; i < told->count; i++) {
        holdfast__v1__top_entry__init(&entries[i]);
        entries[i].target_id = text_lend(told->places[i].target);
        entries[i].count = told->places[i].count;
        response.entries[response.n_entries++] = &entries[i];
    }
    for (size_t i = 0; i < ARRAY_SIZE(windows); i++) {
        if (windows[i].window == ask->window)
            response.window = text_lend(windows[i].name);
    }
    response.as_of_from_ms = told->from_ms;
    response.as_of_to_ms = told->to_ms;
    response.stale = told->stale;
    request_reply(request, &response.base);
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

void favorites_get_top_handle(struct request *request)
{
    const Holdfast__V1__GetTopRequest *message = (const void *)request->message;
    const char *target = "t"; /* The collection's name is checked with those of counts. */
    const struct count_ask names = { message->collection, &target, 1, true };
    struct top_ask *ask = arena_zalloc(request->arena, sizeof *ask);
    Holdfast__V1__ErrorDetail detail;

    ask->limit = message->_limit_case != 0 ? message->limit : TOP_LIMIT_DEFAULT;
    if (count_ask_check(&names, request->arena, &detail) != ERR_OK) {
        request_fail(request, &detail);
        return;
    }
    ask->collection = message->collection[0] != 0 ? message->collection : COUNT_COLLECTION_DEFAULT;
    if (ask->limit == 0 || ask->limit > TOP_LIMIT_MAX) {
        const char *given = arena_printf(request->arena, "%" PRIu32, ask->limit);
        refusal_make_field(
            request->arena, &detail,
            &(struct refusal_field){ "limit", "1 to 1000, or absent", slice_from_text(given) },
            "another number of targets");
        request_fail(request, &detail);
    } else if (!find_window(message->window, &ask->window)) {
        refuse_window(request, message->window);
    } else {
        tops_ask(request, ask, reply);
    }
}
