/* GetPartials: how many edges of one shard lead to each target. */
#include "holdfast/internal/v1/node.pb-c.h"
#include "tests/sim/favorites/counter.h"
#include "tests/sim/favorites/favorite.h"
#include "tests/sim/servers/workload.h"

/* op->player is the shard here. */
static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__Internal__V1__GetPartialsRequest request =
        HOLDFAST__INTERNAL__V1__GET_PARTIALS_REQUEST__INIT;
    struct sim_op other = *op;
    char *targets[2];

    (void)sim;
    (void)parts;
    other.target++;
    targets[0] = favorite_target(op);
    targets[1] = favorite_target(&other);
    request.shard = op->player;
    request.is_counter = counter_is_asked(op);
    request.collection = request.is_counter ? counter_name(op) : favorite_collection(op);
    request.target_ids = targets;
    request.n_target_ids = 2;
    request_pack(&request.base, out);
}

const struct workload_row workload_get_partials = {
    .method = METHOD_GET_PARTIALS,
    .encode = encode,
    .rule = { .told = favorite_told_partials },
};
