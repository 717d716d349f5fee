/*
 * link_bench: calls per second and processor time per call over one link, for every transport.
 * A program, not a test:  link_bench [mode|all] [seconds] [outstanding] [body bytes] [paced]
 * Client and server are two processes, each with one loop, as they are in production.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/check.h"
#include "runtime/link/link_fixture.h"

#define OUTSTANDING_MAX 4096u
#define BODY_MAX        65536u
#define WARM_UP_MS      300u

struct bench {
    struct fixture_end end;
    struct loop *loop;
    const struct fixture_mode *mode;
    uint32_t outstanding;
    size_t body_size;
    bool paced;
    bool stopping;
    uint64_t answered;
    uint64_t latency_ns_sum;
    uint64_t latency_ns_max;
    uint8_t body[BODY_MAX];
};

struct lane {
    struct bench *bench;
    uint64_t start_ns;
};

static uint64_t cpu_ns(int who)
{
    struct rusage usage;

    CHECK(getrusage(who, &usage) == 0);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000u +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000u;
}

static void answered(void *user, err result, const struct frame *response);

static void ask(struct lane *lane)
{
    struct bench *b = lane->bench;
    struct call_request request = { .method = METHOD_ECHO,
                                    .deadline_ms = 10000,
                                    .body = { b->body, b->body_size },
                                    .done = answered,
                                    .user = lane };

    lane->start_ns = loop_clock_ns();
    CHECK(call_start(b->end.calls, b->end.link, &request, NULL) == ERR_OK);
}

static void answered(void *user, err result, const struct frame *response)
{
    struct lane *lane = user;
    struct bench *b = lane->bench;

    if (b->stopping)
        return;
    CHECK(result == ERR_OK && response->body.size == b->body_size);
    uint64_t took_ns = loop_clock_ns() - lane->start_ns;
    b->answered++;
    b->latency_ns_sum += took_ns;
    if (took_ns > b->latency_ns_max)
        b->latency_ns_max = took_ns;
    ask(lane);
}

static bool is_ready(void *user)
{
    struct bench *b = user;
    return b->end.link != NULL;
}

static bool never(void *user)
{
    (void)user;
    return false;
}

static void stop_server(void *user, int signum)
{
    (void)signum;
    loop_stop(user);
}

/* The server reports its own processor time through the pipe when it is told to end. */
static void serve(struct bench *b, const char *certs, int pipe_out)
{
    CHECK(loop_new(&b->loop) == ERR_OK);
    CHECK(loop_signals_start(b->loop, stop_server, b->loop) == ERR_OK);
    struct link_hub_options options = fixture_options(b->mode, b->loop, certs);
    fixture_end_init(&b->end, &options);
    uint64_t port = link_listener_port(fixture_listen(&b->end, b->mode, 0));
    CHECK(write(pipe_out, &port, sizeof port) == sizeof port);
    loop_run(b->loop);
    uint64_t used = cpu_ns(RUSAGE_SELF);
    CHECK(write(pipe_out, &used, sizeof used) == sizeof used);
    _exit(0);
}

static void run(struct bench *b, const char *certs, uint64_t seconds)
{
    static struct lane lanes[OUTSTANDING_MAX];
    int ends[2];
    uint64_t port, server_ns;

    CHECK(pipe(ends) == 0);
    pid_t child = fork(); /* Before nng has started in this process. */
    CHECK(child >= 0);
    if (child == 0)
        serve(b, certs, ends[1]);
    CHECK(read(ends[0], &port, sizeof port) == sizeof port);
    CHECK(loop_new(&b->loop) == ERR_OK);
    struct link_hub_options options = fixture_options(b->mode, b->loop, certs);
    fixture_end_init(&b->end, &options);
    fixture_dial(&b->end, b->mode, (uint16_t)port, b->paced);
    CHECK(loop_run_until(b->loop, is_ready, b, 5000));
    for (uint32_t i = 0; i < b->outstanding; i++) {
        lanes[i].bench = b;
        ask(&lanes[i]);
    }
    loop_run_until(b->loop, never, NULL, WARM_UP_MS);
    uint64_t warm_calls = b->answered, all_ns = cpu_ns(RUSAGE_SELF), start_ns = loop_clock_ns();
    struct link_stats before = link_hub_stats(b->end.hub);
    b->latency_ns_sum = b->latency_ns_max = 0;
    loop_run_until(b->loop, never, NULL, seconds * 1000);
    double wall_s = (double)(loop_clock_ns() - start_ns) / 1e9;
    double calls = (double)(b->answered - warm_calls);
    double client_us = (double)(cpu_ns(RUSAGE_SELF) - all_ns) / 1e3 / calls;
    struct link_stats after = link_hub_stats(b->end.hub);
    b->stopping = true;
    kill(child, SIGTERM);
    CHECK(read(ends[0], &server_ns, sizeof server_ns) == sizeof server_ns);
    CHECK(waitpid(child, NULL, 0) == child);
    printf("%-16s%s %8.0f calls/s  client %5.2f us/call  server %5.2f us/call  "
           "mean %6.0f us  max %6.1f ms  %5.1f calls/write\n",
           b->mode->name, b->paced ? " paced" : "      ", calls / wall_s, client_us,
           (double)server_ns / 1e3 / (double)b->answered, (double)b->latency_ns_sum / 1e3 / calls,
           (double)b->latency_ns_max / 1e6, calls / (double)(after.writes - before.writes));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *which = argc > 1 ? argv[1] : "all";
    uint64_t seconds = argc > 2 ? strtoull(argv[2], NULL, 10) : 3;
    uint32_t outstanding = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 64;
    size_t body = argc > 4 ? strtoul(argv[4], NULL, 10) : 250;
    bool paced = argc > 5;
    char certs[64];

    if (outstanding > OUTSTANDING_MAX || body > BODY_MAX) {
        fprintf(stderr, "outstanding <= %u, body <= %u\n", OUTSTANDING_MAX, BODY_MAX);
        return 2;
    }
    fixture_certs_make(certs);
    for (size_t i = 0; i < FIXTURE_MODES; i++) {
        if (strcmp(which, "all") != 0 && strcmp(which, fixture_modes[i].name) != 0)
            continue;
        /* nng may not be forked once started: every mode gets a process. */
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            static struct bench bench;
            bench.mode = &fixture_modes[i];
            bench.outstanding = outstanding;
            bench.body_size = body;
            bench.paced = paced;
            run(&bench, certs, seconds);
            _exit(0);
        }
        CHECK(waitpid(child, NULL, 0) == child);
    }
    fixture_certs_remove(certs);
    return 0;
}
