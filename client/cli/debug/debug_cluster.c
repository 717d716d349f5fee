#include "client/cli/console/admin_client.h"
#include "client/cli/console/answer.h"
#include "client/cli/debug/debug_bundle.h"
#include "client/cli/console/options.h"

#include <stdio.h>
#include <string.h>

#define EVENT_PAGES_MAX 64u
#define INCIDENT_PAGE   1000
#define FAILED_MAX      3u /* Calls of one list that took their whole deadline, maybe. */

static json_t *ask(struct bundle *bundle, struct admin_client *client, const char *method,
                   const char *name)
{
    json_t *answer = admin_call(client, method, json_object());

    if (answer == NULL)
        bundle_miss(bundle, name, "%s: %s", method, admin_client_why(client));
    return answer;
}

/* An answer as it is. */
static void take(struct bundle *bundle, struct admin_client *client, const char *method,
                 const char *name)
{
    json_t *answer = ask(bundle, client, method, name);

    if (answer != NULL)
        bundle_add_json(bundle, name, answer);
}

/* Names of game servers are the game's own: how many there are will do. */
static void take_servers(struct bundle *bundle, struct admin_client *client)
{
    json_t *answer = ask(bundle, client, "AdminService/ListServers", "servers.json");
    size_t live = 0, i;
    const json_t *server;
    const json_t *servers = json_object_get(answer, "servers");

    if (answer == NULL)
        return;
    json_array_foreach(servers, i, server) live +=
        strcmp(answer_text(server, "state"), "live") == 0;
    bundle_add_json(bundle, "servers.json",
                    json_pack("{s:I, s:I}", "servers", (json_int_t)json_array_size(servers), "live",
                              (json_int_t)live));
    json_decref(answer);
}

static void take_quarantine(struct bundle *bundle, struct admin_client *client,
                            const json_t *shards)
{
    json_t *all = json_array();
    uint32_t failed = 0;
    size_t i;
    const json_t *shard;

    json_array_foreach(shards, i, shard)
    {
        json_int_t number = (json_int_t)answer_number(shard, "shard");
        json_t *page = NULL;

        if (!json_is_true(json_object_get(shard, "serving"))) {
            bundle_miss(bundle, "quarantine.json", "shard %lld is not served", (long long)number);
            continue;
        }
        page =
            admin_call(client, "AdminService/ListQuarantined", json_pack("{s:I}", "shard", number));
        if (page == NULL)
            bundle_miss(bundle, "quarantine.json", "shard %lld: %s", (long long)number,
                        admin_client_why(client));
        json_array_extend(all, json_object_get(page, "players"));
        json_decref(page);
        failed += page == NULL;
        if (failed == FAILED_MAX) {
            bundle_miss(bundle, "quarantine.json", "the shards after it were not asked");
            break;
        }
    }
    bundle_add_json(bundle, "quarantine.json", all);
}

static void take_transfers(struct bundle *bundle, const json_t *shards)
{
    json_t *open = json_array();
    size_t i;
    json_t *shard;

    json_array_foreach(shards, i, shard)
    {
        if (answer_number(shard, "transfersOpen") > 0)
            json_array_append_new(
                open, json_pack("{s:I, s:I, s:I, s:I}", "shard",
                                (json_int_t)answer_number(shard, "shard"), "open",
                                (json_int_t)answer_number(shard, "transfersOpen"), "oldestMs",
                                (json_int_t)answer_number(shard, "transfersOldestMs"), "retried",
                                (json_int_t)answer_number(shard, "transfersRetried")));
    }
    bundle_add_json(bundle, "transfers.json", open);
}

static void take_shards(struct bundle *bundle, struct admin_client *client)
{
    bool whole;
    json_t *shards = admin_list(client, "AdminService/ListShards", "shards", json_object(), &whole);

    if (!whole)
        bundle_miss(bundle, "shards.json", "not all were listed: %s", admin_client_why(client));
    take_quarantine(bundle, client, shards);
    take_transfers(bundle, shards);
    bundle_add_json(bundle, "shards.json", shards);
}

/* Nodes tell the oldest first: all are read, the newest are kept. */
static void take_incidents(struct bundle *bundle, struct admin_client *client)
{
    json_t *incidents = json_array();
    json_t *cursor = json_string("");
    bool more = true;

    for (uint32_t i = 0; more && i < EVENT_PAGES_MAX; i++) {
        json_t *page =
            admin_call(client, "AdminService/ListIncidents",
                       json_pack("{s:O, s:i}", "cursor", cursor, "pageSize", INCIDENT_PAGE));
        if (page == NULL)
            bundle_miss(bundle, "incidents.json", "%s", admin_client_why(client));
        for (size_t k = 0; k < json_array_size(json_object_get(page, "unreachable")); k++)
            bundle_miss(bundle, "incidents.json", "a node did not answer");
        json_array_extend(incidents, json_object_get(page, "incidents"));
        while (json_array_size(incidents) > BUNDLE_INCIDENTS_MAX)
            json_array_remove(incidents, 0);
        more = json_is_true(json_object_get(page, "more"));
        json_decref(cursor);
        cursor = json_string(answer_text(page, "nextCursor"));
        json_decref(page);
    }
    json_decref(cursor);
    bundle_add_json(bundle, "incidents.json", incidents);
}

/* The first router that answers; NULL: none does. */
static struct admin_client *find_router(struct bundle *bundle)
{
    const char *rest = option_text(bundle->arguments, &option_endpoint);
    struct slice one;

    while (list_next(&rest, &one)) {
        char endpoint[256];
        struct admin_client *client;

        snprintf(endpoint, sizeof endpoint, "%.*s", (int)one.size, (const char *)one.data);
        if (admin_client_new(bundle->arguments, endpoint, &client) != ERR_OK)
            return NULL;
        json_t *cluster = admin_call(client, "AdminService/GetCluster", json_object());
        if (cluster != NULL) {
            bundle_add_json(bundle, "cluster.json", cluster);
            return client;
        }
        bundle_miss(bundle, "cluster.json", "%s: %s", endpoint, admin_client_why(client));
        admin_client_free(client);
    }
    return NULL;
}

void bundle_take_cluster(struct bundle *bundle)
{
    struct admin_client *client = find_router(bundle);

    if (client == NULL) {
        bundle_miss(bundle, "cluster", "no router answers: the lists of the cluster are missing");
        return;
    }
    take(bundle, client, "AdminService/ListProcesses", "processes.json");
    take(bundle, client, "AdminService/GetLoad", "load.json");
    take_servers(bundle, client);
    take_shards(bundle, client);
    take_incidents(bundle, client);
    admin_client_free(client);
}
