#include <stdio.h>
#include <stdlib.h>

#include "client/cli/output.h"
#include "client/cli/shards.h"
#include "client/cli/verb.h"

static const struct column node_columns[] = {
    { .title = "NODE", .path = "name" },
    { .title = "REPLICA", .path = "replicaId" },
    { .title = "ADDRESS", .path = "address" },
    { .title = "LIVE", .path = "live", .otherwise = "false" },
    { .title = "OWNED", .path = "shardsOwned", .otherwise = "0" },
    { .title = "HELD", .path = "shardsHeld", .otherwise = "0" },
    { .title = "RESIDENT", .path = "residentBytes", .otherwise = "0" },
    { .title = "VERSION", .path = "version" },
    { .title = NULL },
};
static const struct column shard_columns[] = {
    { .title = "SHARD", .path = "shard", .otherwise = "0" },
    { .title = "EPOCH", .path = "epoch" },
    { .title = "OWNER", .path = "owner" },
    { .title = "PHASE", .path = "phase" },
    { .title = "SERVING", .path = "serving", .otherwise = "false" },
    { .title = "SESSIONS", .path = "sessions", .otherwise = "0" },
    { .title = "MEMBERS", .path = "members" },
    { .title = NULL },
};
static const struct column server_columns[] = {
    { .title = "SERVER", .path = "name" },
    { .title = "INCARNATION", .path = "incarnation" },
    { .title = "STATE", .path = "state" },
    { .title = NULL },
};

static void print_people(const json_t *cluster, const json_t *shards, const json_t *servers)
{
    const json_t *serving = json_object_get(cluster, "shardsServing");
    const json_t *count = json_object_get(cluster, "shardCount");
    const char *coordinator = json_string_value(json_object_get(cluster, "coordinator"));

    long long doubting = json_integer_value(json_object_get(cluster, "nodesDoubting"));

    if (doubting > 0)
        printf("ETCD WAS RESTORED FROM A BACKUP: %lld nodes know a newer one. No shard moves, and "
               "no game server registers, until:\n  holdfast admin accept-etcd-restore\n\n",
               doubting);
    printf("cluster %s   coordinator %s   shards serving %lld of %lld\n\n",
           json_string_value(json_object_get(cluster, "clusterId")),
           coordinator != NULL ? coordinator : "(none)", (long long)json_integer_value(serving),
           (long long)json_integer_value(count));
    print_table(NULL, json_object_get(cluster, "nodes"), node_columns);
    putchar('\n');
    print_table(NULL, shards, shard_columns);
    putchar('\n');
    print_table(NULL, json_object_get(servers, "servers"), server_columns);
}

int verb_status(const struct arguments *arguments)
{
    int code;
    json_t *cluster = call_json(arguments, "AdminService/GetCluster", json_object(), &code);

    if (cluster == NULL)
        return code;
    json_t *shards = shards_read(arguments, &code);
    json_t *servers =
        code == 0 ? call_json(arguments, "AdminService/ListServers", json_object(), &code) : NULL;
    if (code == 0 && wants_json(arguments)) {
        json_object_set(cluster, "shards", shards);
        json_object_set(cluster, "servers", json_object_get(servers, "servers"));
        print_json(cluster);
    } else if (code == 0) {
        print_people(cluster, shards, servers);
    }
    json_decref(servers);
    json_decref(shards);
    json_decref(cluster);
    return code;
}
