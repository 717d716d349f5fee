/* events: what was committed, shard by shard in the order of its log. docs/events.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/answer.h"
#include "client/cli/clock.h"
#include "client/cli/options.h"
#include "client/cli/output.h"
#include "client/cli/verb.h"
#include "runtime/base/check.h"

#define PAGE_SIZE    1000
#define HEARTBEAT_MS 1000
#define SILENCE_MS   10000 /* Nothing came for so long: the router is gone. */
#define RESUME_MS    500

static const struct command_option option_kind = {
    .flag = "kind",
    .value = "KIND",
    .initial = "",
    .meaning = "favorite, ledger, session or definition alone",
};
static const struct command_option option_prefix = {
    .flag = "prefix",
    .value = "TEXT",
    .initial = "",
    .meaning = "events of entities that begin with it: player:42",
};
static const struct command_option option_entity = {
    .flag = "entity",
    .value = "ENTITY",
    .initial = "",
    .meaning = "events of this entity alone: player:42",
};
static const struct command_option option_print_cursor = {
    .flag = "print-cursor",
    .meaning = "print the cursor on a line of its own, at the end",
};
static const struct command_option option_follow = {
    .flag = "follow",
    .meaning = "go on with what is committed",
};

static const struct {
    const char *word, *name;
} kinds[] = {
    { "favorite", "EVENT_KIND_FAVORITE" }, { "ledger", "EVENT_KIND_LEDGER" },
    { "session", "EVENT_KIND_SESSION" },   { "definition", "EVENT_KIND_DEFINITION" },
    { "erasure", "EVENT_KIND_ERASURE" },
};

/* NULL: there is no such kind. */
static const char *kind_name(const char *word)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (strcmp(kinds[i].word, word) == 0)
            return kinds[i].name;
    }
    return NULL;
}

static void print_body(const char *word, const json_t *event)
{
    json_t *body = json_object_get(event, word);
    char *text = json_dumps(body, JSON_COMPACT | JSON_ENCODE_ANY);

    if (text != NULL)
        printf(" %s", text);
    free(text);
}

static void print_event(const json_t *event)
{
    char when[UTC_TEXT_BYTES];

    printf("%s %d %s %s", utc_text(answer_number(event, "atMs"), when),
           (int)json_integer_value(json_object_get(event, "shard")), answer_text(event, "seq"),
           answer_text(event, "entity"));
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (strcmp(kinds[i].name, answer_text(event, "kind")) == 0) {
            printf(" %s", kinds[i].word);
            print_body(kinds[i].word, event);
        }
    }
    putchar('\n');
}

static void print_page(const struct arguments *arguments, const json_t *page)
{
    const json_t *each;
    size_t i;

    json_array_foreach(json_object_get(page, "gaps"), i, each)
    {
        fprintf(stderr, "holdfast: shard %d: events are missing that are no longer kept\n",
                (int)json_integer_value(json_object_get(each, "shard")));
    }
    json_array_foreach(json_object_get(page, "events"), i, each)
    {
        if (wants_json(arguments)) {
            json_dumpf(each, stdout, JSON_COMPACT);
            putchar('\n');
        } else {
            print_event(each);
        }
    }
    (void)fflush(stdout);
}

/* What is asked for, from a cursor on. */
static json_t *request_of(const struct arguments *arguments, const char *cursor)
{
    const char *word = option_text(arguments, &option_kind);
    json_t *request = json_pack("{s:s, s:s, s:s}", "cursor", cursor, "entityPrefix",
                                option_text(arguments, &option_prefix), "entity",
                                option_text(arguments, &option_entity));

    if (word[0] != '\0')
        json_object_set_new(request, "kinds", json_pack("[s]", kind_name(word)));
    return request;
}

/* ---- what is there ---- */

/* The next page; NULL: *code says why there is none. */
static json_t *ask(const struct arguments *arguments, const char *cursor, int *code)
{
    json_t *request = request_of(arguments, cursor);

    json_object_set_new(request, "pageSize", json_integer(PAGE_SIZE));
    return call_json(arguments, "EventService/Poll", request, code);
}

static int list(const struct arguments *arguments, const char *from)
{
    json_t *page = json_pack("{s:s}", "nextCursor", from);
    bool more = true;
    int code = 0;

    while (more) {
        json_t *next = ask(arguments, answer_text(page, "nextCursor"), &code);
        if (next == NULL)
            break;
        json_decref(page);
        page = next;
        print_page(arguments, page);
        more = json_is_true(json_object_get(page, "more"));
    }
    if (option_is_set(arguments, &option_print_cursor))
        printf("%s\n", answer_text(page, "nextCursor"));
    json_decref(page);
    return code;
}

/* ---- as it comes ---- */

struct follower {
    const struct arguments *arguments;
    json_t *request; /* With the last cursor. */
    bool heard;      /* Some message has come. */
};

static void on_message(void *user, const json_t *message)
{
    struct follower *follower = user;

    print_page(follower->arguments, message);
    json_object_set(follower->request, "cursor", json_object_get(message, "nextCursor"));
    follower->heard = true;
}

/* A router that is away for a moment ends nothing, if it was there at all. */
static int follow(const struct arguments *arguments, const char *from)
{
    struct follower follower = { .arguments = arguments, .request = request_of(arguments, from) };
    struct json_stream stream = { .method = "EventService/Subscribe",
                                  .request = follower.request,
                                  .message = on_message,
                                  .user = &follower,
                                  .silence_ms = SILENCE_MS };
    struct buf why = { 0 };

    json_object_set_new(follower.request, "heartbeatMs", json_integer(HEARTBEAT_MS));
    while (stream_json(arguments, &stream, &why) != CLIENT_REFUSED && follower.heard)
        sleep_ms(RESUME_MS);
    fprintf(stderr, "holdfast: %.*s\n", (int)why.size, (const char *)why.data);
    buf_deinit(&why);
    json_decref(follower.request);
    return 1;
}

static int tail(const struct arguments *arguments)
{
    const char *word = option_text(arguments, &option_kind);
    const char *from = option_text(arguments, &option_cursor);

    if (word[0] != '\0' && kind_name(word) == NULL) {
        fprintf(stderr, "holdfast: --kind is favorite, ledger, session or definition, not %s\n",
                word);
        return 2;
    }
    return option_is_set(arguments, &option_follow) ? follow(arguments, from)
                                                    : list(arguments, from);
}

const struct verb verb_events[] = {
    {
        .words = "events tail",
        .topic = VERB_TOPIC_LOOK,
        .arguments = "",
        .summary = "what was committed, from the oldest event that is kept",
        .options =
            VERB_OPTIONS(&option_kind, &option_prefix, &option_entity, &option_cursor,
                         &option_print_cursor, &option_follow, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = tail,
    },
    { .words = NULL },
};
