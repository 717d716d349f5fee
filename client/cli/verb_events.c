#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/cli/output.h"
#include "client/cli/verb.h"

#define HEARTBEAT_MS 5000
#define SILENCE_MS   15000u /* Then the router is not there any more. */
#define RESUME_MS    500

static const char kind_prefix[] = "EVENT_KIND_";

static const char *text_of(const json_t *event, const char *name)
{
    const char *text = json_string_value(json_object_get(event, name));

    return text != NULL ? text : "";
}

static const char *kind_of(const json_t *event)
{
    const char *kind = text_of(event, "kind");

    return strncmp(kind, kind_prefix, sizeof kind_prefix - 1) == 0 ? kind + sizeof kind_prefix - 1
                                                                   : kind;
}

static void print_event(const json_t *event)
{
    char when[32] = "";
    time_t at = (time_t)(strtoll(text_of(event, "atMs"), NULL, 10) / 1000);
    struct tm utc;

    if (gmtime_r(&at, &utc) != NULL)
        (void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
    printf("%s %s", when, kind_of(event));
    if (text_of(event, "what")[0] != 0)
        printf(" %s", text_of(event, "what"));
    if (text_of(event, "count")[0] != 0)
        printf(" count=%s", text_of(event, "count"));
    if (text_of(event, "playerId")[0] != 0)
        printf(" player=%s", text_of(event, "playerId"));
    if (text_of(event, "opId")[0] != 0)
        printf(" id=%s", text_of(event, "opId"));
    if (text_of(event, "method")[0] != 0)
        printf(" method=%s", text_of(event, "method"));
    printf(" shard=%d node=%s\n", (int)json_integer_value(json_object_get(event, "shard")),
           text_of(event, "replicaId"));
}

static void print_gaps(const json_t *page)
{
    const json_t *gap;
    size_t i;

    json_array_foreach(json_object_get(page, "gaps"), i, gap)
    {
        const char *lost = text_of(gap, "lost");
        fprintf(stderr, "holdfast: node %s: %s events are not known any more\n",
                text_of(gap, "replicaId"), lost[0] != 0 ? lost : "some");
    }
}

static void print_page(const struct arguments *arguments, const json_t *page, const char *kind)
{
    const json_t *event;
    size_t i;

    json_array_foreach(json_object_get(page, "events"), i, event)
    {
        if (kind != NULL && strcmp(kind_of(event), kind) != 0)
            continue;
        if (wants_json(arguments))
            print_json(event);
        else
            print_event(event);
    }
    print_gaps(page);
    (void)fflush(stdout);
}

/* `kind` NULL: all. */
static int list(const struct arguments *arguments, const char *kind)
{
    json_t *page = NULL;
    bool more = true;
    int code = 0;

    while (more) {
        const char *cursor = page != NULL ? text_of(page, "nextCursor") : "";
        json_t *next =
            call_json(arguments, "AdminService/ListEvents",
                      json_pack("{s:s, s:i}", "cursor", cursor, "pageSize", 1000), &code);
        if (next == NULL)
            break;
        json_decref(page);
        page = next;
        more = json_is_true(json_object_get(page, "more"));
        print_page(arguments, page, kind);
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
    const struct timespec pause = { .tv_nsec = RESUME_MS * 1000000L };
    struct follower follower = { .arguments = arguments, .kind = kind };
    struct json_stream stream = { .method = "AdminService/WatchEvents",
                                  .message = on_message,
                                  .user = &follower,
                                  .silence_ms = SILENCE_MS };
    struct buf why = { 0 };

    follower.request = json_pack("{s:s, s:i}", "cursor", "", "heartbeatMs", HEARTBEAT_MS);
    stream.request = follower.request;
    while (stream_json(arguments, &stream, &why) != CLIENT_REFUSED && follower.silent != NULL)
        (void)nanosleep(&pause, NULL);
    fprintf(stderr, "holdfast: %.*s\n", (int)why.size, (const char *)why.data);
    buf_deinit(&why);
    json_decref(follower.request);
    json_decref(follower.silent);
    return 1;
}

int verb_events(const struct arguments *arguments)
{
    if (arguments->word_count != 1) {
        fprintf(stderr, "usage: holdfast events [--follow]\n");
        return 2;
    }
    return arguments->follow ? follow(arguments, NULL) : list(arguments, NULL);
}

int verb_reconcile(const struct arguments *arguments)
{
    if (arguments->word_count != 1) {
        fprintf(stderr, "usage: holdfast reconcile [--follow]\n");
        return 2;
    }
    return arguments->follow ? follow(arguments, "RECONCILED") : list(arguments, "RECONCILED");
}
