/* holdfast top: what a cluster is doing, drawn again and again. */
#include <stdio.h>
#include <stdlib.h>

#include "client/cli/console/admin_client.h"
#include "client/cli/console/clock.h"
#include "client/cli/console/options.h"
#include "client/cli/console/output.h"
#include "client/cli/console/terminal.h"
#include "client/cli/top/top_alerts.h"
#include "client/cli/top/top_page.h"
#include "client/cli/verb.h"
#include "runtime/base/check.h"

#define INTERVAL_S_MAX  3600u
#define DEADLINE_MS     "2000" /* Of a look: the keys wait for it. */
#define EXIT_UNANSWERED 1

static const struct command_option option_interval = {
    .flag = "interval",
    .value = "S",
    .initial = "1",
    .meaning = "seconds from one page to the next",
};
static const struct command_option option_once = {
    .flag = "once",
    .meaning = "one page, of what happens within one interval",
};

static const struct command_option option_targets = {
    .flag = "targets",
    .meaning = "begin with the targets that gain the most favourites",
};
static const struct command_option option_collection = {
    .flag = "collection",
    .value = "NAME",
    .initial = "favorites",
    .meaning = "whose targets are shown",
};
static const struct command_option option_counter = {
    .flag = "counter",
    .value = "NAME",
    .meaning = "show targets of this counter instead of a collection",
};

struct top {
    const struct arguments *arguments;
    struct admin_client *client;
    struct terminal *terminal;
    struct top_facts *before, *after;
    uint32_t looks; /* That succeeded. */
    bool failed;    /* The last one. */
    struct top_page_options page;
    struct top_view view;
    struct top_targets targets;
    struct buf text;
};

static void look_at_targets(struct top *top)
{
    const char *counter = option_text(top->arguments, &option_counter);
    json_t *request = json_pack("{s:s, s:i}", "window", "24h", "limit", (int)TOP_TARGETS_MAX);
    json_t *answer;

    if (counter[0] != 0) {
        json_object_set_new(request, "counter", json_string(counter));
        answer = admin_call(top->client, "CounterService/GetCounterTop", request);
    } else {
        const char *collection = option_text(top->arguments, &option_collection);
        json_object_set_new(request, "collection", json_string(collection));
        answer = admin_call(top->client, "FavoritesService/GetTop", request);
    }
    top_targets_take(&top->targets, answer, admin_client_why(top->client));
    json_decref(answer);
}

static bool look(struct top *top)
{
    json_t *cluster = admin_call(top->client, "AdminService/GetCluster", json_object());
    json_t *load =
        cluster != NULL ? admin_call(top->client, "AdminService/GetLoad", json_object()) : NULL;

    top->failed = load == NULL;
    if (load != NULL) {
        /* A router that does not know this one leaves the audit untold. */
        json_t *processes = admin_call(top->client, "AdminService/ListProcesses", json_object());
        struct top_facts *oldest = top->before;
        top->before = top->after;
        top->after = oldest;
        top_facts_take(top->after, cluster, load, processes);
        top->looks++;
        json_decref(processes);
        if (top->page.targets != NULL)
            look_at_targets(top);
    }
    json_decref(load);
    json_decref(cluster);
    return !top->failed;
}

/* False: the output is gone. */
static bool show(struct top *top)
{
    uint32_t rows;

    buf_clear(&top->text);
    top->page.why = top->failed ? admin_client_why(top->client) : NULL;
    top_view_make(top->before, top->after, top->page.sort, &top->view);
    top_alerts_find(&top->view);
    if (wants_json(top->arguments)) {
        json_t *page = top_page_json(&top->view, top->page.targets);
        char *text = json_dumps(page, JSON_COMPACT);
        CHECK(text != NULL);
        bool written = printf("%s\n", text) > 0 && fflush(stdout) == 0;
        free(text);
        json_decref(page);
        return written;
    }
    terminal_size(top->terminal, &top->page.width, &rows);
    top->page.height = rows;
    if (!terminal_has_screen(top->terminal))
        top->page.width = top->page.height = 0;
    top_page_print(&top->view, &top->page, &top->text);
    return terminal_draw(top->terminal, buf_slice(&top->text));
}

/* False: it is over. */
static bool take_key(struct top *top, int key)
{
    if (key == 'q' || key == 'Q')
        return false;
    if (key == 's' || key == 'S')
        top->page.sort = (enum top_sort)((top->page.sort + 1) % TOP_SORT_COUNT);
    if (key == 't' || key == 'T')
        top->page.targets = top->page.targets == NULL ? &top->targets : NULL;
    if (key == 'h' || key == 'H' || key == '?')
        top->page.help = !top->page.help;
    return true;
}

/* Waits until the next look is due; what is typed shows at once. False: it is over. */
static bool pause_until(struct top *top, uint64_t due_ms, int *ret_signal)
{
    uint64_t now_ms;

    while ((now_ms = monotonic_ms()) < due_ms) {
        int key;
        enum terminal_event event = terminal_wait(top->terminal, (uint32_t)(due_ms - now_ms), &key);

        if (event == TERMINAL_END) {
            *ret_signal = key;
            return false;
        }
        if (event == TERMINAL_KEY && !take_key(top, key))
            return false;
        if (event != TERMINAL_NONE && top->looks >= 2 && terminal_has_screen(top->terminal) &&
            !show(top))
            return false;
    }
    return true;
}

static void say_that_nobody_answers(struct top *top)
{
    fprintf(stderr, "holdfast: %s\n", admin_client_why(top->client));
}

/* Two looks make a page, and then each makes another. */
static int run(struct top *top, uint32_t interval_s, int *ret_signal)
{
    uint64_t due_ms = monotonic_ms();

    for (;;) {
        bool looked = look(top);
        if (!looked && top->looks < 2) /* There is nothing to show an older look of. */
            return EXIT_UNANSWERED;
        if (top->looks >= 2 && !show(top))
            return 0;
        if (option_is_set(top->arguments, &option_once) && top->looks >= 2)
            return 0;
        due_ms += interval_s * 1000u;
        if (due_ms < monotonic_ms()) /* Late: no hurry to catch up. */
            due_ms = monotonic_ms() + interval_s * 1000u;
        if (!pause_until(top, due_ms, ret_signal))
            return 0;
    }
}

static void targets_start(struct top *top)
{
    const char *counter = option_text(top->arguments, &option_counter);

    if (counter[0] != 0)
        top_targets_init(&top->targets, "counter", counter);
    else
        top_targets_init(&top->targets, "collection",
                         option_text(top->arguments, &option_collection));
    if (option_is_set(top->arguments, &option_targets))
        top->page.targets = &top->targets;
}

static int top_start(struct top *top, const struct arguments *arguments, uint32_t interval_s)
{
    int ended_by = 0;
    int code = EXIT_UNANSWERED;

    top->before = top_facts_new();
    top->after = top_facts_new();
    top->page.sort = TOP_BY_RATE;
    targets_start(top);
    bool wants_screen = !option_is_set(arguments, &option_once) && !wants_json(arguments);
    if (terminal_open(wants_screen, &top->terminal) != ERR_OK)
        fprintf(stderr, "holdfast: the terminal cannot be used\n");
    else if (admin_client_new(arguments, option_text(arguments, &option_endpoint), &top->client) ==
             ERR_OK)
        code = run(top, interval_s, &ended_by);
    terminal_close(top->terminal);
    if (code == EXIT_UNANSWERED && top->client != NULL)
        say_that_nobody_answers(top);
    admin_client_free(top->client);
    top_facts_free(top->before);
    top_facts_free(top->after);
    top_targets_deinit(&top->targets);
    buf_deinit(&top->text);
    /* As shells tell it. */
    return ended_by != 0 ? 128 + ended_by : code;
}

static int watch_top(const struct arguments *arguments)
{
    struct arguments own = *arguments;
    uint32_t interval_s;

    if (option_number(arguments, &option_interval, 1, INTERVAL_S_MAX, &interval_s) != ERR_OK)
        return 2;
    if (!option_is_set(arguments, &option_once))
        CHECK(arguments_give(&own, option_deadline_ms.flag, DEADLINE_MS) == ERR_OK);
    struct top *top = mem_zalloc(sizeof *top);
    top->arguments = arguments;
    int code = top_start(top, &own, interval_s);
    free(top);
    return code;
}

const struct verb verb_top[] = {
    {
        .words = "top",
        .topic = VERB_TOPIC_LOOK,
        .arguments = "[--interval S] [--once] [--targets]",
        .summary = "what nodes, methods and shards do, again and again",
        .details = "Keys: q quits, s sorts, t shows hot targets, h explains.",
        .options = VERB_OPTIONS(&option_interval, &option_once, &option_targets, &option_collection,
                                &option_counter, OPTIONS_OF_CALLS, OPTIONS_OF_OUTPUT),
        .run = watch_top,
    },
    { .words = NULL },
};
