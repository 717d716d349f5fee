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

#define PAGE_SIZE 1000
#define PAUSE_MS  500 /* Between two questions, while nothing more is there. */

static const struct command_option option_kind = {
    .flag = "kind",
    .value = "KIND",
    .meaning = "favorite, ledger, session or definition alone",
};
static const struct command_option option_prefix = {
    .flag = "prefix",
    .value = "TEXT",
    .initial = "",
    .meaning = "events of entities that begin with it: player:42",
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
    { "favorite", "EVENT_KIND_FAVORITE" },
    { "ledger", "EVENT_KIND_LEDGER" },
    { "session", "EVENT_KIND_SESSION" },
    { "definition", "EVENT_KIND_DEFINITION" },
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

/* The next page; NULL: *code says why there is none. */
static json_t *ask(const struct arguments *arguments, const char *kind, const char *cursor,
                   int *code)
{
    json_t *request = json_pack("{s:s, s:s, s:i}", "cursor", cursor, "entityPrefix",
                                option_text(arguments, &option_prefix), "pageSize", PAGE_SIZE);

    if (kind != NULL)
        json_object_set_new(request, "kinds", json_pack("[s]", kind));
    return call_json(arguments, "EventService/Poll", request, code);
}

static int tail(const struct arguments *arguments)
{
    const char *word = option_text(arguments, &option_kind);
    const char *kind = word != NULL ? kind_name(word) : NULL;
    bool follow = option_is_set(arguments, &option_follow);
    const char *from = option_text(arguments, &option_cursor);
    json_t *page = json_pack("{s:s}", "nextCursor", from != NULL ? from : "");
    bool more = true;
    int code = 0;

    if (word != NULL && kind == NULL) {
        fprintf(stderr, "holdfast: --kind is favorite, ledger, session or definition, not %s\n",
                word);
        json_decref(page);
        return 2;
    }
    while (more || follow) {
        json_t *next = ask(arguments, kind, answer_text(page, "nextCursor"), &code);
        if (next == NULL)
            break;
        json_decref(page);
        page = next;
        print_page(arguments, page);
        more = json_is_true(json_object_get(page, "more"));
        if (!more && follow)
            sleep_ms(PAUSE_MS);
    }
    if (option_is_set(arguments, &option_print_cursor))
        printf("%s\n", answer_text(page, "nextCursor"));
    json_decref(page);
    return code;
}

const struct verb verb_events[] = {
    {
        .words = "events tail",
        .topic = VERB_TOPIC_LOOK,
        .arguments = "",
        .summary = "what was committed, from the oldest event that is kept",
        .options = VERB_OPTIONS(&option_kind, &option_prefix, &option_cursor, &option_print_cursor,
                                &option_follow, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = tail,
    },
    { .words = NULL },
};
