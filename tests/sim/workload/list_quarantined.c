/* AdminService.ListQuarantined: who is held back in a shard. No record is damaged before the end. */
#include "holdfast/v1/admin.pb-c.h"
#include "tests/sim/answer.h"
#include "tests/sim/workload.h"

/* op->player is the shard here. */
static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__ListQuarantinedRequest request = HOLDFAST__V1__LIST_QUARANTINED_REQUEST__INIT;

    (void)sim;
    (void)parts;
    request.shard = op->player;
    request.page_size = 1 + op->twist % 4;
    request_pack(&request.base, out);
}

static void told(const struct told *t)
{
    const Holdfast__V1__ListQuarantinedResponse *response = (const void *)t->response;

    if (told_index(t) > 0 && response->n_players > 0)
        told_fail(t, "sound players are quarantined", response->n_players, 0);
}

const struct workload_row workload_list_quarantined = {
    .method = METHOD_LIST_QUARANTINED,
    .encode = encode,
    .rule = { .told = told },
};
