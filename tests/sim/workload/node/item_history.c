/* ItemHistory: what one shard knows of where an item has been. */
#include "holdfast/internal/v1/node.pb-c.h"
#include "tests/sim/oracle/answer.h"
#include "tests/sim/servers/workload.h"

/* op->player is the shard here. */
static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__Internal__V1__ItemHistoryRequest request =
        HOLDFAST__INTERNAL__V1__ITEM_HISTORY_REQUEST__INIT;

    (void)sim;
    (void)parts;
    request.shard = op->player;
    request.item_uid = request_text(op->uid);
    request.after_step = op->target;
    request.limit = 1 + op->amount % 20;
    request_pack(&request.base, out);
}

static void told(const struct told *t)
{
    uint64_t index = told_index(t);

    if (index > 0)
        trace_check_told(t->sim, t->call->shard, index, t->request, t->response);
}

const struct workload_row workload_item_history = {
    .method = METHOD_ITEM_HISTORY,
    .encode = encode,
    .rule = { .told = told },
};
