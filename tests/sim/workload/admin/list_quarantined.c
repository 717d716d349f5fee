/* AdminService.ListQuarantined: who is held back in a shard. */
#include "holdfast/v1/admin.pb-c.h"
#include "tests/sim/oracle/answer.h"
#include "tests/sim/servers/workload.h"

/* op->player is the shard here. */
static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__ListQuarantinedRequest request = HOLDFAST__V1__LIST_QUARANTINED_REQUEST__INIT;

    (void)sim;
    (void)parts;
    request.shard = op->player;
    request.page_size = request_page(op, 1 + op->twist % 4, 1024);
    request_pack(&request.base, out);
}

static void told(const struct told *t)
{
    const Holdfast__V1__ListQuarantinedResponse *response = (const void *)t->response;

    const Holdfast__V1__ListQuarantinedRequest *request = (const void *)t->request;
    uint64_t index = told_index(t);
    size_t at = 0;

    for (uint32_t i = 0; i < t->sim->player_count; i++) {
        const struct player_model *player = &t->sim->oracle->players[i];
        if (player->shard != t->call->shard)
            continue;
        if (index == 0 || index < player->review_index)
            return;
        if (!player->contained || at == request->page_size)
            continue;
        if (at == response->n_players ||
            model_player_of_id(response->players[at]->player_id) != i) {
            told_fail(t, "who is held back is not told", at, i);
            return;
        }
        at++;
    }
    if (response->n_players != at)
        told_fail(t, "players are told as held back who are not", response->n_players, at);
}

const struct workload_row workload_list_quarantined = {
    .method = METHOD_LIST_QUARANTINED,
    .encode = encode,
    .rule = { .told = told },
};
