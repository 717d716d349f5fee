/* admin: what is asked for once in a cluster's life. docs/etcd-restore.md. */
#include <stdio.h>

#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/verb.h"

static const struct command_option option_yes = { .flag = "yes", .meaning = "do not ask" };
static const struct command_option option_force = {
    .flag = "force",
    .meaning = "although no node says that etcd is older than it knows",
};

static const struct column shard_columns[] = {
    { .title = "SHARD", .path = "shard", .otherwise = "0" },
    { .title = "EPOCH IN ETCD", .path = "epochEtcd", .otherwise = "0" },
    { .title = "KNOWN", .path = "epochKnown", .otherwise = "0" },
    { .title = "MEMBERS IN ETCD", .path = "membersEtcd", .otherwise = "(none)" },
    { .title = "MEMBERS THEN", .path = "members" },
    { .title = NULL },
};

static long long number(const json_t *answer, const char *name)
{
    return (long long)json_integer_value(json_object_get(answer, name));
}

static void print_plan(const json_t *answer)
{
    const json_t *behind = json_object_get(answer, "shardsBehind");
    const json_t *silent = json_object_get(answer, "nodesSilent");

    printf(
        "etcd is older than %lld of the nodes know; %lld nodes answer, %zu that are registered do "
        "not\n",
        number(answer, "nodesDoubting"), number(answer, "nodes"), json_array_size(silent));
    printf("%lld shards get a new record; of %zu of them replicas know more than etcd\n",
           number(answer, "shards"), json_array_size(behind));
    if (number(answer, "shardsUnknown") > 0)
        printf("%lld shards neither etcd nor these nodes know: they BEGIN AGAIN, EMPTY. If they "
               "ever held "
               "anything, bring up all other nodes first\n",
               number(answer, "shardsUnknown"));
    printf("%lld game servers that etcd knows, and all it does not, register again\n",
           number(answer, "servers"));
    printf("generation %s becomes %s\n\n",
           json_string_value(json_object_get(answer, "generationBefore")),
           json_string_value(json_object_get(answer, "generation")));
    if (json_array_size(behind) > 0)
        print_table("shards of which replicas know more", behind, shard_columns);
}

static bool is_wanted(void)
{
    char line[16] = "";

    printf("\nPolicy, API keys and what was asked of nodes and shards stay as etcd has them: as of "
           "the backup.\nAccept this etcd? [y/N] ");
    fflush(stdout);
    return fgets(line, sizeof line, stdin) != NULL && (line[0] == 'y' || line[0] == 'Y');
}

static json_t *ask(const struct arguments *arguments, bool dry_run, int *ret_code)
{
    return call_json(arguments, "AdminService/AcceptEtcdRestore",
                     json_pack("{s:b, s:b}", "dryRun", dry_run, "force",
                               option_is_set(arguments, &option_force)),
                     ret_code);
}

static int accept_etcd_restore(const struct arguments *arguments)
{
    bool dry_run = option_is_set(arguments, &option_dry_run);
    int code = 0;

    if (!option_is_set(arguments, &option_yes) || dry_run) {
        json_t *plan = ask(arguments, true, &code);

        if (plan == NULL)
            return code;
        if (wants_json(arguments))
            print_json(plan);
        else
            print_plan(plan);
        json_decref(plan);
        if (dry_run)
            return 0;
        if (wants_json(arguments) || !is_wanted()) {
            fprintf(stderr, "holdfast: nothing was done; --yes accepts\n");
            return 1;
        }
    }
    json_t *done = ask(arguments, false, &code);

    if (done != NULL && wants_json(arguments))
        print_json(done);
    else if (done != NULL)
        printf("accepted: generation %s; holdfast status shows how shards come back\n",
               json_string_value(json_object_get(done, "generation")));
    json_decref(done);
    return code;
}

const struct verb verb_admin[] = {
    {
        .words = "admin accept-etcd-restore",
        .topic = VERB_TOPIC_BACKUP,
        .arguments = "",
        .summary = "go on with an etcd restored from a backup",
        .details = "It shows what would be done, and asks. See docs/etcd-restore.md.",
        .options = VERB_OPTIONS(&option_dry_run, &option_yes, &option_force, OPTIONS_OF_CALLS,
                                OPTIONS_OF_OUTPUT),
        .run = accept_etcd_restore,
    },
    { .words = NULL },
};
