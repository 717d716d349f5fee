/* events: what was committed, shard by shard in the order of its log. docs/events.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/console/answer.h"
#include "client/cli/console/clock.h"
#include "client/cli/call/event_kind.h"
#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/verb.h"

#define PAGE_SIZE    1000
#define HEARTBEAT_MS 1000
#define SILENCE_MS   10000 /* Nothing came for so long: the router is gone. */
#define RESUME_MS    500

static const struct command_option option_consumer = {
    .flag = "consumer",
    .value = "NAME",
    .initial = "",
    .meaning = "what that consumer reads, from what it has committed on",
};
static const struct command_option option_print_cursor = {
    .flag = "print-cursor",
    .meaning = "print the cursor on a line of its own, at the end",
};
static const struct command_option option_follow = {
    .flag = "follow",
    .meaning = "go on with what is committed",
};

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
    const char *word = event_kind_word(answer_text(event, "kind"));
    if (word != NULL) {
        printf(" %s", word);
        print_body(word, event);
    }
    putchar('\n');
}

static void print_page(const struct arguments *arguments, const json_t *page)
{
    const json_t *each;
    size_t i;

    json_array_foreach(json_object_get(page, "gaps"), i, each)
    {
        char lost[32] = "";
        if (json_object_get(each, "lost") != NULL)
            snprintf(lost, sizeof lost, "%llu ", (unsigned long long)answer_number(each, "lost"));
        fprintf(stderr, "holdfast: shard %d: %sevents are missing that are no longer kept\n",
                (int)json_integer_value(json_object_get(each, "shard")), lost);
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
}

/* What is asked for, from a cursor on. */
static json_t *request_of(const struct arguments *arguments, const char *cursor)
{
    json_t *request = json_pack("{s:s, s:s}", "cursor", cursor, "consumer",
                                option_text(arguments, &option_consumer));

    event_filter_set(arguments, request);
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
        more = json_is_true(json_object_get(page, "more")) && !output_is_lost();
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
    while (stream_json(arguments, &stream, &why) != CLIENT_REFUSED && follower.heard &&
           !output_is_lost())
        sleep_ms(RESUME_MS);
    fprintf(stderr, "holdfast: %.*s\n", (int)why.size, (const char *)why.data);
    buf_deinit(&why);
    json_decref(follower.request);
    return 1;
}

static int tail(const struct arguments *arguments)
{
    const char *from = option_text(arguments, &option_cursor);

    if (!event_kind_check(arguments))
        return 2;
    return option_is_set(arguments, &option_follow) ? follow(arguments, from)
                                                    : list(arguments, from);
}

const struct verb verb_events[] = {
    {
        .words = "events tail",
        .topic = VERB_TOPIC_LOOK,
        .arguments = "",
        .summary = "what was committed, from the oldest event that is kept",
        .options = VERB_OPTIONS(&option_event_kind, &option_event_prefix, &option_event_entity,
                                &option_consumer, &option_cursor, &option_print_cursor,
                                &option_follow, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = tail,
    },
    { .words = NULL },
};
