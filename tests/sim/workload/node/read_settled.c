/* ReadSettled: a part of a read of several players; router_read.c puts them together. */
#include "holdfast/internal/v1/node.pb-c.h"
#include "tests/sim/oracle/answer.h"
#include "tests/sim/servers/workload.h"

static void told(const struct told *t)
{
    const Holdfast__Internal__V1__ReadSettledResponse *response = (const void *)t->response;
    uint64_t index = told_index(t);

    if (index > 0 && response->profile != NULL)
        told_profile(t, response->profile, told_moment(t, index));
}

const struct workload_row workload_read_settled = {
    .method = METHOD_READ_SETTLED,
    .rule = { .told = told },
};
