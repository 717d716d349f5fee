/* AdminService.GetQuarantine: whether a player is held back. */
#include "holdfast/v1/admin.pb-c.h"
#include "tests/sim/oracle/answer.h"
#include "tests/sim/servers/workload.h"

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

    const struct player_model *player = told_player(t);
    uint64_t index = told_index(t);

    if (index > 0 && index >= player->review_index &&
        (response->quarantined != NULL) != player->contained)
        told_fail(t, "whether the player is held back", response->quarantined != NULL,
                  player->contained);
}

const struct workload_row workload_get_quarantine = {
    .method = METHOD_GET_QUARANTINE,
    .shares = { [WISH_READ] = { .place = 6, .weight = 1 } },
    .encode = encode,
    .rule = { .told = told },
};
