#include <stdio.h>
#include <string.h>

#include "client/cli/console/answer.h"
#include "client/cli/console/clock.h"
#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/verb.h"

#define HEARTBEAT_MS 5000
#define SILENCE_MS   15000u /* Then the router is not there any more. */
#define RESUME_MS    500

static const struct command_option option_follow = {
    .flag = "follow",
    .meaning = "go on with what happens",
};

static const char kind_prefix[] = "INCIDENT_KIND_";

static const char *kind_of(const json_t *incident)
{
    const char *kind = answer_text(incident, "kind");

    return strncmp(kind, kind_prefix, sizeof kind_prefix - 1) == 0 ? kind + sizeof kind_prefix - 1
                                                                   : kind;
}

static void print_incident(const json_t *incident)
{
    char when[UTC_TEXT_BYTES];

    printf("%s %s", utc_text(answer_number(incident, "atMs"), when), kind_of(incident));
    if (answer_text(incident, "what")[0] != 0)
        printf(" %s", answer_text(incident, "what"));
    if (answer_text(incident, "count")[0] != 0)
        printf(" count=%s", answer_text(incident, "count"));
    if (answer_text(incident, "playerId")[0] != 0)
        printf(" player=%s", answer_text(incident, "playerId"));
    if (answer_text(incident, "opId")[0] != 0)
        printf(" id=%s", answer_text(incident, "opId"));
    if (answer_text(incident, "method")[0] != 0)
        printf(" method=%s", answer_text(incident, "method"));
    if (answer_text(incident, "by")[0] != 0)
        printf(" by=%s", answer_text(incident, "by"));
    printf(" shard=%d node=%s\n", (int)json_integer_value(json_object_get(incident, "shard")),
           answer_text(incident, "replicaId"));
}

static void print_gaps(const json_t *page)
{
    const json_t *gap;
    size_t i;

    json_array_foreach(json_object_get(page, "gaps"), i, gap)
    {
        const char *lost = answer_text(gap, "lost");
        fprintf(stderr, "holdfast: node %s: %s incidents have been forgotten\n",
                answer_text(gap, "replicaId"), lost[0] != 0 ? lost : "some");
    }
}

static void print_page(const struct arguments *arguments, const json_t *page, const char *kind)
{
    const json_t *incident;
    size_t i;

    json_array_foreach(json_object_get(page, "incidents"), i, incident)
    {
        if (kind != NULL && strcmp(kind_of(incident), kind) != 0)
            continue;
        if (wants_json(arguments))
            print_json(incident);
        else
            print_incident(incident);
    }
    print_gaps(page);
}

/* `kind` NULL: all. */
static int list(const struct arguments *arguments, const char *kind)
{
    json_t *page = NULL;
    bool more = true;
    int code = 0;

    while (more) {
        const char *cursor = page != NULL ? answer_text(page, "nextCursor") : "";
        json_t *next =
            call_json(arguments, "AdminService/ListIncidents",
                      json_pack("{s:s, s:i}", "cursor", cursor, "pageSize", 1000), &code);
        if (next == NULL)
            break;
        json_decref(page);
        page = next;
        print_page(arguments, page, kind);
        more = json_is_true(json_object_get(page, "more")) && !output_is_lost();
    }
    json_decref(page);
    return code;
}

/* ---- as they happen ---- */

struct follower {
    const struct arguments *arguments;
    const char *kind;
    json_t *request; /* With the last cursor. */
    json_t *silent;  /* Nodes that did not answer, as told last; NULL: nothing was told yet. */
};

static void on_message(void *user, const json_t *message)
{
    struct follower *follower = user;
    json_t *silent = json_object_get(message, "unreachable");
    const json_t *node;
    size_t i;

    print_page(follower->arguments, message, follower->kind);
    json_object_set(follower->request, "cursor", json_object_get(message, "nextCursor"));
    if (json_array_size(silent) > 0 && !json_equal(silent, follower->silent)) {
        json_array_foreach(silent, i, node)
            fprintf(stderr, "holdfast: node %s does not answer\n", json_string_value(node));
    }
    json_decref(follower->silent);
    follower->silent = silent != NULL ? json_incref(silent) : json_array();
}

/* A router that is away for a moment ends nothing, if it was there at all. */
static int follow(const struct arguments *arguments, const char *kind)
{
    struct follower follower = { .arguments = arguments, .kind = kind };
    struct json_stream stream = { .method = "AdminService/WatchIncidents",
                                  .message = on_message,
                                  .user = &follower,
                                  .silence_ms = SILENCE_MS };
    struct buf why = { 0 };

    follower.request = json_pack("{s:s, s:i}", "cursor", "", "heartbeatMs", HEARTBEAT_MS);
    stream.request = follower.request;
    while (stream_json(arguments, &stream, &why) != CLIENT_REFUSED && follower.silent != NULL &&
           !output_is_lost())
        sleep_ms(RESUME_MS);
    fprintf(stderr, "holdfast: %.*s\n", (int)why.size, (const char *)why.data);
    buf_deinit(&why);
    json_decref(follower.request);
    json_decref(follower.silent);
    return 1;
}

/* ---- the verbs ---- */

static int run(const struct arguments *arguments, const char *kind)
{
    return option_is_set(arguments, &option_follow) ? follow(arguments, kind)
                                                    : list(arguments, kind);
}

static int incidents(const struct arguments *arguments)
{
    return run(arguments, NULL);
}

static int reconcile(const struct arguments *arguments)
{
    return run(arguments, "RECONCILED");
}

const struct verb verb_incidents[] = {
    {
        .words = "incidents",
        .topic = VERB_TOPIC_LOOK,
        .arguments = "",
        .summary = "what is out of the ordinary, on all nodes",
        .options = VERB_OPTIONS(&option_follow, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = incidents,
    },
    {
        .words = "reconcile",
        .topic = VERB_TOPIC_LOOK,
        .arguments = "",
        .summary = "what a crash left half done, and how it ended",
        .options = VERB_OPTIONS(&option_follow, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = reconcile,
    },
    { .words = NULL },
};
