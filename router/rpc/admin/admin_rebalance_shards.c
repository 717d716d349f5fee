#include "router/rpc/admin/admin_members.h"

static err plan_rebalance(struct change *change, const struct member_plan *plan)
{
    const Holdfast__V1__RebalanceShardsRequest *message = (const void *)change->request->message;
    Holdfast__V1__RebalanceShardsResponse *response = arena_alloc(plan->arena, sizeof *response);
    struct member_move *moves;
    uint32_t count;

    err e = member_plan_rebalance(plan, &moves, &count);
    if (e != ERR_OK)
        return e;
    holdfast__v1__rebalance_shards_response__init(response);
    response->moves = arena_alloc(plan->arena, (count + 1) * sizeof(void *));
    change->writes = arena_zalloc(plan->arena, (count + 1) * sizeof *change->writes);
    for (uint32_t i = 0; i < count; i++) {
        response->moves[response->n_moves++] = change_tell_move(change, &moves[i]);
        change_add_move(change, &moves[i], !message->dry_run);
    }
    change->response = &response->base;
    return ERR_OK;
}

void admin_rebalance_shards_handle(struct request *request)
{
    change_start(request, plan_rebalance);
}
