#include "holdfast/v1/favorites.pb-c.h"
#include "router/rpc/handlers.h"
#include "router/rpc/top_gather.h"
#include "router/rpc/top_request.h"

static void reply(struct request *request, const struct top_ask *ask, const struct top_told *told)
{
    Holdfast__V1__GetTopResponse response = HOLDFAST__V1__GET_TOP_RESPONSE__INIT;

    response.entries = top_request_entries(request, told);
    response.n_entries = told->count;
    response.window = text_lend(top_window_name(ask->window));
    response.as_of_from_ms = told->from_ms;
    response.as_of_to_ms = told->to_ms;
    response.stale = told->stale;
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
    struct top_ask *ask = top_request_ask(request, &fields);

    if (ask != NULL)
        tops_ask(request, ask, reply);
}
