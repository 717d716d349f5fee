/* ExportPlayer: all that is kept of a player, in one page. */
#include "tests/sim/model/erasure.h"
#include "tests/sim/servers/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__ExportPlayerRequest request = HOLDFAST__V1__EXPORT_PLAYER_REQUEST__INIT;

    (void)sim;
    request.player_id = parts->player;
    request.read = request_read(op, parts);
    request.page_size = 200;
    request_pack(&request.base, out);
}

const struct workload_row workload_export_player = {
    .method = METHOD_EXPORT_PLAYER,
    .encode = encode,
    .rule = { .told = erasure_told_export },
};
