/* ListByTarget: who favorited a target, of the players of one shard. */
#include "tests/sim/favorites/favorite.h"
#include "tests/sim/servers/workload.h"

/* op->player is the shard here. */
static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__ListByTargetRequest request = HOLDFAST__V1__LIST_BY_TARGET_REQUEST__INIT;

    (void)sim;
    (void)parts;
    request.shard = op->player;
    request.collection = favorite_collection(op);
    request.target_id = favorite_target(op);
    request_pack(&request.base, out);
}

const struct workload_row workload_list_by_target = {
    .method = METHOD_LIST_BY_TARGET,
    .encode = encode,
    .rule = { .told = favorite_told_by_target },
};
