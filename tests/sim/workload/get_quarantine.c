/* AdminService.GetQuarantine: whether a player is held back. No record is damaged before the end. */
#include "holdfast/v1/admin.pb-c.h"
#include "tests/sim/answer.h"
#include "tests/sim/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__GetQuarantineRequest request = HOLDFAST__V1__GET_QUARANTINE_REQUEST__INIT;

    (void)sim;
    (void)op;
    request.player_id = parts->player;
    request_pack(&request.base, out);
}

static void told(const struct told *t)
{
    const Holdfast__V1__GetQuarantineResponse *response = (const void *)t->response;

    if (told_index(t) > 0 && response->quarantined != NULL)
        told_fail(t, "a sound player is quarantined", 1, 0);
}

const struct workload_row workload_get_quarantine = {
    .method = METHOD_GET_QUARANTINE,
    .shares = { [WISH_READ] = { .place = 6, .weight = 1 } },
    .encode = encode,
    .rule = { .told = told },
};
