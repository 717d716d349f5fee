#include "router/rpc/admin/admin_members.h"

static err plan_move(struct change *change, const struct member_plan *plan)
{
    const Holdfast__V1__MoveShardRequest *message = (const void *)change->request->message;
    Holdfast__V1__MoveShardResponse *response = arena_alloc(plan->arena, sizeof *response);
    struct member_move move = { .shard = message->shard };
    uint64_t from, to;

    err e = member_plan_node(plan, "from", message->from, &from);
    if (e == ERR_OK)
        e = member_plan_node(plan, "to", message->to, &to);
    if (e == ERR_OK)
        e = member_plan_move(plan, message->shard, from, to, &move.wish);
    if (e != ERR_OK)
        return e;
    holdfast__v1__move_shard_response__init(response);
    response->move = change_tell_move(change, &move);
    change->response = &response->base;
    change->writes = arena_zalloc(plan->arena, sizeof *change->writes);
    change_add_move(change, &move, true);
    return ERR_OK;
}

void admin_move_shard_handle(struct request *request)
{
    change_start(request, plan_move);
}
