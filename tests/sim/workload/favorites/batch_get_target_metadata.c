/* BatchGetTargetMetadata: as a router asks one shard. */
#include "tests/sim/favorites/metadata.h"
#include "tests/sim/servers/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    (void)parts;
    metadata_encode(sim, op, out);
}

const struct workload_row workload_batch_get_target_metadata = {
    .method = METHOD_BATCH_GET_TARGET_METADATA,
    .encode = encode,
    .taken = metadata_taken,
    .rule = { .told = metadata_told },
};
