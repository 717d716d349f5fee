/* AdminService.ListFlaggedEdges: the edges of a shard that wait for a review. */
#include "holdfast/v1/admin.pb-c.h"
#include "tests/sim/favorites/review.h"
#include "tests/sim/servers/workload.h"

/* op->player is the shard here. */
static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__ListFlaggedEdgesRequest request = HOLDFAST__V1__LIST_FLAGGED_EDGES_REQUEST__INIT;

    (void)sim;
    (void)parts;
    request.shard = op->player;
    request.page_size = 1 + op->twist % 4;
    request_pack(&request.base, out);
}

const struct workload_row workload_list_flagged_edges = {
    .method = METHOD_LIST_FLAGGED_EDGES,
    .encode = encode,
    .rule = { .told = review_told_list },
};
