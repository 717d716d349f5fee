/* AdminService.GetSession: who holds a player. */
#include <string.h>

#include "holdfast/v1/admin.pb-c.h"
#include "tests/sim/oracle/answer.h"
#include "tests/sim/servers/workload.h"

static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__V1__GetSessionRequest request = HOLDFAST__V1__GET_SESSION_REQUEST__INIT;

    (void)sim;
    (void)op;
    request.player_id = parts->player;
    request_pack(&request.base, out);
}

/* Only as of the newest entry: the model keeps no sessions of before. */
static void told(const struct told *t)
{
    const Holdfast__V1__GetSessionResponse *response = (const void *)t->response;
    const struct player_model *player = told_player(t);
    uint64_t index = told_index(t);
    bool held =
        !incarnation_is_none(player->incarnation) && !model_expired(t->shard, player->incarnation);
    char holder[INCARNATION_TEXT_SIZE];

    if (index == 0 || index != t->shard->count)
        return;
    if (response->fence != player->fence)
        told_fail(t, "the fence", response->fence, player->fence);
    if ((strcmp(response->state, "free") != 0) != held)
        told_fail(t, "whether a server holds the player", 0, held);
    if (response->shard != player->shard)
        told_fail(t, "where the player lives", response->shard, player->shard);
    if (response->claimant[0] != '\0' && player->claim_ms == 0)
        told_fail(t, "someone asks for the session, and no one does", 1, 0);
    incarnation_print(player->claimant, holder);
    if (player->claim_ms != 0 && !model_expired(t->shard, player->claimant) &&
        strcmp(response->claimant, holder) != 0)
        told_fail(t, "who asks for the session", response->claimant[0] != '\0', 1);
    incarnation_print(player->incarnation, holder);
    if (held ? strcmp(response->incarnation, holder) != 0 : response->incarnation[0] != '\0')
        told_fail(t, "who holds the player", 0, player->fence);
}

const struct workload_row workload_get_session = {
    .method = METHOD_GET_SESSION,
    .shares = { [WISH_READ] = { .place = 5, .weight = 2 } },
    .encode = encode,
    .rule = { .told = told },
};
