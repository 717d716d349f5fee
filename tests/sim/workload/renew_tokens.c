/* RenewTokens: a game server's heartbeat for all that it holds on one shard. */
#include <string.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "runtime/base/check.h"
#include "tests/sim/answer.h"
#include "tests/sim/workload.h"

/* op->player is the shard here. */
static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    Holdfast__Internal__V1__RenewTokensRequest request =
        HOLDFAST__INTERNAL__V1__RENEW_TOKENS_REQUEST__INIT;
    Holdfast__Internal__V1__RenewToken tokens[SIM_PLAYERS_MAX];
    Holdfast__Internal__V1__RenewToken *pointers[SIM_PLAYERS_MAX];
    char names[SIM_PLAYERS_MAX][16];

    (void)parts;
    request.shard = op->player;
    request.incarnation = request_text(op->incarnation);
    request.tokens = pointers;
    for (uint32_t i = 0; i < sim->player_count; i++) {
        const struct held *held = &sim->servers[op->server].held[i];
        if (!held->held || sim->player_shard[i] != op->player)
            continue;
        size_t n = request.n_tokens++;
        holdfast__internal__v1__renew_token__init(&tokens[n]);
        request_player_name(i, names[n]);
        tokens[n].position = i;
        tokens[n].player_id = names[n];
        tokens[n].fence = held->fence;
        pointers[n] = &tokens[n];
    }
    request_pack(&request.base, out);
}

static void taken(struct sim *sim, const struct sim_op *op, struct slice body)
{
    Holdfast__Internal__V1__RenewTokensResponse *response =
        holdfast__internal__v1__renew_tokens_response__unpack(NULL, body.size, body.data);

    CHECK(response != NULL);
    sim->counts.renewals++;
    for (size_t i = 0; i < response->n_lost; i++)
        sim->servers[op->server].held[response->lost[i]].held = false;
    /* Polite servers give back what is asked for. */
    for (size_t i = 0; i < response->n_release_requested; i++) {
        uint32_t player = response->release_requested[i]->position;
        struct held *held = &sim->servers[op->server].held[player];
        if (!held->held || sim_chance(sim, 600))
            continue;
        struct sim_op *end = op_new(sim, op->server, player, METHOD_END_SESSION);
        memcpy(end->token, held->token, sizeof end->token);
        op_call(sim, end);
        break; /* `op` may have moved. */
    }
    holdfast__internal__v1__renew_tokens_response__free_unpacked(response, NULL);
}

static void told(const struct told *t)
{
    const Holdfast__Internal__V1__RenewTokensRequest *request = (const void *)t->request;
    const Holdfast__Internal__V1__RenewTokensResponse *response = (const void *)t->response;

    for (size_t i = 0; i < request->n_tokens; i++) {
        const Holdfast__Internal__V1__RenewToken *token = request->tokens[i];
        struct player_model *player = &t->sim->oracle->players[token->position];
        bool lost = false;
        for (size_t j = 0; j < response->n_lost; j++)
            lost |= response->lost[j] == token->position;
        CHECK(token->fence <= player->fence);
        uint64_t lost_at = player->lost_at[model_fence_place(token->fence)];
        if (lost && lost_at == 0)
            told_fail(t, "a session that stands is told as lost", token->fence, player->fence);
        if (!lost && token->fence == player->fence && ++player->renewals == RENEWALS_SURE) {
            const struct shard_oracle *shard = &t->sim->oracle->shards[player->shard];
            player->renewed_ms = SIM_UNIX_MS + t->sim->now_ms + t->sim->clock_ms;
            player->renewed_epoch = shard->entries[shard->count - 1]->dot.epoch;
        }
        if (!lost && lost_at != 0 && lost_at <= t->call->must_see)
            told_fail(t, "a session that was lost is told as current", lost_at, t->call->must_see);
    }
}

const struct workload_row workload_renew_tokens = {
    .method = METHOD_RENEW_TOKENS,
    .encode = encode,
    .taken = taken,
    .rule = { .told = told },
};
