/* events consumers: readers of events whose place the cluster keeps. docs/events.md. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/console/answer.h"
#include "client/cli/console/clock.h"
#include "client/cli/call/event_kind.h"
#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/verb.h"

#define PAGE_SIZE 100 /* More than a shard has. */

static const struct command_option option_version = {
    .flag = "if-version",
    .value = "N",
    .initial = "0",
    .meaning = "the consumer's version must be this one; without it whichever it has",
};
static const struct command_option option_rewind = {
    .flag = "rewind",
    .meaning = "let the consumer go back",
};

static const struct column columns[] = {
    { .title = "NAME", .path = "name" },
    { .title = "READS", .path = "reads" },
    { .title = "VERSION", .path = "version", .otherwise = "unreadable" },
    { .title = "COMMITTED", .path = "committed" },
    { .title = "BY", .path = "committedBy", .otherwise = "-" },
    { .title = "LAG EVENTS", .path = "lagEvents", .otherwise = "?" },
    { .title = "LAG S", .path = "lagSeconds", .otherwise = "?" },
    { .title = NULL },
};

/* ---- the table ---- */

/* "favorite,ledger player:42", or "all". */
static void reads_text(const json_t *consumer, char *text, size_t size)
{
    const char *prefix = answer_text(consumer, "entityPrefix");
    const char *entity = answer_text(consumer, "entity");
    size_t at = 0, i;
    const json_t *each;

    text[0] = '\0';
    json_array_foreach(json_object_get(consumer, "kinds"), i, each)
    {
        const char *word = event_kind_word(json_string_value(each));
        if (at < size)
            at += (size_t)snprintf(text + at, size - at, "%s%s", i > 0 ? "," : "",
                                   word != NULL ? word : "another");
    }
    if (at < size && (prefix[0] != '\0' || entity[0] != '\0'))
        (void)snprintf(text + at, size - at, "%s%s%s%s", at > 0 ? " " : "", prefix, entity,
                       prefix[0] != '\0' ? "*" : "");
    else if (at == 0)
        (void)snprintf(text, size, "all");
}

static void set_number(json_t *row, const char *key, uint64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, number);
    json_object_set_new(row, key, json_string(text));
}

/* A page of one event tells how much there is behind what is committed. */
static void lag_set(const struct arguments *arguments, json_t *row)
{
    int code = 0;
    json_t *page = call_json(
        arguments, "EventService/Poll",
        json_pack("{s:s, s:i}", "consumer", answer_text(row, "name"), "pageSize", 1), &code);
    const json_t *lag = json_object_get(page, "lag");

    if (json_object_get(lag, "events") != NULL)
        set_number(row, "lagEvents", answer_number(lag, "events"));
    if (lag != NULL)
        set_number(row, "lagSeconds", answer_number(lag, "oldestAgeMs") / 1000);
    json_decref(page);
}

static void row_complete(const struct arguments *arguments, json_t *row)
{
    char reads[512], when[UTC_TEXT_BYTES];
    uint64_t at_ms = answer_number(row, "committedAtMs");

    reads_text(row, reads, sizeof reads);
    json_object_set_new(row, "reads", json_string(reads));
    json_object_set_new(row, "committed", json_string(at_ms > 0 ? utc_text(at_ms, when) : "never"));
    if (answer_number(row, "version") > 0)
        lag_set(arguments, row);
}

static int list(const struct arguments *arguments)
{
    json_t *all = json_array(), *row;
    size_t i;
    int code = 0;
    json_t *cluster = call_json(arguments, "AdminService/GetCluster", json_object(), &code);
    int shards = (int)json_integer_value(json_object_get(cluster, "shardCount"));

    json_decref(cluster);
    for (int shard = 0; shard < shards && code == 0; shard++) {
        json_t *page =
            call_json(arguments, "EventService/ListConsumers",
                      json_pack("{s:i, s:i}", "shard", shard, "pageSize", PAGE_SIZE), &code);
        json_array_extend(all, json_object_get(page, "consumers"));
        json_decref(page);
    }
    json_array_foreach(all, i, row)
    {
        if (code == 0)
            row_complete(arguments, row);
    }
    if (code == 0 && wants_json(arguments))
        print_json(all);
    else if (code == 0 && json_array_size(all) == 0)
        printf("there are no consumers\n");
    else if (code == 0)
        print_table(NULL, all, columns);
    json_decref(all);
    return code;
}

/* ---- changes ---- */
static json_t *request_of(const struct arguments *arguments)
{
    return json_pack("{s:s, s:s}", "consumer", arguments->words[0], "opId",
                     option_text(arguments, &option_op_id));
}

/* Takes over `request`. */
static int change(const struct arguments *arguments, const char *method, json_t *request)
{
    int code = 0;
    json_t *answer = call_json(arguments, method, request, &code);
    const json_t *consumer = json_object_get(answer, "consumer");

    if (answer != NULL && wants_json(arguments))
        print_json(answer);
    else if (answer != NULL)
        printf("%s has version %" PRIu64 "%s\n", answer_text(consumer, "name"),
               answer_number(consumer, "version"),
               json_is_true(json_object_get(answer, "duplicate")) ? ", as before" : "");
    json_decref(answer);
    return code;
}

static int create(const struct arguments *arguments)
{
    if (!event_kind_check(arguments))
        return 2;
    json_t *request = request_of(arguments);
    event_filter_set(arguments, request);
    json_object_set_new(request, "cursor", json_string(option_text(arguments, &option_cursor)));
    return change(arguments, "EventService/CreateConsumer", request);
}

/* The version that --version names, or the one that it has; 0: *code says why there is none. */
static uint64_t version_of(const struct arguments *arguments, int *code)
{
    json_t *version = json_pack("{s:s}", "version", option_text(arguments, &option_version));
    uint64_t number = answer_number(version, "version");

    json_decref(version);
    if (number > 0)
        return number;
    json_t *answer = call_json(arguments, "EventService/GetConsumer",
                               json_pack("{s:s}", "consumer", arguments->words[0]), code);
    number = answer_number(json_object_get(answer, "consumer"), "version");
    json_decref(answer);
    return number;
}

static int commit(const struct arguments *arguments)
{
    int code = 1;
    uint64_t version = version_of(arguments, &code);

    if (version == 0)
        return code;
    json_t *request = request_of(arguments);
    json_object_set_new(request, "cursor", json_string(arguments->words[1]));
    set_number(request, "version", version);
    json_object_set_new(request, "rewind", json_boolean(option_is_set(arguments, &option_rewind)));
    return change(arguments, "EventService/CommitConsumer", request);
}

static int show(const struct arguments *arguments)
{
    int code = 0;
    json_t *answer = call_json(arguments, "EventService/GetConsumer",
                               json_pack("{s:s}", "consumer", arguments->words[0]), &code);

    if (answer != NULL)
        print_json(json_object_get(answer, "consumer"));
    json_decref(answer);
    return code;
}

static int drop(const struct arguments *arguments)
{
    int code = 0;
    json_t *answer = call_json(arguments, "EventService/DeleteConsumer",
                               json_pack("{s:s, s:s}", "consumer", arguments->words[0], "version",
                                         option_text(arguments, &option_version)),
                               &code);

    if (answer != NULL && wants_json(arguments))
        print_json(answer);
    else if (answer != NULL)
        printf(json_is_true(json_object_get(answer, "deleted")) ? "%s is deleted\n"
                                                                : "there was no consumer %s\n",
               arguments->words[0]);
    json_decref(answer);
    return code;
}

const struct verb verb_consumers[] = {
    {
        .words = "events consumers",
        .topic = VERB_TOPIC_LOOK,
        .arguments = "",
        .summary = "readers of events whose place is kept, and how far behind they are",
        .options = VERB_OPTIONS(OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = list,
    },
    {
        .words = "consumer show",
        .topic = VERB_TOPIC_LOOK,
        .arguments = "NAME",
        .summary = "one of them, with its cursor, as JSON",
        .options = VERB_OPTIONS(OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = show,
    },
    {
        .words = "consumer create",
        .topic = VERB_TOPIC_LOOK,
        .arguments = "NAME",
        .summary = "make one, from the oldest event that is kept or from a cursor",
        .options = VERB_OPTIONS(&option_event_kind, &option_event_prefix, &option_event_entity,
                                &option_cursor, &option_op_id, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = create,
    },
    {
        .words = "consumer commit",
        .topic = VERB_TOPIC_LOOK,
        .arguments = "NAME CURSOR",
        .summary = "what is before the cursor is done with",
        .options = VERB_OPTIONS(&option_version, &option_rewind, &option_op_id, OPTIONS_OF_CALLS,
                                OPTIONS_OF_OUTPUT),
        .run = commit,
    },
    {
        .words = "consumer delete",
        .topic = VERB_TOPIC_LOOK,
        .arguments = "NAME",
        .summary = "forget one, and its place",
        .options = VERB_OPTIONS(&option_version, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = drop,
    },
    { .words = NULL },
};
