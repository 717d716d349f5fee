#include "router/core/renew.h"

#include <stdio.h>
#include <string.h>

#include "router/core/refusal.h"
#include "router/core/route.h"
#include "runtime/base/check.h"
#include "runtime/cluster/placement.h"

#define NO_SHARD UINT32_MAX

static err check_request(const Holdfast__V1__RenewSessionsRequest *request, struct arena *arena,
                         struct incarnation *ret_incarnation, Holdfast__V1__ErrorDetail *ret_detail)
{
    struct slice text = slice_from_text(request->incarnation);
    char count[24];

    if (incarnation_parse(text, ret_incarnation) != ERR_OK) {
        refusal_make_field(arena, ret_detail,
                           &(struct refusal_field){ "incarnation",
                                                    "<generation>-<revision>, from RegisterServer",
                                                    text },
                           "not an incarnation");
        return ERR_INVALID;
    }
    if (request->n_sessions > RENEW_SESSIONS_MAX) {
        (void)snprintf(count, sizeof count, "%zu", request->n_sessions);
        refusal_make_field(
            arena, ret_detail,
            &(struct refusal_field){ "sessions", "at most 1000", slice_from_text(count) },
            "too many sessions in one call");
        return ERR_INVALID;
    }
    return ERR_OK;
}

/* NO_SHARD: no shard can confirm this reference. */
static uint32_t shard_of_session(const struct renew_call *call,
                                 const Holdfast__V1__SessionRef *session,
                                 struct incarnation incarnation, uint64_t *ret_fence)
{
    struct slice player = slice_from_text(session->player_id);
    struct session_token token;
    struct route_entity entity;

    if (player.size == 0 || player.size > ROUTE_PLAYER_BYTES_MAX)
        return NO_SHARD;
    if (session_guard_token(call->guard, player, slice_from_text(session->token), &token) != ERR_OK)
        return NO_SHARD;
    if (incarnation_compare(token.incarnation, incarnation) != 0)
        return NO_SHARD;
    *ret_fence = token.fence;
    entity = route_entity_of_player(player);
    return shard_of_entity((struct slice){ (const uint8_t *)entity.text, entity.size },
                           call->shard_count);
}

struct renew_sort {
    uint32_t *shards;                           /* By place; NO_SHARD: in no group. */
    uint32_t *group_of;                         /* By shard: how many tokens, then which group. */
    Holdfast__Internal__V1__RenewToken *tokens; /* By place. */
};

static void make_groups(struct renew_plan *plan, struct renew_sort *sort, uint32_t shard_count,
                        struct arena *arena)
{
    for (uint32_t shard = 0; shard < shard_count; shard++) {
        struct renew_group *group;

        if (sort->group_of[shard] == 0)
            continue;
        group = &plan->groups[plan->group_count];
        group->shard = shard;
        holdfast__internal__v1__renew_tokens_request__init(&group->request);
        group->request.shard = shard;
        group->request.incarnation = plan->request->incarnation;
        group->request.tokens =
            arena_alloc(arena, sort->group_of[shard] * sizeof *group->request.tokens);
        sort->group_of[shard] = plan->group_count++;
    }
    for (size_t i = 0; i < plan->request->n_sessions; i++) {
        Holdfast__Internal__V1__RenewTokensRequest *request;

        if (sort->shards[i] == NO_SHARD)
            continue;
        request = &plan->groups[sort->group_of[sort->shards[i]]].request;
        request->tokens[request->n_tokens++] = &sort->tokens[i];
    }
}

err renew_split(const struct renew_call *call, struct arena *arena, struct renew_plan *ret_plan,
                Holdfast__V1__ErrorDetail *ret_detail)
{
    const Holdfast__V1__RenewSessionsRequest *request = call->request;
    uint32_t shard_count = call->shard_count;
    struct renew_plan plan = { .request = request };
    size_t count = request->n_sessions;
    struct renew_sort sort;
    err e = check_request(request, arena, &plan.incarnation, ret_detail);

    if (e != ERR_OK)
        return e;
    sort.shards = arena_alloc(arena, (count + 1) * sizeof *sort.shards);
    sort.tokens = arena_alloc(arena, (count + 1) * sizeof *sort.tokens);
    sort.group_of = arena_zalloc(arena, shard_count * sizeof *sort.group_of);
    plan.verdicts = arena_zalloc(arena, count + 1);
    plan.remaining_ms = arena_zalloc(arena, (count + 1) * sizeof *plan.remaining_ms);
    plan.groups = arena_alloc(arena, (count + 1) * sizeof *plan.groups);
    for (size_t i = 0; i < count; i++) {
        Holdfast__Internal__V1__RenewToken *token = &sort.tokens[i];
        uint64_t fence = 0;

        sort.shards[i] = shard_of_session(call, request->sessions[i], plan.incarnation, &fence);
        if (sort.shards[i] == NO_SHARD) {
            plan.verdicts[i] = RENEW_LOST;
            continue;
        }
        holdfast__internal__v1__renew_token__init(token);
        token->position = (uint32_t)i;
        token->player_id = request->sessions[i]->player_id;
        token->fence = fence;
        sort.group_of[sort.shards[i]]++;
    }
    make_groups(&plan, &sort, shard_count, arena);
    *ret_plan = plan;
    return ERR_OK;
}

void renew_take(struct renew_plan *plan, uint32_t group,
                const Holdfast__Internal__V1__RenewTokensResponse *answer)
{
    const Holdfast__Internal__V1__RenewTokensRequest *asked = &plan->groups[group].request;

    CHECK(group < plan->group_count);
    if (answer == NULL)
        return;
    for (size_t i = 0; i < asked->n_tokens; i++)
        plan->verdicts[asked->tokens[i]->position] = RENEW_CURRENT;
    for (size_t i = 0; i < answer->n_release_requested; i++) {
        uint32_t position = answer->release_requested[i]->position;

        if (position >= plan->request->n_sessions)
            continue;
        plan->verdicts[position] = RENEW_RELEASE;
        plan->remaining_ms[position] = answer->release_requested[i]->remaining_ms;
    }
    for (size_t i = 0; i < answer->n_lost; i++) {
        if (answer->lost[i] < plan->request->n_sessions)
            plan->verdicts[answer->lost[i]] = RENEW_LOST;
    }
}

static Holdfast__V1__ReleaseRequest *make_release(const struct renew_plan *plan, size_t place,
                                                  struct arena *arena)
{
    Holdfast__V1__ReleaseRequest *release = arena_alloc(arena, sizeof *release);

    holdfast__v1__release_request__init(release);
    release->player_id = plan->request->sessions[place]->player_id;
    release->token = plan->request->sessions[place]->token;
    release->remaining_ms = plan->remaining_ms[place];
    return release;
}

Holdfast__V1__RenewSessionsResponse *renew_join(const struct renew_plan *plan, struct arena *arena)
{
    Holdfast__V1__RenewSessionsResponse *response = arena_alloc(arena, sizeof *response);
    size_t count = plan->request->n_sessions;

    holdfast__v1__renew_sessions_response__init(response);
    response->lost = arena_alloc(arena, (count + 1) * sizeof *response->lost);
    response->unknown = arena_alloc(arena, (count + 1) * sizeof *response->unknown);
    response->release_requested =
        arena_alloc(arena, (count + 1) * sizeof *response->release_requested);
    for (size_t i = 0; i < count; i++) {
        switch (plan->verdicts[i]) {
        case RENEW_LOST:
            response->lost[response->n_lost++] = plan->request->sessions[i];
            break;
        case RENEW_RELEASE:
            response->release_requested[response->n_release_requested++] =
                make_release(plan, i, arena);
            break;
        case RENEW_UNKNOWN:
            response->unknown[response->n_unknown++] = plan->request->sessions[i];
            break;
        default:
            break;
        }
    }
    return response;
}
