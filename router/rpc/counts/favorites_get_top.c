#include "holdfast/v1/favorites.pb-c.h"
#include "router/rpc/request/handlers.h"
#include "router/rpc/metadata/metadata_include.h"
#include "router/rpc/counts/top_gather.h"
#include "router/rpc/counts/top_request.h"

typedef Holdfast__V1__GetTopResponse top_response;

static void joined(struct metadata_ask *ask)
{
    top_response *response = ask->user;

    for (size_t i = 0; i < ask->count; i++)
        response->entries[i]->metadata = metadata_listed(ask->told[i]);
    if (ask->reason != NULL) {
        response->metadata_incomplete = true;
        response->metadata_reason = arena_printf(ask->request->arena, "%s", ask->reason);
    }
    request_reply(ask->request, &response->base);
}

/* The list is the router's, and another one may be gathered meanwhile. */
static void join(struct request *request, const top_response *told)
{
    const Holdfast__V1__GetTopRequest *message = (const void *)request->message;
    top_response *response = arena_alloc(request->arena, sizeof *response);
    char **targets;
    struct metadata_ask *ask =
        metadata_ask_new(request, message->collection, told->n_entries, &targets);

    *response = *told;
    for (size_t i = 0; i < told->n_entries; i++) {
        targets[i] = arena_printf(request->arena, "%s", told->entries[i]->target_id);
        response->entries[i]->target_id = targets[i];
    }
    ask->user = response;
    ask->done = joined;
    metas_ask(ask);
}

static void reply(struct request *request, const struct top_ask *ask, const struct top_told *told)
{
    const Holdfast__V1__GetTopRequest *message = (const void *)request->message;
    top_response response = HOLDFAST__V1__GET_TOP_RESPONSE__INIT;

    response.entries = top_request_entries(request, told);
    response.n_entries = told->count;
    response.window = text_lend(top_window_name(ask->window));
    response.as_of_from_ms = told->from_ms;
    response.as_of_to_ms = told->to_ms;
    response.stale = told->stale;
    if (message->n_include > 0)
        join(request, &response);
    else
        request_reply(request, &response.base);
}

void favorites_get_top_handle(struct request *request)
{
    const Holdfast__V1__GetTopRequest *message = (const void *)request->message;
    const struct top_fields fields = {
        .collection = message->collection,
        .window = message->window,
        .limit = message->_limit_case != 0 ? &message->limit : NULL,
    };

    if (!metadata_include_check(request, message->n_include, message->include))
        return;
    struct top_ask *ask = top_request_ask(request, &fields);
    if (ask != NULL)
        tops_ask(request, ask, reply);
}
