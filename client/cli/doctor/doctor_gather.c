#include "client/cli/doctor/doctor_gather.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/console/admin_client.h"
#include "client/cli/console/answer.h"
#include "client/cli/console/clock.h"
#include "client/cli/doctor/doctor_checks.h"
#include "client/cli/doctor/doctor_judge.h"
#include "client/cli/console/options.h"
#include "runtime/base/check.h"

#define FAILED_MAX 3u /* Calls of one list that took their whole deadline, maybe. */

static void copy_text(char *to, size_t size, const char *text)
{
    snprintf(to, size, "%s", text);
}

static void take_cluster(struct doctor_facts *facts, const json_t *cluster)
{
    const json_t *nodes = json_object_get(cluster, "nodes");
    size_t i;
    const json_t *node;

    facts->cluster_known = true;
    copy_text(facts->coordinator, sizeof facts->coordinator, answer_text(cluster, "coordinator"));
    facts->replication_factor = (uint32_t)answer_number(cluster, "replicationFactor");
    facts->shard_count = (uint32_t)answer_number(cluster, "shardCount");
    json_array_foreach(nodes, i, node)
    {
        if (facts->process_count == DOCTOR_PROCESSES_MAX)
            return;
        struct process_facts *process = &facts->processes[facts->process_count++];
        process->role = PROCESS_NODE;
        process->replica_id = answer_number(node, "replicaId");
        process->live = json_is_true(json_object_get(node, "live"));
        /* A node that answers has memory in use. ListProcesses says more. */
        process->answered = answer_number(node, "residentBytes") > 0;
        copy_text(process->name, sizeof process->name, answer_text(node, "name"));
        copy_text(process->version, sizeof process->version, answer_text(node, "version"));
    }
}

/* ---- processes and etcd ---- */

static enum disk_state disk_state_of(const char *text)
{
    static const char *const names[] = { "", "ok", "low", "full", "log_full" };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (strcmp(text, names[i]) == 0)
            return (enum disk_state)i;
    }
    return DISK_UNKNOWN;
}

/* How the router's clock stands to ours: its answer was made `half_ms` ago, or less. */
struct router_clock {
    int64_t ahead_ms;
    uint32_t half_ms;
};

static void take_status(const json_t *status, const struct router_clock *router,
                        struct process_facts *to)
{
    copy_text(to->name, sizeof to->name, answer_text(status, "name"));
    copy_text(to->version, sizeof to->version, answer_text(status, "version"));
    to->live = true;
    to->answered = json_is_true(json_object_get(status, "answered"));
    if (!to->answered)
        return;
    to->clock_known = answer_number(status, "clockMs") > 0;
    to->clock_ahead_ms = router->ahead_ms + answer_signed(status, "clockAheadMs");
    to->clock_error_ms =
        router->half_ms + (uint32_t)((answer_number(status, "roundTripMs") + 1) / 2);
    to->disk_state = disk_state_of(answer_text(status, "diskState"));
    to->disk_free_bytes = answer_number(status, "diskFreeBytes");
    to->disk_free_min_bytes = answer_number(status, "diskFreeMinBytes");
    to->counts_known = json_object_get(status, "countsDifferent") != NULL;
    to->counts_different = answer_number(status, "countsDifferent");
    to->counts_drift = answer_number(status, "countsDrift");
    to->totals_behind_ms = answer_number(status, "totalsBehindMs");
    to->consumers_known = json_object_get(status, "consumersBehindPercent") != NULL;
    to->consumers_behind_percent = (uint32_t)answer_number(status, "consumersBehindPercent");
    to->certificates_known = true;
    to->cluster_certificate_ms = answer_number(status, "clusterCertificateExpiresMs");
    to->public_certificate_ms = answer_number(status, "publicCertificateExpiresMs");
}

static void take_coordinator(struct doctor_facts *facts, const json_t *status)
{
    const char *audit = answer_text(status, "audit");

    facts->coordinator_halted = json_is_true(json_object_get(status, "halted"));
    facts->audit_known = audit[0] != 0;
    facts->audit_imbalance = strcmp(audit, "imbalanced") == 0;
}

/* Where it belongs; NULL: there is no room. */
static struct process_facts *place_of(struct doctor_facts *facts, const json_t *status)
{
    const char *role = answer_text(status, "role");
    struct process_facts *found = NULL;

    if (strcmp(role, "node") == 0)
        found = doctor_find_node(facts, answer_number(status, "replicaId"));
    if (found != NULL || facts->process_count == DOCTOR_PROCESSES_MAX)
        return found;
    found = &facts->processes[facts->process_count++];
    found->role = strcmp(role, "node") == 0     ? PROCESS_NODE
                  : strcmp(role, "router") == 0 ? PROCESS_ROUTER
                                                : PROCESS_COORDINATOR;
    found->replica_id = answer_number(status, "replicaId");
    return found;
}

static void take_etcd(struct doctor_facts *facts, const json_t *list)
{
    size_t i;
    const json_t *status;

    facts->etcd_known = true;
    json_array_foreach(list, i, status)
    {
        if (facts->etcd_count == DOCTOR_ETCD_MAX)
            return;
        struct etcd_facts *to = &facts->etcd[facts->etcd_count++];
        copy_text(to->endpoint, sizeof to->endpoint, answer_text(status, "endpoint"));
        copy_text(to->version, sizeof to->version, answer_text(status, "version"));
        copy_text(to->alarms, sizeof to->alarms, answer_text(status, "errors"));
        to->answered = json_is_true(json_object_get(status, "answered"));
        to->has_leader = json_is_true(json_object_get(status, "hasLeader"));
        to->database_bytes = answer_number(status, "databaseBytes");
        to->quota_bytes = answer_number(status, "quotaBytes");
        to->answer_ms = (uint32_t)answer_number(status, "answerMs");
    }
}

/* Of the first router all, of others themselves alone. */
static void ask_processes(struct doctor_facts *facts, struct admin_client *client, bool first)
{
    json_t *answer = admin_call(client, "AdminService/ListProcesses", json_object());
    const json_t *processes = json_object_get(answer, "processes");
    const json_t *self = json_array_get(processes, 0);
    int64_t now_ms = (int64_t)wall_ms();
    uint32_t took_ms = admin_client_took_ms(client);
    uint32_t worked_ms = (uint32_t)answer_number(answer, "tookMs");
    size_t i;
    const json_t *status;

    if (answer == NULL)
        return; /* One of before: what it does not tell is unknown. */
    struct router_clock clock = { .half_ms =
                                      took_ms > worked_ms ? (took_ms - worked_ms + 1) / 2 : 0 };
    clock.ahead_ms = answer_signed(self, "clockMs") + clock.half_ms - now_ms;
    json_array_foreach(processes, i, status)
    {
        struct process_facts *to = i == 0 || first ? place_of(facts, status) : NULL;
        if (to == NULL)
            continue;
        take_status(status, &clock, to);
        if (to->role == PROCESS_COORDINATOR)
            take_coordinator(facts, status);
    }
    if (first)
        take_etcd(facts, json_object_get(answer, "etcd"));
    json_decref(answer);
}

/* ---- shards ---- */

static void take_replica(struct doctor_facts *facts, struct shard_facts *shard,
                         const json_t *replica)
{
    const char *state = answer_text(replica, "state");
    struct process_facts *node = doctor_find_node(facts, answer_number(replica, "replicaId"));

    shard->members++;
    shard->unreachable += strcmp(state, "unreachable") == 0;
    shard->catching_up += strcmp(state, "catching_up") == 0;
    shard->quarantined += strcmp(state, "quarantined") == 0;
    shard->rows_wanting += strcmp(state, "rows_wanting") == 0;
    if (node != NULL) {
        node->damaged += strcmp(state, "damaged") == 0;
        node->quarantined += strcmp(state, "quarantined") == 0;
    }
}

/* Its owner's own log is compared: the router asks nodes one after another. */
static uint64_t log_index_of(const json_t *replicas, uint64_t replica_id)
{
    size_t i;
    const json_t *replica;

    json_array_foreach(replicas, i, replica)
    {
        if (answer_number(replica, "replicaId") == replica_id)
            return answer_number(replica, "logIndex");
    }
    return 0;
}

static struct pair_facts *pair_get(struct doctor_facts *facts, uint64_t owner, uint64_t member)
{
    for (uint32_t i = 0; i < facts->pair_count; i++) {
        if (facts->pairs[i].owner == owner && facts->pairs[i].member == member)
            return &facts->pairs[i];
    }
    if (facts->pair_count == DOCTOR_PAIRS_MAX)
        return NULL;
    struct pair_facts *pair = &facts->pairs[facts->pair_count++];

    *pair = (struct pair_facts){ .owner = owner, .member = member };
    return pair;
}

static void take_acknowledged(struct doctor_facts *facts, const struct shard_facts *shard,
                              const json_t *replicas, const json_t *replica)
{
    uint64_t stalled_ms = answer_number(replica, "stalledMs");
    uint64_t has = log_index_of(replicas, shard->owner);
    uint64_t acknowledged = answer_number(replica, "acknowledgedIndex");
    struct pair_facts *pair = NULL;

    /* Entries begin at 1: an owner who says so little is a program of before. */
    facts->pairs_unknown += shard->serving && has > 0 && acknowledged == 0 && stalled_ms == 0 &&
                            answer_number(replica, "replicaId") != shard->owner;
    if (stalled_ms >= STALL_WARN_MS && shard->owner != 0)
        pair = pair_get(facts, shard->owner, answer_number(replica, "replicaId"));
    if (pair == NULL)
        return;
    if (pair->shard_count++ < DOCTOR_NAMED_MAX)
        pair->shards[pair->shard_count - 1] = shard->shard;
    if (stalled_ms > pair->stalled_ms)
        pair->stalled_ms = stalled_ms;
    if (has > acknowledged && has - acknowledged > pair->lag_entries)
        pair->lag_entries = has - acknowledged;
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
            if (k > i && answer_text(one, "outcomeHash")[0] != 0 &&
                answer_text(other, "outcomeHash")[0] != 0 &&
                strcmp(answer_text(one, "state"), "quarantined") != 0 &&
                strcmp(answer_text(other, "state"), "quarantined") != 0 &&
                answer_number(one, "appliedIndex") == answer_number(other, "appliedIndex") &&
                strcmp(answer_text(one, "outcomeHash"), answer_text(other, "outcomeHash")) != 0)
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

    to->shard = (uint32_t)answer_number(shard, "shard");
    to->owner = answer_number(shard, "owner");
    to->serving = json_is_true(json_object_get(shard, "serving"));
    to->learner = answer_number(shard, "learner");
    to->transfers_open = answer_number(shard, "transfersOpen");
    to->transfers_oldest_ms = answer_number(shard, "transfersOldestMs");
    json_array_foreach(replicas, i, replica)
    {
        take_replica(facts, to, replica);
        take_acknowledged(facts, to, replicas, replica);
    }
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
    for (uint32_t i = 0, failed = 0; i < facts->shards_listed && failed < FAILED_MAX; i++) {
        json_t *page = NULL;

        /* One that is not served would take the whole deadline. */
        if (facts->shards[i].serving)
            page = admin_call(client, "AdminService/ListQuarantined",
                              json_pack("{s:i}", "shard", (int)facts->shards[i].shard));
        failed += facts->shards[i].serving && page == NULL;
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

    if (cluster != NULL && facts->cluster_known) {
        ask_processes(facts, client, false);
    } else if (cluster != NULL) {
        take_cluster(facts, cluster);
        ask_processes(facts, client, true);
        ask_shards(facts, client);
        ask_quarantine(facts, client);
    }
    json_decref(cluster);
}

err doctor_gather(const struct arguments *arguments, struct doctor_facts *ret_facts)
{
    const char *rest = option_text(arguments, &option_endpoint);
    struct slice one;

    memset(ret_facts, 0, sizeof *ret_facts);
    ret_facts->now_ms = wall_ms();
    ret_facts->processes = mem_zalloc(DOCTOR_PROCESSES_MAX * sizeof *ret_facts->processes);
    ret_facts->shards = mem_zalloc(DOCTOR_SHARDS_MAX * sizeof *ret_facts->shards);
    ret_facts->pairs = mem_zalloc(DOCTOR_PAIRS_MAX * sizeof *ret_facts->pairs);
    while (list_next(&rest, &one)) {
        struct admin_client *client;

        if (one.size >= DOCTOR_URL_BYTES || ret_facts->router_count == DOCTOR_ROUTERS_MAX) {
            fprintf(stderr, "holdfast: --endpoint takes at most %u URLs of at most %u bytes\n",
                    DOCTOR_ROUTERS_MAX, DOCTOR_URL_BYTES - 1);
            return ERR_INVALID;
        }
        struct router_facts *router = &ret_facts->routers[ret_facts->router_count++];
        snprintf(router->endpoint, sizeof router->endpoint, "%.*s", (int)one.size,
                 (const char *)one.data);
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
    free(facts->pairs);
    *facts = (struct doctor_facts){ 0 };
}
