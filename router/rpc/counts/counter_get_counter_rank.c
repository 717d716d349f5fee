#include "holdfast/v1/counter.pb-c.h"
#include "router/rpc/counts/rank_request.h"
#include "router/rpc/request/handlers.h"

typedef Holdfast__V1__GetCounterRankRequest rank_ask;
typedef Holdfast__V1__GetCounterRankResponse rank_response;

static void reply(struct request *request, const struct rank_told *told)
{
    rank_response response = HOLDFAST__V1__GET_COUNTER_RANK_RESPONSE__INIT;

    response.rank = told->rank;
    response.count = told->count;
    if (told->counts)
        response._count_case = HOLDFAST__V1__GET_COUNTER_RANK_RESPONSE___COUNT_COUNT;
    response.listed = told->listed;
    response.last_count = told->last_count;
    response.window = text_lend(told->window);
    response.as_of_from_ms = told->from_ms;
    response.as_of_to_ms = told->to_ms;
    response.stale = told->stale;
    request_reply(request, &response.base);
}

void counter_get_counter_rank_handle(struct request *request)
{
    const rank_ask *message = (const void *)request->message;
    const struct rank_fields fields = {
        .collection = message->counter,
        .target = message->target_id,
        .window = message->window,
        .is_counter = true,
    };

    rank_request_ask(request, &fields, reply);
}
