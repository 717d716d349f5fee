/* ContainPlayer, which coordinators call for what an audit finds: the player is held back for
 * review. */
#include "holdfast/internal/v1/node.pb-c.h"
#include "node/core/codec/arena_proto.h"
#include "runtime/base/check.h"
#include "tests/sim/oracle/answer.h"
#include "tests/sim/servers/workload.h"

static void logged(struct change *c)
{
    const Holdfast__Internal__V1__ContainPlayerRequest *request = (const void *)c->request;
    const Holdfast__Internal__V1__ContainPlayerResponse *response = (const void *)arena_unpack(
        &c->sim->oracle->arena, &holdfast__internal__v1__contain_player_response__descriptor,
        c->outcome->body);
    struct player_model *player = &c->sim->oracle->players[model_player_of_id(request->player_id)];

    if (c->outcome->kind != OUTCOME_COMMITTED)
        return;
    CHECK(response != NULL);
    if ((response->contained != 0) == player->contained)
        model_fail(c, "contains who is contained, or does not contain who is not",
                   model_player_of_id(request->player_id));
    c->sim->counts.contained += response->contained != 0;
    player->contained = true;
    if (response->contained)
        player->review_index = c->entry->index;
}

const struct workload_row workload_contain_player = {
    .method = METHOD_CONTAIN_PLAYER,
    .rule = { .logged = logged, .told = told_nothing },
};
