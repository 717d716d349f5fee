/* RenewTokens: a game server's heartbeat for all that it holds on one shard. */
#include <string.h>

#include "router/core/renew.h"
#include "runtime/base/check.h"
#include "tests/sim/oracle/answer.h"
#include "tests/sim/servers/workload.h"

#define SECRET_BYTE 7u

/* What a game server shows its router: each player, in their order, with the token that it has;
 * none where it has none, which is lost then without a question. */
struct heartbeat {
    struct session_secrets secrets;
    Holdfast__V1__RenewSessionsRequest request;
    Holdfast__V1__SessionRef refs[SIM_PLAYERS_MAX], *list[SIM_PLAYERS_MAX];
    char names[SIM_PLAYERS_MAX][16];
    char tokens[SIM_PLAYERS_MAX][SESSION_TOKEN_TEXT_SIZE];
};

static void show(const struct sim *sim, const struct sim_op *op, uint32_t player,
                 struct heartbeat *beat)
{
    const struct held *held = &sim->servers[op->server].held[player];
    Holdfast__V1__SessionRef *ref = beat->list[player] = &beat->refs[player];
    struct session_token token;

    holdfast__v1__session_ref__init(ref);
    request_player_name(player, beat->names[player]);
    ref->player_id = beat->names[player];
    ref->token = beat->tokens[player];
    beat->tokens[player][0] = '\0';
    if (!held->held)
        return;
    CHECK(session_token_parse(slice_from_text(held->token), &token) == ERR_OK);
    session_token_print(&beat->secrets, slice_from_text(ref->player_id), &token, ref->token);
}

/* op->player is the shard here. The router's own split of the heartbeat says what it is asked. */
static void encode(const struct sim *sim, const struct sim_op *op, struct request_parts *parts,
                   struct buf *out)
{
    struct token_secret_record record = { .rotated_at_ms = 0 };
    Holdfast__V1__ErrorDetail detail = HOLDFAST__V1__ERROR_DETAIL__INIT;
    Holdfast__Internal__V1__RenewTokensRequest nothing =
        HOLDFAST__INTERNAL__V1__RENEW_TOKENS_REQUEST__INIT;
    struct arena arena = { 0 };
    struct heartbeat beat;
    struct renew_plan plan;

    (void)parts;
    memset(record.current, SECRET_BYTE, sizeof record.current);
    session_secrets_init(&beat.secrets, SIM_CLUSTER, &record);
    holdfast__v1__renew_sessions_request__init(&beat.request);
    beat.request.incarnation = request_text(op->incarnation);
    beat.request.sessions = beat.list;
    beat.request.n_sessions = sim->player_count;
    for (uint32_t i = 0; i < sim->player_count; i++)
        show(sim, op, i, &beat);
    struct session_guard guard = { .secrets = &beat.secrets };
    const struct renew_call call = { &beat.request, sim->shard_count, &guard };
    CHECK(renew_split(&call, &arena, &plan, &detail) == ERR_OK);
    nothing.shard = op->player;
    nothing.incarnation = request_text(op->incarnation);
    const Holdfast__Internal__V1__RenewTokensRequest *request = &nothing;
    for (uint32_t i = 0; i < plan.group_count; i++) {
        if (plan.groups[i].shard == op->player)
            request = &plan.groups[i].request;
    }
    request_pack(&request->base, out);
    arena_deinit(&arena);
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
