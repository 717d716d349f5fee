#include "client/cli/doctor_gather.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/cli/admin_client.h"
#include "runtime/base/check.h"

static uint64_t wall_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void copy_text(char *to, size_t size, const char *text)
{
    snprintf(to, size, "%s", text);
}

static struct process_facts *find_node(const struct doctor_facts *facts, uint64_t replica_id)
{
    for (uint32_t i = 0; i < facts->process_count; i++) {
        if (facts->processes[i].role == PROCESS_NODE &&
            facts->processes[i].replica_id == replica_id)
            return &facts->processes[i];
    }
    return NULL;
}

static void take_cluster(struct doctor_facts *facts, const json_t *cluster)
{
    const json_t *nodes = json_object_get(cluster, "nodes");
    size_t i;
    const json_t *node;

    facts->cluster_known = true;
    copy_text(facts->coordinator, sizeof facts->coordinator, admin_text(cluster, "coordinator"));
    facts->replication_factor = (uint32_t)admin_number(cluster, "replicationFactor");
    facts->shard_count = (uint32_t)admin_number(cluster, "shardCount");
    json_array_foreach(nodes, i, node)
    {
        if (facts->process_count == DOCTOR_PROCESSES_MAX)
            return;
        struct process_facts *process = &facts->processes[facts->process_count++];
        process->role = PROCESS_NODE;
        process->replica_id = admin_number(node, "replicaId");
        process->live = json_is_true(json_object_get(node, "live"));
        /* A node that answers has memory in use. */
        process->answered = admin_number(node, "residentBytes") > 0;
        copy_text(process->name, sizeof process->name, admin_text(node, "name"));
        copy_text(process->version, sizeof process->version, admin_text(node, "version"));
    }
}

/* ---- shards ---- */

static void take_replica(struct doctor_facts *facts, struct shard_facts *shard,
                         const json_t *replica)
{
    const char *state = admin_text(replica, "state");
    struct process_facts *node = find_node(facts, admin_number(replica, "replicaId"));

    shard->members++;
    shard->unreachable += strcmp(state, "unreachable") == 0;
    shard->catching_up += strcmp(state, "catching_up") == 0;
    if (node != NULL) {
        node->damaged += strcmp(state, "damaged") == 0;
        node->quarantined += strcmp(state, "quarantined") == 0;
    }
}

/* Whether two replicas that are not set aside tell of different outcomes at one index. */
static bool has_diverged(const json_t *replicas)
{
    size_t i, k;
    const json_t *one, *other;

    json_array_foreach(replicas, i, one)
    {
        json_array_foreach(replicas, k, other)
        {
            if (k > i && admin_text(one, "outcomeHash")[0] != 0 &&
                admin_text(other, "outcomeHash")[0] != 0 &&
                strcmp(admin_text(one, "state"), "quarantined") != 0 &&
                strcmp(admin_text(other, "state"), "quarantined") != 0 &&
                admin_number(one, "appliedIndex") == admin_number(other, "appliedIndex") &&
                strcmp(admin_text(one, "outcomeHash"), admin_text(other, "outcomeHash")) != 0)
                return true;
        }
    }
    return false;
}

static void take_shard(struct doctor_facts *facts, const json_t *shard)
{
    const json_t *replicas = json_object_get(shard, "replicas");
    struct shard_facts *to = &facts->shards[facts->shards_listed++];
    size_t i;
    const json_t *replica;

    to->shard = (uint32_t)admin_number(shard, "shard");
    to->owner = admin_number(shard, "owner");
    to->serving = json_is_true(json_object_get(shard, "serving"));
    to->learner = admin_number(shard, "learner");
    to->transfers_open = admin_number(shard, "transfersOpen");
    to->transfers_oldest_ms = admin_number(shard, "transfersOldestMs");
    json_array_foreach(replicas, i, replica) take_replica(facts, to, replica);
    to->diverged = has_diverged(replicas);
}

static void ask_shards(struct doctor_facts *facts, struct admin_client *client)
{
    json_t *shards = admin_list(client, "AdminService/ListShards", "shards", json_object(),
                                &facts->shards_known);
    size_t i;
    const json_t *shard;

    json_array_foreach(shards, i, shard)
    {
        if (facts->shards_listed < DOCTOR_SHARDS_MAX)
            take_shard(facts, shard);
    }
    json_decref(shards);
}

static void ask_quarantine(struct doctor_facts *facts, struct admin_client *client)
{
    facts->quarantine_known = facts->shards_known && facts->shards_listed == facts->shard_count;
    for (uint32_t i = 0; i < facts->shards_listed; i++) {
        json_t *page = NULL;

        /* One that is not served would take the whole deadline. */
        if (facts->shards[i].serving)
            page = admin_call(client, "AdminService/ListQuarantined",
                              json_pack("{s:i}", "shard", (int)facts->shards[i].shard));
        facts->quarantine_known = facts->quarantine_known && page != NULL;
        facts->players_quarantined += (uint32_t)json_array_size(json_object_get(page, "players"));
        json_decref(page);
    }
}

/* ---- routers ---- */

static json_t *ask_router(struct router_facts *router, struct admin_client *client)
{
    json_t *cluster = admin_call(client, "AdminService/GetCluster", json_object());

    if (cluster == NULL) {
        copy_text(router->why, sizeof router->why, admin_client_why(client));
        return NULL;
    }
    router->answered = true;
    router->answer_ms = admin_client_took_ms(client);
    /* The first one found its way. */
    json_t *again = admin_call(client, "AdminService/GetCluster", json_object());
    if (again != NULL && admin_client_took_ms(client) < router->answer_ms)
        router->answer_ms = admin_client_took_ms(client);
    json_decref(again);
    return cluster;
}

static void ask_all(struct doctor_facts *facts, struct admin_client *client,
                    struct router_facts *router)
{
    json_t *cluster = ask_router(router, client);

    if (cluster != NULL && !facts->cluster_known) {
        take_cluster(facts, cluster);
        ask_shards(facts, client);
        ask_quarantine(facts, client);
    }
    json_decref(cluster);
}

err doctor_gather(const struct arguments *arguments, struct doctor_facts *ret_facts)
{
    const char *rest = arguments->endpoint;

    memset(ret_facts, 0, sizeof *ret_facts);
    ret_facts->now_ms = wall_ms();
    ret_facts->processes = mem_zalloc(DOCTOR_PROCESSES_MAX * sizeof *ret_facts->processes);
    ret_facts->shards = mem_zalloc(DOCTOR_SHARDS_MAX * sizeof *ret_facts->shards);
    while (rest[0] != 0) {
        size_t size = strcspn(rest, ",");
        struct admin_client *client;

        if (size >= DOCTOR_URL_BYTES || ret_facts->router_count == DOCTOR_ROUTERS_MAX) {
            fprintf(stderr, "holdfast: --endpoint takes at most %u URLs of at most %u bytes\n",
                    DOCTOR_ROUTERS_MAX, DOCTOR_URL_BYTES - 1);
            return ERR_INVALID;
        }
        struct router_facts *router = &ret_facts->routers[ret_facts->router_count++];
        snprintf(router->endpoint, sizeof router->endpoint, "%.*s", (int)size, rest);
        rest += size + (rest[size] == ',');
        if (admin_client_new(arguments, router->endpoint, &client) != ERR_OK)
            return ERR_INVALID;
        ask_all(ret_facts, client, router);
        admin_client_free(client);
    }
    return ERR_OK;
}

void doctor_facts_deinit(struct doctor_facts *facts)
{
    free(facts->processes);
    free(facts->shards);
    *facts = (struct doctor_facts){ 0 };
}
