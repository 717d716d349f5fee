/* Whose a registration is: as it is remembered here, else as etcd says. */
#include <stdio.h>
#include <string.h>

#include "router/rpc/servers/servers.h"
#include "router/rpc/servers/servers_private.h"
#include "runtime/base/check.h"
#include "runtime/cluster/cluster_key.h"

static enum servers_claim judge(const struct server_record *record, const char *key)
{
    return key[0] == 0 || record->key[0] == 0 || strcmp(record->key, key) == 0
               ? SERVERS_CLAIM_OWN
               : SERVERS_CLAIM_FOREIGN;
}

/* Incarnations rise with the generation, and within it with etcd's revision. */
static bool is_to_come(const struct server_task *task, const struct etcd_range_result *result)
{
    const struct incarnation *asked = &task->incarnation;
    uint64_t revision = (uint64_t)result->header.revision;

    if (task->generation == 0)
        return false;
    return asked->generation > task->generation ||
           (asked->generation == task->generation && asked->revision > revision);
}

static void known_read(void *context, err e, const struct etcd_range_result *result)
{
    struct server_task *task = context;
    servers_claimed *claimed = task->claimed;
    void *user = task->user;
    enum servers_claim claim = SERVERS_CLAIM_UNSURE;
    struct server_record record;

    task->call = NULL;
    /* An older etcd knows nothing of a newer registration: that is no proof of its end. */
    if (e == ERR_OK && !etcd_rolled_back(task->servers->etcd)) {
        if (result->kv_count == 0) {
            claim = is_to_come(task, result) ? SERVERS_CLAIM_NEVER : SERVERS_CLAIM_GONE;
        } else if (server_record_decode(result->kvs[0].value, &record, NULL) == ERR_OK) {
            claim = judge(&record, task->record.key);
            servers_learn(task->servers, task->incarnation, &record);
        }
    }
    server_task_free(task);
    claimed(user, claim);
}

enum servers_claim servers_claim(struct servers *servers, const struct servers_claimant *claimant,
                                 servers_claimed *done, void *user)
{
    const struct server_entry *entry = servers_find(servers, claimant->incarnation);
    const struct cluster_key known =
        cluster_key_server_known(servers->cluster, claimant->incarnation);

    if (entry != NULL && entry->record.name[0] != 0)
        return judge(&entry->record, claimant->key);
    /* One that asks for many never keeps the others' heartbeats from etcd. */
    uint64_t owner = servers_owner_of(claimant->key);
    if (!caller_share_take(servers->claims, owner, 1, SERVERS_CLAIMS_MAX))
        return SERVERS_CLAIM_UNSURE;
    struct server_task *task = server_task_new(servers, claimant->timeout_ms);
    task->claims = true;
    task->claimant = owner;
    task->incarnation = claimant->incarnation;
    task->generation = claimant->generation;
    task->claimed = done;
    task->user = user;
    (void)snprintf(task->record.key, sizeof task->record.key, "%s", claimant->key);
    if (etcd_range(servers->etcd, &(struct etcd_range){ .key = cluster_key_slice(&known) },
                   known_read,
                   &(struct etcd_wait){ claimant->timeout_ms, task, &task->call }) == ERR_OK)
        return SERVERS_CLAIM_PENDING;
    server_task_free(task);
    return SERVERS_CLAIM_UNSURE;
}
