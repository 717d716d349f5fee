/* GetErasure: how far a player is erased. */
#include "tests/sim/model/erasure.h"
#include "tests/sim/servers/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__GetErasureRequest request = HOLDFAST__V1__GET_ERASURE_REQUEST__INIT;

    (void)sim;
    request.player_id = parts->player;
    request.read = request_read(op, parts);
    request_pack(&request.base, out);
}

const struct workload_row workload_get_erasure = {
    .method = METHOD_GET_ERASURE,
    .encode = encode,
    .rule = { .told = erasure_told_state },
};
