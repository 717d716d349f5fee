/* GetShardTop: the highest totals of the targets of one home. */
#include "holdfast/internal/v1/node.pb-c.h"
#include "tests/sim/favorites/counter.h"
#include "tests/sim/favorites/favorite.h"
#include "tests/sim/favorites/top.h"
#include "tests/sim/servers/workload.h"

/* op->player is the shard here. */
static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    static const Holdfast__V1__TopWindow windows[FAVORITE_TARGETS] = {
        HOLDFAST__V1__TOP_WINDOW__TOP_WINDOW_ALL, HOLDFAST__V1__TOP_WINDOW__TOP_WINDOW_24H,
        HOLDFAST__V1__TOP_WINDOW__TOP_WINDOW_7D, HOLDFAST__V1__TOP_WINDOW__TOP_WINDOW_ALL
    };
    Holdfast__Internal__V1__GetShardTopRequest request =
        HOLDFAST__INTERNAL__V1__GET_SHARD_TOP_REQUEST__INIT;

    (void)sim;
    (void)parts;
    request.shard = op->player;
    request.is_counter = counter_is_asked(op);
    request.collection = request.is_counter ? counter_name(op) : favorite_collection(op);
    request.window = windows[op->target];
    request.limit = 1 + op->mode % FAVORITE_TARGETS;
    request_pack(&request.base, out);
}

const struct workload_row workload_get_shard_top = {
    .method = METHOD_GET_SHARD_TOP,
    .encode = encode,
    .rule = { .told = top_told_list },
};
