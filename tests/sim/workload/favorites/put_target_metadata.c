/* PutTargetMetadata: what a target is called. */
#include "tests/sim/favorites/metadata.h"
#include "tests/sim/servers/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    (void)parts;
    metadata_encode(sim, op, out);
}

const struct workload_row workload_put_target_metadata = {
    .method = METHOD_PUT_TARGET_METADATA,
    .encode = encode,
    .taken = metadata_taken,
    .rule = { .logged = metadata_logged, .told = metadata_told },
};
