#include "holdfast/v1/counter.pb-c.h"
#include "router/rpc/request/handlers.h"
#include "router/rpc/counts/top_gather.h"
#include "router/rpc/counts/top_request.h"

static void reply(struct request *request, const struct top_ask *ask, const struct top_told *told)
{
    Holdfast__V1__GetCounterTopResponse response = HOLDFAST__V1__GET_COUNTER_TOP_RESPONSE__INIT;

    response.entries = top_request_entries(request, told);
    response.n_entries = told->count;
    response.window = text_lend(top_window_name(ask->window));
    response.as_of_from_ms = told->from_ms;
    response.as_of_to_ms = told->to_ms;
    response.stale = told->stale;
    request_reply(request, &response.base);
}

void counter_get_counter_top_handle(struct request *request)
{
    const Holdfast__V1__GetCounterTopRequest *message = (const void *)request->message;
    const struct top_fields fields = {
        .collection = message->counter,
        .window = message->window,
        .limit = message->_limit_case != 0 ? &message->limit : NULL,
        .is_counter = true,
    };
    struct top_ask *ask = top_request_ask(request, &fields);

    if (ask != NULL)
        tops_ask(request, ask, reply);
}
