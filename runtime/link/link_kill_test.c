/* What a link says when the process on the other side is killed, or stopped without a word. The
 * other side is this program again, started with arguments. Over every transport. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/base/check.h"
#include "runtime/link/link_fixture.h"

#define LIMIT_MS       60000u
#define PING_MS        20u
#define SILENT_MS      2000u
#define BODY_SIZE      1048576u
#define CALLS_MAX_HERE 64u

static char certs[64];
extern char **environ;

struct outcomes {
    uint32_t disconnected;
    uint32_t closed;
    uint32_t other;
};

static void done(void *user, err result, const struct frame *response)
{
    struct outcomes *o = user;
    (void)response;
    o->disconnected += result == ERR_DISCONNECTED;
    o->closed += result == ERR_CLOSED;
    o->other += result != ERR_DISCONNECTED && result != ERR_CLOSED;
}

/* ---- the other process ---- */

static int serve(char **argv)
{
    struct fixture_end end = { 0 };
    struct loop *loop;
    const struct fixture_mode *mode = fixture_mode_find(argv[2]);

    CHECK(mode != NULL && loop_new(&loop) == ERR_OK);
    struct link_hub_options options = fixture_options(mode, loop, argv[3]);
    options.ping_period_ms = PING_MS;
    fixture_end_init(&end, &options);
    uint16_t port =
        link_listener_port(fixture_listen(&end, mode, (uint16_t)strtoul(argv[4], NULL, 10)));
    printf("%u\n", port);
    fflush(stdout);
    loop_run(loop);
    return 0;
}

struct process {
    pid_t pid;
    uint16_t port;
};

static struct process start(const struct fixture_mode *mode, uint16_t port)
{
    struct process process = { 0 };
    char port_text[8], line[16] = "";
    char *argv[] = {
        (char *)"link_kill_test", (char *)"serve", text_lend(mode->name), certs, port_text, NULL
    };
    posix_spawn_file_actions_t actions;
    int ends[2];

    snprintf(port_text, sizeof port_text, "%u", port);
    assert_int_equal(pipe(ends), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    assert_int_equal(posix_spawn(&process.pid, "/proc/self/exe", &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    assert_true(read(ends[0], line, sizeof line - 1) > 0);
    close(ends[0]);
    process.port = (uint16_t)strtoul(line, NULL, 10);
    return process;
}

static void stop(struct process process)
{
    assert_int_equal(kill(process.pid, SIGKILL), 0);
    assert_int_equal(waitpid(process.pid, NULL, 0), process.pid);
}

/* ---- this process ---- */

static bool is_ready(void *user)
{
    struct fixture *f = user;
    return f->client.link != NULL;
}

static bool is_closed(void *user)
{
    struct fixture *f = user;
    return f->client.closed > 0;
}

static bool is_quiet_for_a_while(void *user)
{
    struct fixture *f = user;
    return f->client.link != NULL && link_idle_ms(f->client.link) > 5 * PING_MS;
}

static bool never(void *user)
{
    (void)user;
    return false;
}

static struct fixture *join(const struct fixture_mode *mode, uint16_t port)
{
    struct fixture *f = mem_zalloc(sizeof *f);
    f->mode = mode;
    assert_int_equal(loop_new(&f->loop), ERR_OK);
    struct link_hub_options options = fixture_options(mode, f->loop, certs);
    options.ping_period_ms = PING_MS;
    options.silent_close_ms = SILENT_MS;
    fixture_end_init(&f->client, &options);
    fixture_options_deinit(&options);
    f->dialled = fixture_dial(&f->client, mode, port, false);
    assert_true(loop_run_until(f->loop, is_ready, f, LIMIT_MS));
    return f;
}

static void drop(struct fixture *f)
{
    fixture_end_deinit(&f->client);
    loop_free(f->loop);
    free(f);
}

static err ask(struct fixture *f, uint16_t method, struct slice body, struct outcomes *outcomes)
{
    struct call_request request = {
        .method = method, .deadline_ms = 60000, .body = body, .done = done, .user = outcomes
    };
    return call_start(f->client.calls, f->dialled, &request, NULL);
}

static void peer_killed_mid_call_is_disconnected_and_its_successor_is_found(void **state)
{
    const struct fixture_mode *mode = *state;
    struct process process = start(mode, 0);
    struct fixture *f = join(mode, process.port);
    struct outcomes o = { 0 };
    struct link_ref before = link_ref(f->dialled);
    assert_int_equal(ask(f, METHOD_HOLD, SLICE_LITERAL("x"), &o), ERR_OK);
    assert_false(loop_run_until(f->loop, never, NULL, 2 * PING_MS));
    stop(process);
    assert_true(loop_run_until(f->loop, is_closed, f, LIMIT_MS));
    assert_true(f->client.reason != LINK_CLOSED_LOCAL);
    assert_int_equal(o.disconnected, 1);
    assert_int_equal(o.closed + o.other, 0);
    assert_int_equal(calls_open(f->client.calls), 0);
    process = start(mode, process.port);
    assert_true(loop_run_until(f->loop, is_ready, f, LIMIT_MS));
    assert_true(link_ref(f->dialled).generation > before.generation);
    stop(process);
    drop(f);
}

static void calls_that_never_left_are_closed_not_unknown(void **state)
{
    const struct fixture_mode *mode = *state;
    struct process process = start(mode, 0);
    struct fixture *f = join(mode, process.port);
    struct outcomes o = { 0 };
    uint32_t asked = 1;
    uint8_t *body = mem_zalloc(BODY_SIZE);
    /* The peer stops reading; then more is asked than the transport can take. */
    assert_int_equal(ask(f, METHOD_DEAF, SLICE_LITERAL(""), &o), ERR_OK);
    assert_false(loop_run_until(f->loop, never, NULL, 2 * PING_MS));
    for (; asked < CALLS_MAX_HERE; asked++) {
        if (ask(f, METHOD_ECHO, (struct slice){ body, BODY_SIZE }, &o) != ERR_OK)
            break;
        assert_false(loop_run_until(f->loop, never, NULL, 1));
    }
    stop(process);
    assert_true(loop_run_until(f->loop, is_closed, f, LIMIT_MS));
    assert_true(o.disconnected >= 1);
    assert_true(o.closed >= 1);
    assert_int_equal(o.disconnected + o.closed, asked);
    free(body);
    drop(f);
}

static void silent_peer_shows_as_idle_and_is_given_up(void **state)
{
    const struct fixture_mode *mode = *state;
    struct process process = start(mode, 0);
    struct fixture *f = join(mode, process.port);
    struct outcomes o = { 0 };
    assert_int_equal(kill(process.pid, SIGSTOP), 0);
    assert_int_equal(ask(f, METHOD_ECHO, SLICE_LITERAL("x"), &o), ERR_OK);
    assert_true(loop_run_until(f->loop, is_quiet_for_a_while, f, LIMIT_MS));
    assert_int_equal(f->client.closed, 0);
    assert_true(loop_run_until(f->loop, is_closed, f, LIMIT_MS));
    assert_int_equal(f->client.reason, LINK_CLOSED_ERROR);
    assert_string_equal(f->client.text, "nothing heard for 2000 ms");
    assert_int_equal(o.disconnected, 1);
    stop(process);
    drop(f);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        CMUnitTestFunction fn;
    } cases[] = {
#define CASE(fn) { #fn, fn }
        CASE(peer_killed_mid_call_is_disconnected_and_its_successor_is_found),
        CASE(calls_that_never_left_are_closed_not_unknown),
        CASE(silent_peer_shows_as_idle_and_is_given_up),
    };
    static struct CMUnitTest tests[FIXTURE_MODES * ARRAY_SIZE(cases)];
    static char names[ARRAY_SIZE(tests)][120];
    size_t count = 0;

    if (argc == 5 && strcmp(argv[1], "serve") == 0)
        return serve(argv);
    fixture_certs_make(certs);
    for (size_t m = 0; m < FIXTURE_MODES; m++) {
        for (size_t c = 0; c < ARRAY_SIZE(cases); c++, count++) {
            snprintf(names[count], sizeof names[count], "%s: %s", fixture_modes[m].name,
                     cases[c].name);
            tests[count] = (struct CMUnitTest){ .name = names[count], .test_func = cases[c].fn };
            tests[count].initial_state = (void *)(uintptr_t)&fixture_modes[m];
        }
    }
    int failed = _cmocka_run_group_tests("link_kill", tests, count, NULL, NULL);
    fixture_certs_remove(certs);
    return failed;
}
