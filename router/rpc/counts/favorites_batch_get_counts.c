#include "holdfast/v1/favorites.pb-c.h"
#include "router/rpc/counts/count_gather.h"
#include "router/rpc/counts/favorites_counts.h"
#include "router/rpc/request/handlers.h"

static void reply(struct request *request, const struct count_ask *ask,
                  const struct count_told *told)
{
    Holdfast__V1__BatchGetCountsResponse response = HOLDFAST__V1__BATCH_GET_COUNTS_RESPONSE__INIT;
    Holdfast__V1__TargetCount counts[COUNT_TARGETS_MAX], *list[COUNT_TARGETS_MAX];

    for (size_t i = 0; i < ask->count; i++) {
        counts[i] = favorites_count_of(ask->targets[i], &told[i]);
        list[i] = &counts[i];
    }
    response.n_counts = ask->count;
    response.counts = list;
    request_reply(request, &response.base);
}

void favorites_batch_get_counts_handle(struct request *request)
{
    const Holdfast__V1__BatchGetCountsRequest *message = (const void *)request->message;
    struct count_ask *ask = arena_alloc(request->arena, sizeof *ask);
    Holdfast__V1__ErrorDetail detail;

    *ask = (struct count_ask){ message->collection, (const char *const *)message->target_ids,
                               message->n_target_ids, false, false };
    if (count_ask_check(ask, request->arena, &detail) == ERR_OK)
        counts_ask(request, ask, message->fresh, reply);
    else
        request_fail(request, &detail);
}
