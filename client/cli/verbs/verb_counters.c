/* counters: what players added to targets. docs/counters.md. */
#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/call/target_call.h"
#include "client/cli/verb.h"

static const struct column list_columns[] = {
    { .title = "TARGET", .path = "targetId" },
    { .title = "VALUE", .path = "value" },
    { .title = "ADDED AT MS", .path = "addedAtMs" },
    { .title = NULL },
};
static const struct column change_columns[] = {
    { .title = "VALUE", .path = "value", .otherwise = "0" },
    { .title = "TARGETS", .path = "targets", .otherwise = "0" },
    { .title = NULL },
};

static const struct page_method added_page = {
    .method = "CounterService/ListPlayerCounters",
    .rows = "counters",
    .page_size_max = 200,
    .columns = list_columns,
};

static json_t *request_of(const struct arguments *arguments)
{
    return json_pack("{s:s}", "counter", arguments->words[0]);
}

static json_t *request_of_player(const struct arguments *arguments)
{
    json_t *request = request_of(arguments);

    json_object_set_new(request, "playerId", json_string(arguments->words[1]));
    return request;
}

static int list(const struct arguments *arguments)
{
    return page_call_of(arguments, &added_page, request_of_player(arguments));
}

static int get(const struct arguments *arguments)
{
    json_t *request = request_of(arguments);

    json_object_set_new(request, "targetIds", target_words(arguments, 1));
    return target_counts_call(arguments, "CounterService/BatchGetCounters", request);
}

static int rank(const struct arguments *arguments)
{
    json_t *request = request_of(arguments);

    json_object_set_new(request, "targetId", json_string(arguments->words[1]));
    return target_rank_call(arguments, "CounterService/GetCounterRank", request);
}

static int top(const struct arguments *arguments)
{
    return target_top_call(arguments, "CounterService/GetCounterTop", request_of(arguments));
}

/* The router judges the amount: its message names the counter's limit. */
static int add(const struct arguments *arguments)
{
    json_t *request = request_of_player(arguments);

    json_object_set_new(request, "authority", json_string("unheld"));
    json_object_set_new(request, "targetId", json_string(arguments->words[2]));
    json_object_set_new(request, "amount", json_string(arguments->words[3]));
    return target_change_call(arguments, "CounterService/AddToCounter", request, change_columns);
}

const struct verb verb_counters[] = {
    {
        .words = "counters get",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "COUNTER TARGET..",
        .summary = "what all players added to each target",
        .details = TARGETS_DETAILS,
        .options = VERB_OPTIONS(&option_fresh, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = get,
    },
    {
        .words = "counters top",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "COUNTER",
        .summary = "the targets that the most was added to",
        .options = VERB_OPTIONS(&option_window, &option_limit, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = top,
    },
    {
        .words = "counters rank",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "COUNTER TARGET",
        .summary = "where a target stands among the 1000 highest",
        .options = VERB_OPTIONS(&option_window, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = rank,
    },
    {
        .words = "counters list",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "COUNTER PLAYER",
        .summary = "what a player added, by target",
        .options = VERB_OPTIONS(OPTIONS_OF_PAGES, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = list,
    },
    {
        .words = "counters add",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "COUNTER PLAYER TARGET AMOUNT",
        .summary = "add to what a player has of a target",
        .details = "It works only while no game server holds the player.",
        .options = VERB_OPTIONS(&option_op_id, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = add,
    },
    { .words = NULL },
};
