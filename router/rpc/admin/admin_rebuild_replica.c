#include "router/rpc/admin/admin_members.h"

static const char *const states[] = {
    [REBUILD_ASKED] = "asked",
    [REBUILD_UNDER_WAY] = "under way",
    [REBUILD_HEALTHY] = "healthy",
};

static err plan_rebuild(struct change *change, const struct member_plan *plan)
{
    const Holdfast__V1__RebuildReplicaRequest *message = (const void *)change->request->message;
    Holdfast__V1__RebuildReplicaResponse *response = arena_alloc(plan->arena, sizeof *response);
    struct member_move move = { .shard = message->shard };
    enum rebuild_state state;
    uint64_t id;

    err e = member_plan_node(plan, "node", message->node, &id);
    if (e == ERR_OK)
        e = member_plan_rebuild(plan, message->shard, id, &move.wish, &state);
    if (e != ERR_OK)
        return e;
    holdfast__v1__rebuild_replica_response__init(response);
    response->replica_id = id;
    response->state = arena_copy_text(plan->arena, states[state]);
    change->response = &response->base;
    change->writes = arena_zalloc(plan->arena, sizeof *change->writes);
    change_add_move(change, &move, state == REBUILD_ASKED);
    return ERR_OK;
}

void admin_rebuild_replica_handle(struct request *request)
{
    change_start(request, plan_rebuild);
}
