/* rebuild: counts of targets, or totals and top lists, computed again from what they count, shard
 * by shard and step by step, while writes go on. docs/rebuild.md. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/console/admin_client.h"
#include "client/cli/console/answer.h"
#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/console/shards.h"
#include "client/cli/verb.h"
#include "client/sdk/client.h"

#define TOLD_MAX  1000u /* Differences that are kept for the end. */
#define TRIES_MAX 10u   /* Of one step: carried out once, however often it is asked for. */
#define OP_ID     37u

static const struct command_option option_collection = {
    .flag = "collection",
    .value = "NAME",
    .meaning = "of this collection alone",
};
static const struct command_option option_counter = {
    .flag = "counter",
    .value = "NAME",
    .meaning = "of this counter alone",
};
static const struct command_option option_target = {
    .flag = "target",
    .value = "ID",
    .meaning = "of this target alone, with --collection or --counter",
};
static const struct command_option option_from = {
    .flag = "from",
    .value = "SOURCE",
    .initial = "edges",
    .meaning = "what is counted: edges; see details for events",
};
static const struct command_option option_id = {
    .flag = "id",
    .value = "ID",
    .meaning = "go on with the rebuild of that id",
};
static const struct command_option option_rows = {
    .flag = "rows",
    .value = "N",
    .initial = "256",
    .meaning = "look at so many rows of each kind in one entry: 1 to 512",
};

struct rebuild {
    const struct arguments *arguments;
    struct admin_client *client;
    const char *part; /* "REBUILD_PART_COUNTS" */
    char id[OP_ID];
    uint32_t rows;
    uint64_t targets, different, left_alone, looked; /* Of all shards. */
    json_t *differences;
};

static json_t *request_of(const struct rebuild *rebuild, uint32_t shard, uint64_t step)
{
    const struct arguments *arguments = rebuild->arguments;

    return json_pack("{s:i, s:s, s:I, s:s, s:b, s:s, s:s, s:s, s:i}", "shard", (int)shard,
                     "rebuildId", rebuild->id, "step", (json_int_t)step, "part", rebuild->part,
                     "dryRun", option_is_set(arguments, &option_dry_run), "collection",
                     option_text(arguments, &option_collection), "counter",
                     option_text(arguments, &option_counter), "targetId",
                     option_text(arguments, &option_target), "rows", (int)rebuild->rows);
}

/* NULL: it failed as often as it is tried, or is refused: written to standard error. */
static json_t *step(struct rebuild *rebuild, uint32_t shard, uint64_t number)
{
    for (uint32_t i = 0; i < TRIES_MAX; i++) {
        json_t *answer = admin_call(rebuild->client, "AdminService/RebuildCounts",
                                    request_of(rebuild, shard, number));
        if (answer != NULL)
            return answer;
        const char *why = admin_client_why(rebuild->client);
        if (strstr(why, "UNAVAILABLE") == NULL && strstr(why, "OUTCOME_UNKNOWN") == NULL &&
            strstr(why, "THROTTLED") == NULL && strstr(why, "no answer in time") == NULL)
            break;
    }
    fprintf(stderr, "shard %" PRIu32 ": %s\nto go on: the same command with --id %s\n", shard,
            admin_client_why(rebuild->client), rebuild->id);
    return NULL;
}

static void keep(struct rebuild *rebuild, uint32_t shard, const json_t *answer)
{
    json_t *one;
    size_t i;

    json_array_foreach(json_object_get(answer, "differences"), i, one)
    {
        if (json_array_size(rebuild->differences) == TOLD_MAX)
            return;
        json_t *told = json_deep_copy(one);
        json_object_set_new(told, "shard", json_integer((json_int_t)shard));
        json_array_append_new(rebuild->differences, told);
    }
}

static bool shard_of(struct rebuild *rebuild, uint32_t shard)
{
    uint64_t number = 0;

    for (;;) {
        json_t *answer = step(rebuild, shard, number);
        if (answer == NULL)
            return false;
        bool done = json_is_true(json_object_get(answer, "done"));
        number = answer_number(answer, "nextStep");
        keep(rebuild, shard, answer);
        if (done) {
            rebuild->targets += answer_number(answer, "targets");
            rebuild->different += answer_number(answer, "different");
            rebuild->left_alone += answer_number(answer, "leftAlone");
            rebuild->looked += answer_number(answer, "rows");
        }
        json_decref(answer);
        if (done)
            return true;
    }
}

static const struct column columns[] = {
    { .title = "SHARD", .path = "shard" },
    { .title = "NUMBER", .path = "number" },
    { .title = "TARGET", .path = "targetId" },
    { .title = "KEPT", .path = "kept", .otherwise = "0" },
    { .title = "COMPUTED", .path = "computed", .otherwise = "0" },
    { .title = "WINDOWS", .path = "windows" },
    { .title = NULL },
};

static void print(const struct rebuild *rebuild, size_t shards)
{
    bool dry_run = option_is_set(rebuild->arguments, &option_dry_run);

    if (wants_json(rebuild->arguments)) {
        json_t *all =
            json_pack("{s:s, s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:O}", "rebuildId", rebuild->id,
                      "part", rebuild->part, "dryRun", dry_run, "shards", (json_int_t)shards,
                      "targets", (json_int_t)rebuild->targets, "different",
                      (json_int_t)rebuild->different, "leftAlone", (json_int_t)rebuild->left_alone,
                      "rows", (json_int_t)rebuild->looked, "differences", rebuild->differences);
        print_json(all);
        json_decref(all);
        return;
    }
    if (json_array_size(rebuild->differences) > 0)
        print_table(NULL, rebuild->differences, columns);
    printf("%zu shards, %" PRIu64 " targets: %" PRIu64 " %s, %" PRIu64 " left alone\n", shards,
           rebuild->targets, rebuild->different, dry_run ? "differ" : "differed and are right",
           rebuild->left_alone);
}

/* False: used wrongly, which was said on standard error. */
static bool begin(struct rebuild *rebuild)
{
    const struct arguments *arguments = rebuild->arguments;
    const char *from = option_text(arguments, &option_from);
    const char *id = option_text(arguments, &option_id);

    if (strcmp(from, "edges") != 0) {
        fprintf(
            stderr,
            strcmp(from, "events") == 0
                ? "--from events: events are kept for some days, and additions to counters leave "
                  "none, so no count can be computed from them\n"
                : "--from: expected edges, got \"%s\"\n",
            from);
        return false;
    }
    if (strlen(id) >= sizeof rebuild->id) {
        fprintf(stderr, "--id: expected at most 36 bytes, got \"%s\"\n", id);
        return false;
    }
    if (id[0] != '\0')
        snprintf(rebuild->id, sizeof rebuild->id, "%s", id);
    else
        client_op_id(rebuild->id);
    return option_number(arguments, &option_rows, 1, 512, &rebuild->rows) == ERR_OK;
}

static int run(const struct arguments *arguments, const char *part)
{
    struct rebuild rebuild = { .arguments = arguments, .part = part };
    int code = 0;

    if (!begin(&rebuild))
        return 2;
    json_t *shards = shards_read(arguments, &code);
    if (shards == NULL)
        return code;
    if (admin_client_new(arguments, option_text(arguments, &option_endpoint), &rebuild.client) !=
        ERR_OK) {
        json_decref(shards);
        return 2;
    }
    rebuild.differences = json_array();
    for (size_t i = 0; i < json_array_size(shards) && code == 0; i++)
        code = shard_of(&rebuild, (uint32_t)i) ? 0 : 1;
    if (code == 0)
        print(&rebuild, json_array_size(shards));
    json_decref(rebuild.differences);
    admin_client_free(rebuild.client);
    json_decref(shards);
    return code;
}

static int counters(const struct arguments *arguments)
{
    return run(arguments, "REBUILD_PART_COUNTS");
}

static int tops(const struct arguments *arguments)
{
    return run(arguments, "REBUILD_PART_TOTALS");
}

#define DETAILS                                                                                    \
    "Goes from shard to shard in small steps, while writes go on. With --dry-run it compares "     \
    "alone."                                                                                       \
    " After a failure, --id goes on where the shards are. Events cannot be counted in place of "   \
    "edges: they are kept for some days, and additions to counters leave none."

const struct verb verb_rebuild[] = {
    {
        .words = "rebuild counters",
        .topic = VERB_TOPIC_BACKUP,
        .arguments = "",
        .summary = "compute counts of targets again from edges and what players added",
        .details = DETAILS,
        .options =
            VERB_OPTIONS(OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT, &option_collection, &option_counter,
                         &option_target, &option_from, &option_dry_run, &option_id, &option_rows),
        .run = counters,
    },
    {
        .words = "rebuild tops",
        .topic = VERB_TOPIC_BACKUP,
        .arguments = "",
        .summary = "compute totals and top lists again from the shards' counts",
        .details = DETAILS,
        .options =
            VERB_OPTIONS(OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT, &option_collection, &option_counter,
                         &option_target, &option_from, &option_dry_run, &option_id, &option_rows),
        .run = tops,
    },
    { .words = NULL },
};
