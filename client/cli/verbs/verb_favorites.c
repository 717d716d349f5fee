/* favorites: edges from players to targets. docs/favorites.md. */
#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/call/target_call.h"
#include "client/cli/verb.h"

static const struct command_option option_collection = {
    .flag = "collection",
    .value = "NAME",
    .initial = "favorites",
    .meaning = "the collection of edges",
};

static const struct column list_columns[] = {
    { .title = "TARGET", .path = "targetId" },
    { .title = "VER", .path = "ver" },
    { .title = "CREATED AT MS", .path = "createdAtMs" },
    { .title = NULL },
};
static const struct column status_columns[] = {
    { .title = "TARGET", .path = "targetId" },
    { .title = "FAVORITED", .path = "favorited", .otherwise = "false" },
    { .title = "VER", .path = "ver", .otherwise = "0" },
    { .title = "CREATED AT MS", .path = "createdAtMs", .otherwise = "-" },
    { .title = NULL },
};
static const struct column change_columns[] = {
    { .title = "TARGET", .path = "status.targetId" },
    { .title = "FAVORITED", .path = "status.favorited", .otherwise = "false" },
    { .title = "VER", .path = "status.ver" },
    { .title = "APPLIED", .path = "applied", .otherwise = "false" },
    { .title = "EDGES", .path = "edges", .otherwise = "0" },
    { .title = NULL },
};

static const struct page_method list_page = {
    .method = "FavoritesService/ListFavorites",
    .rows = "favorites",
    .page_size_max = 200,
    .columns = list_columns,
};

static json_t *request_of(const struct arguments *arguments)
{
    return json_pack("{s:s}", "collection", option_text(arguments, &option_collection));
}

static json_t *request_of_player(const struct arguments *arguments)
{
    json_t *request = request_of(arguments);

    json_object_set_new(request, "playerId", json_string(arguments->words[0]));
    return request;
}

static int list(const struct arguments *arguments)
{
    return page_call_of(arguments, &list_page, request_of_player(arguments));
}

static int status(const struct arguments *arguments)
{
    json_t *request = request_of_player(arguments);
    int code;

    json_object_set_new(request, "targetIds", target_words(arguments, 1));
    json_t *answer = call_json(arguments, "FavoritesService/BatchGetStatus", request, &code);
    if (answer != NULL && wants_json(arguments))
        print_json(answer);
    else if (answer != NULL)
        print_table(NULL, json_object_get(answer, "statuses"), status_columns);
    json_decref(answer);
    return code;
}

static int count(const struct arguments *arguments)
{
    json_t *request = request_of(arguments);

    json_object_set_new(request, "targetIds", target_words(arguments, 0));
    return target_counts_call(arguments, "FavoritesService/BatchGetCounts", request);
}

static int rank(const struct arguments *arguments)
{
    json_t *request = request_of(arguments);

    json_object_set_new(request, "targetId", json_string(arguments->words[0]));
    return target_rank_call(arguments, "FavoritesService/GetRank", request);
}

static int top(const struct arguments *arguments)
{
    return target_top_call(arguments, "FavoritesService/GetTop", request_of(arguments));
}

static int change(const struct arguments *arguments, const char *method)
{
    json_t *request = request_of_player(arguments);

    json_object_set_new(request, "targetId", json_string(arguments->words[1]));
    return target_change_call(arguments, method, request, change_columns);
}

static int add(const struct arguments *arguments)
{
    return change(arguments, "FavoritesService/Favorite");
}

static int remove_one(const struct arguments *arguments)
{
    return change(arguments, "FavoritesService/Unfavorite");
}

const struct verb verb_favorites[] = {
    {
        .words = "favorites list",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "PLAYER",
        .summary = "what a player favourited, the newest first",
        .options =
            VERB_OPTIONS(&option_collection, OPTIONS_OF_PAGES, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = list,
    },
    {
        .words = "favorites status",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "PLAYER TARGET..",
        .summary = "whether a player favourited these targets",
        .options = VERB_OPTIONS(&option_collection, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = status,
    },
    {
        .words = "favorites count",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "TARGET..",
        .summary = "how many players favourited each target",
        .details = TARGETS_DETAILS,
        .options =
            VERB_OPTIONS(&option_collection, &option_fresh, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = count,
    },
    {
        .words = "favorites rank",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "TARGET",
        .summary = "where a target stands among the 1000 with the most favourites",
        .options =
            VERB_OPTIONS(&option_collection, &option_window, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = rank,
    },
    {
        .words = "favorites top",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "",
        .summary = "the targets with the most favourites",
        .options = VERB_OPTIONS(&option_collection, &option_window, &option_limit, OPTIONS_OF_CALLS,
                                OPTIONS_OF_OUTPUT),
        .run = top,
    },
    {
        .words = "favorites add",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "PLAYER TARGET",
        .summary = "favourite a target for a player",
        .options =
            VERB_OPTIONS(&option_collection, &option_op_id, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = add,
    },
    {
        .words = "favorites remove",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "PLAYER TARGET",
        .summary = "take a player's favourite away",
        .options =
            VERB_OPTIONS(&option_collection, &option_op_id, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = remove_one,
    },
    { .words = NULL },
};
