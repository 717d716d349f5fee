/* ExpireServer, which the coordinator calls: a game server's sessions are over. */
#include "holdfast/internal/v1/node.pb-c.h"
#include "runtime/base/check.h"
#include "tests/sim/oracle/answer.h"
#include "tests/sim/servers/workload.h"

static void logged(struct change *c)
{
    const Holdfast__Internal__V1__ExpireServerRequest *request = (const void *)c->request;
    struct shard_oracle *shard = c->shard;
    struct incarnation incarnation, lowest, from;

    CHECK(incarnation_parse(slice_from_text(request->incarnation), &incarnation) == ERR_OK);
    CHECK(incarnation_parse(slice_from_text(request->lowest_live), &lowest) == ERR_OK);
    c->sim->counts.expiries++;
    CHECK(shard->expired_count < MODEL_EXPIRED);
    if (incarnation_parse(slice_from_text(request->from), &from) != ERR_OK ||
        applier_meta(shard->applier)->apply_version < 10)
        from = incarnation;
    shard->expired_from[shard->expired_count] = from;
    shard->expired[shard->expired_count++] = incarnation;
    if (incarnation_compare(lowest, shard->lowest_live) > 0)
        shard->lowest_live = lowest;
    for (uint32_t i = 0; i < c->sim->player_count; i++) {
        struct player_model *player = &c->sim->oracle->players[i];
        if (player->shard == c->number && !incarnation_is_none(player->incarnation) &&
            model_expired(shard, player->incarnation) &&
            player->lost_at[model_fence_place(player->fence)] == 0) {
            player->free_ms = c->sim->now_ms;
            player->lost_at[model_fence_place(player->fence)] = c->entry->index;
        }
    }
}

const struct workload_row workload_expire_server = {
    .method = METHOD_EXPIRE_SERVER,
    .rule = { .logged = logged, .told = told_dot },
};
