#include "holdfast/v1/counter.pb-c.h"
#include "router/rpc/counts/count_gather.h"
#include "router/rpc/counts/favorites_counts.h"
#include "router/rpc/request/handlers.h"

static void reply(struct request *request, const struct count_ask *ask,
                  const struct count_told *told)
{
    Holdfast__V1__GetCounterResponse response = HOLDFAST__V1__GET_COUNTER_RESPONSE__INIT;
    Holdfast__V1__TargetCount count = favorites_count_of(ask->targets[0], told);

    response.count = &count;
    request_reply(request, &response.base);
}

void counter_get_counter_handle(struct request *request)
{
    const Holdfast__V1__GetCounterRequest *message = (const void *)request->message;
    struct count_ask *ask = arena_alloc(request->arena, sizeof *ask);
    const char **targets = arena_alloc(request->arena, sizeof *targets);
    Holdfast__V1__ErrorDetail detail;

    targets[0] = message->target_id;
    *ask = (struct count_ask){ message->counter, targets, 1, true, true };
    if (count_ask_check(ask, request->arena, &detail) == ERR_OK)
        counts_ask(request, ask, message->fresh, reply);
    else
        request_fail(request, &detail);
}
