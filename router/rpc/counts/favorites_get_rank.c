#include "holdfast/v1/favorites.pb-c.h"
#include "router/rpc/counts/rank_request.h"
#include "router/rpc/request/handlers.h"

typedef Holdfast__V1__GetRankRequest rank_ask;
typedef Holdfast__V1__GetRankResponse rank_response;

static void reply(struct request *request, const struct rank_told *told)
{
    rank_response response = HOLDFAST__V1__GET_RANK_RESPONSE__INIT;

    response.rank = told->rank;
    response.count = told->count;
    if (told->counts)
        response._count_case = HOLDFAST__V1__GET_RANK_RESPONSE___COUNT_COUNT;
    response.listed = told->listed;
    response.last_count = told->last_count;
    response.window = text_lend(told->window);
    response.as_of_from_ms = told->from_ms;
    response.as_of_to_ms = told->to_ms;
    response.stale = told->stale;
    request_reply(request, &response.base);
}

void favorites_get_rank_handle(struct request *request)
{
    const rank_ask *message = (const void *)request->message;
    const struct rank_fields fields = {
        .collection = message->collection,
        .target = message->target_id,
        .window = message->window,
    };

    rank_request_ask(request, &fields, reply);
}
