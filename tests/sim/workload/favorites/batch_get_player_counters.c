/* BatchGetPlayerCounters: what a player added to these targets. */
#include "tests/sim/favorites/counter.h"
#include "tests/sim/favorites/favorite.h"
#include "tests/sim/servers/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__BatchGetPlayerCountersRequest request =
        HOLDFAST__V1__BATCH_GET_PLAYER_COUNTERS_REQUEST__INIT;
    struct sim_op other = *op;
    char *targets[2];

    (void)sim;
    other.target++;
    targets[0] = favorite_target(op);
    targets[1] = favorite_target(&other);
    request.player_id = parts->player;
    request.read = request_read(op, parts);
    request.counter = counter_name(op);
    request.target_ids = targets;
    request.n_target_ids = 2;
    request_pack(&request.base, out);
}

const struct workload_row workload_batch_get_player_counters = {
    .method = METHOD_BATCH_GET_PLAYER_COUNTERS,
    .encode = encode,
    .rule = { .told = counter_told_values },
};
