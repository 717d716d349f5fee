/* Edges that wait for a review: docs/abuse.md. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/verb.h"
#include "client/sdk/client.h"

#define SHARD_MAX 65535u
#define ROWS_MAX  100000u

static const struct command_option option_shard = {
    .flag = "shard",
    .value = "N",
    .meaning = "of that shard alone",
};
static const struct command_option option_collection = {
    .flag = "collection",
    .value = "NAME",
    .meaning = "the collection; of lists: of that one alone",
};
static const struct command_option option_why = {
    .flag = "flagged-for",
    .value = "REASON",
    .meaning = "account_age, velocity, moderation or rejected",
};
static const struct command_option option_player = {
    .flag = "player",
    .value = "PLAYER",
    .meaning = "of that player alone",
};
static const struct command_option option_number_of = {
    .flag = "collection-number",
    .value = "N",
    .meaning = "in place of a name: of a collection that was deleted",
};
static const struct command_option option_all = {
    .flag = "all",
    .meaning = "all edges of the player in the collection",
};

static const struct column columns[] = {
    { .title = "PLAYER", .path = "playerId" },
    { .title = "TARGET", .path = "targetId" },
    { .title = "COLLECTION", .path = "collection" },
    { .title = "NUMBER", .path = "collectionNumber" },
    { .title = "FLAGGED FOR", .path = "reason", .prefix = "FLAG_REASON_" },
    { .title = "MADE MS", .path = "createdAtMs" },
    { .title = "FLAGGED MS", .path = "flaggedAtMs" },
    { .title = NULL },
};

static void set_text(json_t *request, const char *key, const char *text)
{
    if (text[0] != '\0')
        json_object_set_new(request, key, json_string(text));
}

/* ---- list ---- */
/* "account_age" as the API has it: FLAG_REASON_ACCOUNT_AGE. What is no reason, the router refuses.
 */
static void set_reason(json_t *request, const char *reason)
{
    char name[64] = "FLAG_REASON_";
    size_t size = strlen(name);

    if (reason[0] == '\0')
        return;
    for (; *reason != '\0' && size < sizeof name - 1; reason++)
        name[size++] = (char)toupper((unsigned char)*reason);
    name[size] = '\0';
    json_object_set_new(request, "reason", json_string(name));
}

/* From `first` to before `end`; false: they could not be told. */
static bool shards_of(const struct arguments *arguments, uint32_t *ret_first, uint32_t *ret_end,
                      int *ret_code)
{
    if (option_text(arguments, &option_shard)[0] != '\0') {
        *ret_code = 2;
        if (option_number(arguments, &option_shard, 0, SHARD_MAX, ret_first) != ERR_OK)
            return false;
        *ret_end = *ret_first + 1;
        *ret_code = 0;
        return true;
    }
    json_t *cluster = call_json(arguments, "AdminService/GetCluster", json_object(), ret_code);
    *ret_first = 0;
    *ret_end = (uint32_t)json_integer_value(json_object_get(cluster, "shardCount"));
    json_decref(cluster);
    return *ret_code == 0;
}

static json_t *read_shard(const struct arguments *arguments, uint32_t shard, int *ret_code)
{
    json_t *request = json_pack("{s:I}", "shard", (json_int_t)shard);

    set_text(request, "collection", option_text(arguments, &option_collection));
    set_text(request, "playerId", option_text(arguments, &option_player));
    set_reason(request, option_text(arguments, &option_why));
    return call_pages(arguments, "AdminService/ListFlaggedEdges", "edges", request, ret_code);
}

static int list(const struct arguments *arguments)
{
    json_t *all = json_array();
    uint32_t shard, end;
    int code;

    if (shards_of(arguments, &shard, &end, &code)) {
        for (; shard < end && code == 0 && json_array_size(all) < ROWS_MAX; shard++) {
            json_t *edges = read_shard(arguments, shard, &code);
            json_array_extend(all, edges);
            json_decref(edges);
        }
    }
    if (code == 0 && wants_json(arguments))
        print_json(all);
    else if (code == 0 && json_array_size(all) == 0)
        printf("no edge waits for a review\n");
    else if (code == 0)
        print_table(NULL, all, columns);
    if (code == 0 && json_array_size(all) >= ROWS_MAX)
        fprintf(stderr, "holdfast: there may be more; see --shard, --player and --flagged-for\n");
    json_decref(all);
    return code;
}

/* ---- decisions ---- */
/* Whether it says why, and targets or --all, one of both; else what is missing was said. */
static bool is_whole(const struct arguments *arguments, bool all)
{
    if (option_text(arguments, &option_reason)[0] == '\0')
        fprintf(stderr, "holdfast: a decision wants --reason TEXT: it is logged\n");
    else if (all == (arguments->word_count > 1))
        fprintf(stderr, "holdfast: a decision wants targets, or of flag --all: one of both\n");
    else
        return true;
    return false;
}

/* One command is several operations, each under an op_id that follows from the command's: a
 * repetition under that one repeats each. The first has the command's own; only `key:` takes any
 * text for the others. */
static void set_op_id(const struct arguments *arguments, uint32_t place, json_t *request)
{
    const char *op_id = option_text(arguments, &option_op_id);
    const char *kind = strncmp(op_id, "key:", 4) == 0 ? "" : "key:";

    json_object_set_new(request, "opId",
                        place > 0 ? json_sprintf("%s%s:%u", kind, op_id, place)
                                  : json_string(op_id));
}

/* `target` NULL: none. */
static json_t *request_of(const struct arguments *arguments, const char *target)
{
    json_t *targets = json_array();
    if (target != NULL)
        json_array_append_new(targets, json_string(target));
    json_t *request = json_pack("{s:s, s:s, s:s, s:o}", "playerId", arguments->words[0],
                                "authority", "system:admin", "reason",
                                option_text(arguments, &option_reason), "targetIds", targets);
    set_text(request, "collection", option_text(arguments, &option_collection));
    set_text(request, "collectionNumber", option_text(arguments, &option_number_of));
    return request;
}

static int tell(const struct arguments *arguments, const json_t *answer, const char *what)
{
    json_int_t edges = json_integer_value(json_object_get(answer, "edges"));

    if (wants_json(arguments))
        print_json(answer);
    else
        printf("%s: %lld %s of %s\n", what, (long long)edges, edges == 1 ? "edge" : "edges",
               arguments->words[0]);
    return 0;
}

/* Target by target, up to the first that is refused. */
static int decide(const struct arguments *arguments, const char *method, const char *what)
{
    json_int_t edges = 0;
    json_t *answer = NULL;
    int code = 0;

    if (!is_whole(arguments, false))
        return 2;
    for (uint32_t i = 1; i < arguments->word_count && code == 0; i++) {
        json_decref(answer);
        json_t *request = request_of(arguments, arguments->words[i]);
        set_op_id(arguments, i - 1, request);
        answer = call_json(arguments, method, request, &code);
        edges += json_integer_value(json_object_get(answer, "edges"));
    }
    if (answer != NULL) {
        json_object_set_new(answer, "edges", json_integer(edges));
        code = tell(arguments, answer, what);
    }
    json_decref(answer);
    return code;
}

static int accept_edges(const struct arguments *arguments)
{
    return decide(arguments, "AdminService/AcceptEdges", "accepted");
}

static int reject_edges(const struct arguments *arguments)
{
    return decide(arguments, "AdminService/RejectEdges", "rejected");
}

/* Call by call; what is flagged already stays so. */
static int flag_all(const struct arguments *arguments, json_t *request)
{
    json_int_t edges = 0;
    json_t *answer = NULL;
    bool more = true;
    int code = 0;

    json_object_set_new(request, "all", json_true());
    for (uint32_t i = 0; more && code == 0; i++) {
        set_op_id(arguments, i, request);
        json_decref(answer);
        answer = call_json(arguments, "AdminService/FlagEdges", json_incref(request), &code);
        edges += json_integer_value(json_object_get(answer, "edges"));
        const char *after = json_string_value(json_object_get(answer, "nextAfter"));
        more = after != NULL && after[0] != '\0';
        json_object_set_new(request, "after", json_string(more ? after : ""));
    }
    if (answer != NULL) {
        json_object_set_new(answer, "edges", json_integer(edges));
        code = tell(arguments, answer, "flagged");
    }
    json_decref(answer);
    json_decref(request);
    return code;
}

static int flag_edges(const struct arguments *arguments)
{
    if (!option_is_set(arguments, &option_all))
        return decide(arguments, "AdminService/FlagEdges", "flagged");
    return is_whole(arguments, true) ? flag_all(arguments, request_of(arguments, NULL)) : 2;
}

const struct verb verb_review[] = {
    {
        .words = "review list",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "",
        .summary = "flagged edges, which no count has until a moderator decides",
        .options = VERB_OPTIONS(&option_shard, &option_collection, &option_why, &option_player,
                                OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = list,
    },
    {
        .words = "review accept",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "PLAYER TARGET.. --reason TEXT",
        .summary = "let flagged edges count",
        .options = VERB_OPTIONS(&option_collection, &option_number_of, OPTIONS_OF_CHANGES,
                                OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = accept_edges,
    },
    {
        .words = "review reject",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "PLAYER TARGET.. --reason TEXT",
        .summary = "take flagged edges away",
        .details = "One that the player makes again is flagged again.",
        .options = VERB_OPTIONS(&option_collection, &option_number_of, OPTIONS_OF_CHANGES,
                                OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = reject_edges,
    },
    {
        .words = "review flag",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "PLAYER [TARGET..] --reason TEXT [--all]",
        .summary = "let no count have edges until they are reviewed",
        .options = VERB_OPTIONS(&option_collection, &option_all, OPTIONS_OF_CHANGES,
                                OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = flag_edges,
    },
    { .words = NULL },
};
