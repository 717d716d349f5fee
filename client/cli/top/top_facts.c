#include "client/cli/top/top_facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/console/admin_client.h"
#include "client/cli/console/answer.h"
#include "runtime/base/check.h"

struct top_facts *top_facts_new(void)
{
    struct top_facts *facts = mem_zalloc(sizeof *facts);

    facts->nodes = mem_zalloc(TOP_NODES_MAX * sizeof *facts->nodes);
    facts->shards = mem_zalloc(TOP_SHARDS_MAX * sizeof *facts->shards);
    return facts;
}

static void forget(struct top_facts *facts)
{
    for (uint32_t i = 0; i < facts->node_count; i++)
        free(facts->nodes[i].methods);
    facts->node_count = 0;
}

void top_facts_free(struct top_facts *facts)
{
    if (facts == NULL)
        return;
    forget(facts);
    free(facts->nodes);
    free(facts->shards);
    free(facts);
}

static void copy(char *to, size_t size, const char *text)
{
    snprintf(to, size, "%s", text);
}

static void take_latency(struct top_latency *latency, const json_t *buckets)
{
    size_t i;
    const json_t *bucket;

    json_array_foreach(buckets, i, bucket)
    {
        if (i < TOP_BUCKETS)
            latency->buckets[i] = json_is_string(bucket)
                                      ? strtoull(json_string_value(bucket), NULL, 10)
                                      : (uint64_t)json_integer_value(bucket);
    }
}

static struct top_node *node_add(struct top_facts *facts, uint64_t replica_id)
{
    struct top_node *node = (struct top_node *)top_facts_find(facts, replica_id);

    if (node != NULL || facts->node_count == TOP_NODES_MAX)
        return node;
    node = &facts->nodes[facts->node_count++];
    *node = (struct top_node){ .replica_id = replica_id };
    snprintf(node->name, sizeof node->name, "%llu", (unsigned long long)replica_id);
    return node;
}

static void take_cluster(struct top_facts *facts, const json_t *cluster)
{
    size_t i;
    const json_t *said;

    copy(facts->cluster_id, sizeof facts->cluster_id, answer_text(cluster, "clusterId"));
    copy(facts->coordinator, sizeof facts->coordinator, answer_text(cluster, "coordinator"));
    facts->shard_count = (uint32_t)answer_number(cluster, "shardCount");
    facts->shards_serving = (uint32_t)answer_number(cluster, "shardsServing");
    json_array_foreach(json_object_get(cluster, "nodes"), i, said)
    {
        struct top_node *node = node_add(facts, answer_number(said, "replicaId"));
        if (node == NULL)
            return;
        if (answer_text(said, "name")[0] != 0)
            copy(node->name, sizeof node->name, answer_text(said, "name"));
        node->live = json_is_true(json_object_get(said, "live"));
        node->owned = (uint32_t)answer_number(said, "shardsOwned");
        node->held = (uint32_t)answer_number(said, "shardsHeld");
    }
}

static void take_method(struct top_node *node, const json_t *said)
{
    const char *name = answer_text(said, "method");

    if (node->method_count == TOP_METHODS_MAX)
        return;
    struct top_method *method = &node->methods[node->method_count++];
    /* Without the package: services are told apart by their names alone. */
    for (const char *dot = strchr(name, '.'); dot != NULL; dot = strchr(name, '.'))
        name = dot + 1;
    copy(method->name, sizeof method->name, name);
    method->ok = answer_number(said, "ok");
    method->refused = answer_number(said, "refused");
    method->elsewhere = answer_number(said, "elsewhere");
    method->unknown = answer_number(said, "unknown");
    take_latency(&method->latency, json_object_get(said, "buckets"));
}

static void take_shards(struct top_facts *facts, uint64_t owner, const json_t *shards)
{
    size_t i;
    const json_t *said;

    json_array_foreach(shards, i, said)
    {
        uint64_t number = answer_number(said, "shard");
        if (number < TOP_SHARDS_MAX)
            facts->shards[number] = (struct top_shard){ .owner = owner,
                                                        .proposed = answer_number(said, "proposed"),
                                                        .reads = answer_number(said, "reads") };
    }
}

static void take_counters(struct top_node *node, const json_t *said)
{
    node->life = answer_number(said, "life");
    node->at_us = answer_number(said, "atUs");
    node->owned = (uint32_t)answer_number(said, "shardsOwned");
    node->held = (uint32_t)answer_number(said, "shardsHeld");
    node->sessions = answer_number(said, "sessions");
    node->resident_bytes = answer_number(said, "residentBytes");
    node->disk_free_bytes = answer_number(said, "diskFreeBytes");
    copy(node->disk_state, sizeof node->disk_state, answer_text(said, "diskState"));
    node->syncs = answer_number(said, "logSyncs");
    node->sync_us = answer_number(said, "logSyncUs");
    node->transfers_open = answer_number(said, "transfersOpen");
    node->transfers_oldest_ms = answer_number(said, "transfersOldestMs");
    node->players_quarantined = answer_number(said, "playersQuarantined");
    node->shards_quarantined = answer_number(said, "shardsQuarantined");
    node->lag = answer_number(said, "replicasLag");
    node->silent_ms = answer_number(said, "replicasSilentMs");
    node->unapplied = answer_number(said, "unapplied");
    take_latency(&node->commits, json_object_get(said, "commitBuckets"));
}

static void take_node(struct top_facts *facts, const json_t *said)
{
    struct top_node *node = node_add(facts, answer_number(said, "replicaId"));
    size_t i;
    const json_t *method;

    if (node == NULL || node->answered)
        return;
    node->answered = true;
    take_counters(node, said);
    node->methods = mem_zalloc(TOP_METHODS_MAX * sizeof *node->methods);
    json_array_foreach(json_object_get(said, "methods"), i, method) take_method(node, method);
    take_shards(facts, node->replica_id, json_object_get(said, "shards"));
}

static void take_router(struct top_router *router, const json_t *said)
{
    *router = (struct top_router){ .life = answer_number(said, "life"),
                                   .at_us = answer_number(said, "atUs"),
                                   .answered = answer_number(said, "answered"),
                                   .failed = answer_number(said, "failed"),
                                   .in_flight = answer_number(said, "inFlight") };
    copy(router->name, sizeof router->name, answer_text(said, "name"));
    take_latency(&router->latency, json_object_get(said, "buckets"));
}

static void take_audit(struct top_facts *facts, const json_t *processes)
{
    size_t i;
    const json_t *process;

    facts->audit[0] = 0;
    json_array_foreach(json_object_get(processes, "processes"), i, process)
    {
        if (answer_text(process, "audit")[0] != 0)
            copy(facts->audit, sizeof facts->audit, answer_text(process, "audit"));
    }
}

static int by_name(const void *a, const void *b)
{
    const struct top_node *left = a, *right = b;
    int order = strcmp(left->name, right->name);

    if (order != 0)
        return order;
    return left->replica_id < right->replica_id ? -1 : left->replica_id > right->replica_id;
}

void top_facts_take(struct top_facts *facts, const json_t *cluster, const json_t *load,
                    const json_t *processes)
{
    size_t i;
    const json_t *node;

    forget(facts);
    memset(facts->shards, 0, TOP_SHARDS_MAX * sizeof *facts->shards);
    take_cluster(facts, cluster);
    json_array_foreach(json_object_get(load, "nodes"), i, node) take_node(facts, node);
    take_router(&facts->router, json_object_get(load, "router"));
    take_audit(facts, processes);
    qsort(facts->nodes, facts->node_count, sizeof *facts->nodes, by_name);
}

const struct top_node *top_facts_find(const struct top_facts *facts, uint64_t replica_id)
{
    for (uint32_t i = 0; i < facts->node_count; i++) {
        if (facts->nodes[i].replica_id == replica_id)
            return &facts->nodes[i];
    }
    return NULL;
}
