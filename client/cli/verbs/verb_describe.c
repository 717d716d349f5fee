/* favorites metadata, describe and undescribe: what targets are called and look like.
 * docs/favorites.md#metadata. */
#include <stdio.h>

#include "client/cli/console/answer.h"
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
static const struct command_option option_title = {
    .flag = "title",
    .value = "TEXT",
    .initial = "",
    .meaning = "what the target is called",
};
static const struct command_option option_thumbnail = {
    .flag = "thumbnail",
    .value = "URL",
    .initial = "",
    .meaning = "its picture, https://..",
};
static const struct command_option option_attributes = {
    .flag = "attributes",
    .value = "JSON",
    .initial = "",
    .meaning = "whatever else lists show, a JSON object",
};
static const struct command_option option_if_version = {
    .flag = "if-version",
    .value = "N",
    .initial = "",
    .meaning = "the version that must stand; 0: there must be none",
};

static const struct column told_columns[] = {
    { .title = "TARGET", .path = "targetId" },
    { .title = "VERSION", .path = "version", .otherwise = "-" },
    { .title = "TITLE", .path = "title", .otherwise = "" },
    { .title = "THUMBNAIL", .path = "thumbnailUrl", .otherwise = "" },
    { .title = "BY", .path = "changedBy", .otherwise = "-" },
    { .title = NULL },
};
static const struct column put_columns[] = {
    { .title = "TARGET", .path = "metadata.targetId" },
    { .title = "VERSION", .path = "metadata.version" },
    { .title = "TITLE", .path = "metadata.title", .otherwise = "" },
    { .title = "DUPLICATE", .path = "duplicate", .otherwise = "false" },
    { .title = NULL },
};

static json_t *request_of_target(const struct arguments *arguments)
{
    const char *version = option_text(arguments, &option_if_version);
    json_t *request =
        json_pack("{s:s, s:s}", "collection", option_text(arguments, &option_collection),
                  "targetId", arguments->words[0]);

    if (version[0] != '\0')
        json_object_set_new(request, "ifVersion", json_string(version));
    return request;
}

static int metadata(const struct arguments *arguments)
{
    json_t *request =
        json_pack("{s:s, s:o}", "collection", option_text(arguments, &option_collection),
                  "targetIds", target_words(arguments, 0));
    int code;

    json_t *answer =
        call_json(arguments, "FavoritesService/BatchGetTargetMetadata", request, &code);
    if (answer != NULL && wants_json(arguments)) {
        print_json(answer);
    } else if (answer != NULL) {
        print_table(NULL, json_object_get(answer, "metadata"), told_columns);
        if (json_is_true(json_object_get(answer, "metadataIncomplete")))
            printf("incomplete: %s\n", answer_text(answer, "metadataReason"));
    }
    json_decref(answer);
    return code;
}

static int describe(const struct arguments *arguments)
{
    const char *attributes = option_text(arguments, &option_attributes);
    json_t *request = request_of_target(arguments);

    json_object_set_new(request, "title", json_string(option_text(arguments, &option_title)));
    json_object_set_new(request, "thumbnailUrl",
                        json_string(option_text(arguments, &option_thumbnail)));
    if (attributes[0] != '\0') /* As text: the service says what is wrong with it. */
        json_object_set_new(request, "attributes", json_string(attributes));
    return target_change_call(arguments, "FavoritesService/PutTargetMetadata", request,
                              put_columns);
}

static int undescribe(const struct arguments *arguments)
{
    int code;
    json_t *answer = call_json(arguments, "FavoritesService/DeleteTargetMetadata",
                               request_of_target(arguments), &code);

    if (answer != NULL && wants_json(arguments))
        print_json(answer);
    else if (answer != NULL)
        printf("%s\n",
               json_is_true(json_object_get(answer, "deleted")) ? "deleted" : "there was none");
    json_decref(answer);
    return code;
}

const struct verb verb_describe[] = {
    {
        .words = "favorites metadata",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "TARGET..",
        .summary = "what targets are called and look like",
        .options = VERB_OPTIONS(&option_collection, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = metadata,
    },
    {
        .words = "favorites describe",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "TARGET",
        .summary = "say what a target is called and looks like",
        .details = "What is not given is empty from then on.",
        .options =
            VERB_OPTIONS(&option_collection, &option_title, &option_thumbnail, &option_attributes,
                         &option_if_version, &option_op_id, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = describe,
    },
    {
        .words = "favorites undescribe",
        .topic = VERB_TOPIC_PLAYER,
        .arguments = "TARGET",
        .summary = "remove what was said of a target",
        .options = VERB_OPTIONS(&option_collection, &option_if_version, OPTIONS_OF_CALLS,
                                OPTIONS_OF_OUTPUT),
        .run = undescribe,
    },
    { .words = NULL },
};
