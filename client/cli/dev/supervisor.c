#include "client/cli/dev/supervisor.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "client/cli/console/clock.h"
#include "client/cli/dev/dev_say.h"
#include "runtime/base/check.h"
#include "runtime/base/utf8.h"

#define TAIL_BYTES      4096u
#define TAIL_LINES      5u
#define TAIL_LINE_BYTES 480u
#define WHY_BYTES       96u
#define EXIT_USAGE      2
#define EXIT_NO_OUTPUT  126 /* And this, and the next: children.c could not run it. */
#define EXIT_NOT_RUN    127

/* "was killed by signal 9 (Killed)", "exited with 1" */
static void status_text(int status, char ret_text[WHY_BYTES])
{
    if (WIFSIGNALED(status))
        snprintf(ret_text, WHY_BYTES, "was killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(ret_text, WHY_BYTES, "exited with %d", WEXITSTATUS(status));
}

/* The last lines that this life of it wrote, each behind its name. */
static void say_tail(const struct child *child)
{
    char text[TAIL_BYTES];
    size_t size = child_tail(child, text, sizeof text);
    size_t from = size, lines = 0;

    while (from > 0 && (text[from - 1] != '\n' || from == size || ++lines < TAIL_LINES))
        from--;
    while (from < size) {
        char line[TAIL_LINE_BYTES];
        const char *end = memchr(text + from, '\n', size - from);
        size_t length = end != NULL ? (size_t)(end - text) - from : size - from;
        utf8_snippet(line, sizeof line, (struct slice){ (const uint8_t *)text + from, length });
        dev_say(stderr, "%s| %s", child->name, line);
        from += length + 1;
    }
}

/* Starts are further apart after each short life, and the pause that was asked for comes first. */
static uint64_t restart_time_ms(const struct supervisor *supervisor, const struct child *child)
{
    uint64_t wanted_ms = monotonic_ms() + supervisor->restart_ms;
    uint64_t apart_ms = RESTART_APART_MS;

    for (uint32_t i = 1; i < child->short_lives && apart_ms < RESTART_APART_MS_MAX; i++)
        apart_ms *= 2;
    if (child->short_lives == 0 || child->started_at_ms + apart_ms < wanted_ms)
        return wanted_ms;
    return child->started_at_ms + apart_ms;
}

/* It cannot be run at all, or not as it was asked to. */
static bool is_hopeless(int status)
{
    return WIFEXITED(status) &&
           (WEXITSTATUS(status) == EXIT_USAGE || WEXITSTATUS(status) == EXIT_NO_OUTPUT ||
            WEXITSTATUS(status) == EXIT_NOT_RUN);
}

/* False: it is not started again. */
static bool on_death(const struct supervisor *supervisor, struct child *child, int status)
{
    uint64_t lived_ms = monotonic_ms() - child->started_at_ms;
    char why[WHY_BYTES];

    child->short_lives = lived_ms >= LONG_LIFE_MS ? 0 : child->short_lives + 1;
    status_text(status, why);
    if (!supervisor->ready && (is_hopeless(status) || child->short_lives >= START_TRIES_MAX)) {
        dev_say(stderr, "%s %s after %llu ms, before the cluster was ready; its output is in %s",
                child->name, why, (unsigned long long)lived_ms, child->log_file);
        say_tail(child);
        return false;
    }
    child->restart_at_ms = restart_time_ms(supervisor, child);
    dev_say(stderr, "%s %s after %llu ms; starting it again in %llu ms; its output is in %s",
            child->name, why, (unsigned long long)lived_ms,
            (unsigned long long)(child->restart_at_ms - monotonic_ms()), child->log_file);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        say_tail(child);
    return true;
}

bool supervisor_start(struct child *child)
{
    if (child_start(child) == ERR_OK)
        return true;
    dev_say(stderr, "%s cannot be started: %s", child->name, strerror(errno));
    return false;
}

static void start_again(struct child *child)
{
    if (!supervisor_start(child)) {
        child->restart_at_ms = monotonic_ms() + RESTART_APART_MS_MAX;
        return;
    }
    dev_say(stderr, "%s started again as process %ld (start %u)", child->name, (long)child->pid,
            child->starts);
}

bool supervisor_watch(struct supervisor *supervisor, bool *ret_changed)
{
    *ret_changed = false;
    for (uint32_t i = 0; i < supervisor->count; i++) {
        struct child *child = &supervisor->children[i];
        int status;

        if (child_reap(child, &status)) {
            *ret_changed = true;
            if (!on_death(supervisor, child, status))
                return false;
        }
        if (child->restart_at_ms != 0 && monotonic_ms() >= child->restart_at_ms) {
            *ret_changed = true;
            start_again(child);
        }
    }
    return true;
}

void supervisor_stop(struct supervisor *supervisor, uint32_t patience_ms)
{
    for (uint32_t i = 0; i < supervisor->count; i++) {
        struct child *child = &supervisor->children[i];
        char why[WHY_BYTES];
        int status = 0;

        child->restart_at_ms = 0;
        if (child->pid == 0)
            continue;
        if (!child_stop(child, patience_ms, &status)) {
            dev_say(stderr, "%s did not stop within %u ms and was killed; its output is in %s",
                    child->name, patience_ms, child->log_file);
        } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            status_text(status, why);
            dev_say(stderr, "%s %s while all was being stopped; its output is in %s", child->name,
                    why, child->log_file);
        }
    }
}
