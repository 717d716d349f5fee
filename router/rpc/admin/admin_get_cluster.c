#include <string.h>

#include "holdfast/v1/admin.pb-c.h"
#include "router/rpc/request/handlers.h"
#include "router/rpc/admin/node_survey.h"
#include "router/rpc/admin/policy_fetch.h"

#define NODES_MAX (CLUSTER_NODES_MAX * 2u) /* The live ones, and those that records still name. */

struct cluster_view {
    struct request *request;
    const struct node_survey *survey;
    Holdfast__V1__GetClusterResponse response;
};

static Holdfast__V1__NodeStatus *find_node(struct cluster_view *view, uint64_t replica_id)
{
    for (size_t i = 0; i < view->response.n_nodes; i++) {
        if (view->response.nodes[i]->replica_id == replica_id)
            return view->response.nodes[i];
    }
    return NULL;
}

static Holdfast__V1__NodeStatus *add_node(struct cluster_view *view, uint64_t replica_id)
{
    Holdfast__V1__NodeStatus *status;

    if (view->response.n_nodes >= NODES_MAX)
        return NULL;
    status = arena_alloc(view->request->arena, sizeof *status);
    holdfast__v1__node_status__init(status);
    status->replica_id = replica_id;
    view->response.nodes[view->response.n_nodes++] = status;
    return status;
}

static void add_live_nodes(struct cluster_view *view)
{
    uint32_t count;
    const struct node_record *nodes = shard_map_nodes(view->request->router->options.map, &count);
    struct arena *arena = view->request->arena;

    for (uint32_t i = 0; i < count; i++) {
        const Holdfast__Internal__V1__GetNodeStatusResponse *answer =
            node_survey_find(view->survey, nodes[i].replica_id);
        Holdfast__V1__NodeStatus *status = add_node(view, nodes[i].replica_id);

        if (status == NULL)
            return;
        status->name = arena_copy_text(arena, nodes[i].name);
        status->address = arena_copy_text(arena, nodes[i].address);
        status->zone = arena_copy_text(arena, nodes[i].zone);
        status->version = arena_copy_text(arena, nodes[i].version);
        status->live = true;
        if (answer != NULL && answer->node != NULL)
            status->resident_bytes = answer->node->resident_bytes;
    }
}

/* Counts what the records say, and names nodes that hold shards but have no lease. */
static void add_shards(struct cluster_view *view)
{
    const struct shard_map *map = view->request->router->options.map;

    for (uint32_t shard = 0; shard < view->response.shard_count; shard++) {
        const struct shard_entry *entry = shard_map_find(map, shard);
        const Holdfast__V1__ShardStatus *said;

        if (entry == NULL)
            continue;
        for (uint32_t i = 0; i < entry->record.member_count; i++) {
            uint64_t member = entry->record.members[i];
            Holdfast__V1__NodeStatus *node = find_node(view, member);

            if (node == NULL)
                node = add_node(view, member);
            if (node == NULL)
                continue;
            node->shards_held++;
            if (member == entry->record.owner)
                node->shards_owned++;
        }
        said = node_survey_find_shard(view->survey, entry->record.owner, shard);
        if (said != NULL && said->serving)
            view->response.shards_serving++;
    }
}

static void answer(struct cluster_view *view)
{
    const struct shard_map *map = view->request->router->options.map;
    const struct cluster_record *cluster = shard_map_cluster(map);
    const struct coordinator_record *coordinator = shard_map_find_coordinator(map);
    Holdfast__V1__GetClusterResponse *response = &view->response;
    struct arena *arena = view->request->arena;

    if (cluster == NULL) {
        request_fail_text(view->request, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNAVAILABLE,
                          "the router does not know the cluster yet");
        return;
    }
    response->cluster_id = arena_copy_text(arena, cluster->cluster_id);
    response->generation = cluster->generation;
    response->shard_count = cluster->shard_count;
    response->replication_factor = cluster->replication_factor;
    response->nodes_doubting = shard_map_doubts(map);
    if (response->nodes_doubting == 0 && etcd_rolled_back(view->request->router->options.etcd))
        response->nodes_doubting = 1; /* This router knows it, too. */
    if (coordinator != NULL)
        response->coordinator = arena_copy_text(arena, coordinator->name);
    response->nodes = arena_alloc(arena, NODES_MAX * sizeof(Holdfast__V1__NodeStatus *));
    add_live_nodes(view);
    add_shards(view);
    request_reply(view->request, &response->base);
}

/* Without etcd the rest is still worth telling. */
static void policy_known(void *user, Holdfast__V1__Policy *policy)
{
    struct cluster_view *view = user;

    view->response.policy = policy;
    answer(view);
}

static void surveyed(struct node_survey *survey)
{
    struct cluster_view *view = survey->user;

    view->survey = survey;
    policy_fetch(survey->request, policy_known, view);
}

void admin_get_cluster_handle(struct request *request)
{
    struct cluster_view *view = arena_zalloc(request->arena, sizeof *view);

    view->request = request;
    holdfast__v1__get_cluster_response__init(&view->response);
    node_survey_start(request, surveyed, view);
}
