#include <string.h>

#include "router/core/refusal.h"
#include "router/rpc/admin/admin_members.h"

static err plan_wish(const struct member_plan *plan, const char *want, uint64_t replica_id,
                     struct buf *value)
{
    struct node_wish wish = { NODE_DRAIN };
    err e;

    if (strcmp(want, "undrain") == 0)
        return member_plan_undrain(plan, replica_id);
    if (strcmp(want, "drain") == 0) {
        e = member_plan_drain(plan, replica_id);
    } else if (strcmp(want, "remove") == 0) {
        wish.kind = NODE_REMOVE;
        e = member_plan_remove(plan, replica_id);
    } else {
        refusal_make_field(
            plan->arena, plan->ret_detail,
            &(struct refusal_field){ "want", "drain, undrain or remove", slice_from_text(want) },
            "not something that a node can be asked for");
        return ERR_INVALID;
    }
    if (e == ERR_OK)
        node_wish_encode(&wish, value);
    return e;
}

static err plan_node(struct change *change, const struct member_plan *plan)
{
    const Holdfast__V1__ChangeNodeRequest *message = (const void *)change->request->message;
    Holdfast__V1__ChangeNodeResponse *response = arena_alloc(plan->arena, sizeof *response);
    struct buf value = { 0 };
    uint64_t id;

    err e = member_plan_node(plan, "node", message->node, &id);
    if (e == ERR_OK)
        e = plan_wish(plan, message->want, id, &value);
    if (e != ERR_OK)
        return e;
    const struct member_wish *now = member_wishes_find(plan->wishes, id);

    change->writes = arena_zalloc(plan->arena, sizeof *change->writes);
    change->writes[change->write_count++] = (struct wish_write){
        .key = change_keep(change,
                           cluster_key_node_wish(change->request->router->options.cluster, id)),
        .value = change_keep_value(change, &value),
        .revision = now != NULL ? now->mod_revision : 0,
    };
    holdfast__v1__change_node_response__init(response);
    response->replica_id = id;
    member_plan_count(plan, id, &response->shards_owned, &response->shards_held);
    change->response = &response->base;
    return ERR_OK;
}

void admin_change_node_handle(struct request *request)
{
    change_start(request, plan_node);
}
