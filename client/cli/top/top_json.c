#include "client/cli/top/top_page.h"

static json_t *number(double value)
{
    return value < 0 ? json_null() : json_real(value);
}

static json_t *whole(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static json_t *node_json(const struct top_node_row *row)
{
    const struct top_node *node = row->node;
    json_t *object =
        json_pack("{s:s, s:I, s:b, s:b, s:i, s:i}", "name", node->name, "replicaId",
                  (json_int_t)node->replica_id, "live", node->live, "answered", node->answered,
                  "shardsOwned", (int)node->owned, "shardsHeld", (int)node->held);

    json_object_set_new(object, "callsPerS", number(row->calls));
    json_object_set_new(object, "commitP50Ms", number(row->commit_p50));
    json_object_set_new(object, "commitP99Ms", number(row->commit_p99));
    json_object_set_new(object, "fsyncMs", number(row->fsync));
    if (!node->answered)
        return object;
    json_object_set_new(object, "replicasLag", whole(node->lag));
    json_object_set_new(object, "replicasSilentMs", whole(node->silent_ms));
    json_object_set_new(object, "unapplied", whole(node->unapplied));
    json_object_set_new(object, "sessions", whole(node->sessions));
    json_object_set_new(object, "diskFreeBytes", whole(node->disk_free_bytes));
    json_object_set_new(object, "diskState", json_string(node->disk_state));
    json_object_set_new(object, "residentBytes", whole(node->resident_bytes));
    return object;
}

static json_t *nodes_json(const struct top_view *view)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < view->node_count; i++)
        json_array_append_new(list, node_json(&view->nodes[i]));
    return list;
}

static json_t *methods_json(const struct top_view *view)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < view->method_count; i++) {
        const struct top_method_row *row = &view->methods[i];
        json_t *object = json_pack("{s:s, s:f, s:f, s:f}", "method", row->name, "perS", row->rate,
                                   "refusedPerS", row->refused, "unknownPerS", row->unknown);
        json_object_set_new(object, "p50Ms", number(row->p50));
        json_object_set_new(object, "p99Ms", number(row->p99));
        json_array_append_new(list, object);
    }
    return list;
}

static json_t *shards_json(const struct top_view *view)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < view->shard_count; i++) {
        const struct top_shard_row *row = &view->shards[i];
        json_array_append_new(list,
                              json_pack("{s:i, s:s, s:I, s:f, s:f}", "shard", (int)row->shard,
                                        "owner", row->owner_name, "ownerId", (json_int_t)row->owner,
                                        "writesPerS", row->writes, "readsPerS", row->reads));
    }
    return list;
}

static json_t *alerts_json(const struct top_view *view)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < view->alert_count; i++)
        json_array_append_new(list, json_pack("{s:s, s:s}", "alert", view->alerts[i].alert, "what",
                                              view->alerts[i].what));
    return list;
}

static json_t *router_json(const struct top_view *view)
{
    const struct top_router *router = &view->facts->router;
    json_t *object = json_pack("{s:s}", "name", router->name);

    json_object_set_new(object, "requestsPerS", number(view->requests));
    json_object_set_new(object, "failedPerS", number(view->failed));
    json_object_set_new(object, "p50Ms", number(view->p50));
    json_object_set_new(object, "p99Ms", number(view->p99));
    json_object_set_new(object, "inFlight", whole(router->in_flight));
    return object;
}

static json_t *targets_json(const struct top_targets *targets)
{
    json_t *list = json_array();
    json_t *object = json_pack("{s:s, s:b, s:I}", "of", targets->of, "stale", targets->after->stale,
                               "asOfMs", (json_int_t)targets->after->as_of_ms);

    for (uint32_t i = 0; i < targets->row_count; i++) {
        const struct top_target_row *row = &targets->rows[i];
        json_t *one = json_pack("{s:s, s:I}", "targetId", row->target->id, "count",
                                (json_int_t)row->target->count);
        json_object_set_new(one, "perS", number(row->rate));
        json_array_append_new(list, one);
    }
    json_object_set_new(object, "rows", list);
    json_object_set_new(object, "why",
                        targets->why[0] != 0 ? json_string(targets->why) : json_null());
    return object;
}

json_t *top_page_json(const struct top_view *view, const struct top_targets *targets)
{
    const struct top_facts *facts = view->facts;
    json_t *page = json_pack("{s:s, s:s, s:s, s:i, s:i}", "clusterId", facts->cluster_id,
                             "coordinator", facts->coordinator, "audit", facts->audit, "shardCount",
                             (int)facts->shard_count, "shardsServing", (int)facts->shards_serving);

    json_object_set_new(page, "sessions", whole(view->sessions));
    json_object_set_new(page, "transfersOpen", whole(view->transfers_open));
    json_object_set_new(page, "transfersOldestMs", whole(view->transfers_oldest_ms));
    json_object_set_new(page, "playersQuarantined", whole(view->players_quarantined));
    json_object_set_new(page, "router", router_json(view));
    json_object_set_new(page, "nodes", nodes_json(view));
    json_object_set_new(page, "methods", methods_json(view));
    json_object_set_new(page, "shards", shards_json(view));
    json_object_set_new(page, "alerts", alerts_json(view));
    if (targets != NULL)
        json_object_set_new(page, "targets", targets_json(targets));
    return page;
}
