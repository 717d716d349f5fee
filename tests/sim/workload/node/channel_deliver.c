/* Channel.Deliver, which one shard's owner calls at another's: the destination decides. */
#include "tests/sim/oracle/answer.h"
#include "tests/sim/servers/workload.h"

static void logged(struct change *c)
{
    if (c->outcome->kind == OUTCOME_COMMITTED)
        goods_delivered(c);
}

static void told(const struct told *t)
{
    goods_check_told(t->sim, t->call->shard, t->request, t->response);
}

const struct workload_row workload_channel_deliver = {
    .method = METHOD_CHANNEL_DELIVER,
    .rule = { .logged = logged, .told = told },
};
