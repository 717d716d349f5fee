/* holdfast status: the cluster at a glance. */
#include <stdio.h>

#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/console/shards.h"
#include "client/cli/top/status_page.h"
#include "client/cli/verb.h"

static const struct command_option option_shards = {
    .flag = "shards",
    .meaning = "every shard, not only those with something wrong",
};

static void print_people(const struct arguments *arguments, const struct status_answers *answers)
{
    struct buf page = { 0 };

    status_print(answers, option_is_set(arguments, &option_shards), &page);
    fwrite(page.data, 1, page.size, stdout);
    buf_deinit(&page);
}

/* The cluster's answer with a summary, and the other two in it. */
static void print_program(json_t *cluster, json_t *shards, json_t *servers)
{
    struct status_summary summary;

    status_count(&(struct status_answers){ cluster, shards, servers }, &summary);
    json_object_set_new(cluster, "summary", status_json(&summary));
    json_object_set(cluster, "shards", shards);
    json_object_set(cluster, "servers", servers);
    print_json(cluster);
}

static int status(const struct arguments *arguments)
{
    int code;
    json_t *cluster = call_json(arguments, "AdminService/GetCluster", json_object(), &code);
    if (cluster == NULL)
        return code;
    json_t *shards = shards_read(arguments, &code);
    json_t *servers =
        code == 0 ? call_json(arguments, "AdminService/ListServers", json_object(), &code) : NULL;
    json_t *rows = json_object_get(servers, "servers");
    const struct status_answers answers = { cluster, shards, rows };
    if (code == 0 && wants_json(arguments))
        print_program(cluster, shards, rows);
    else if (code == 0)
        print_people(arguments, &answers);
    json_decref(servers);
    json_decref(shards);
    json_decref(cluster);
    return code;
}

const struct verb verb_status[] = {
    {
        .words = "status",
        .topic = VERB_TOPIC_LOOK,
        .arguments = "[--shards]",
        .summary = "the cluster at a glance: nodes, and shards with something wrong",
        .options = VERB_OPTIONS(&option_shards, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = status,
    },
    { .words = NULL },
};
