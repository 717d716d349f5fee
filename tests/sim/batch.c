#include "tests/sim/batch.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/check.h"
#include "tests/sim/options.h"
#include "tests/sim/story.h"

#define TWICE_EVERY    100u /* One seed in so many runs twice and must be the same. */
#define STORIES_MAX    5u
#define FAILURES_SHOWN 20u

/* What a child says of one seed. */
struct verdict {
    uint64_t seed;
    bool begun; /* Only that it begins. */
    struct hash128 digest;
    struct sim_counts counts;
    char failure[SIM_TEXT_BYTES];
};

struct child {
    pid_t pid;
    int fd;
    uint64_t next; /* Place of the next seed; the child takes every jobs-th. */
    uint64_t seed; /* Being run. */
};

struct batch {
    const struct batch_options *options;
    uint64_t *seeds;
    uint64_t seed_count;
    struct sim_counts counts;
    uint64_t done, failed;
    struct verdict *failures; /* Counts unused. */
    FILE *digests;            /* NULL: not asked for. */
    struct timespec began;
};

/* ---- one seed ---- */
static double seconds_since(const struct timespec *began)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - began->tv_sec) + (double)(now.tv_nsec - began->tv_nsec) / 1e9;
}

/* Of the children that have ended: what a machine that does other things too does not change. */
static double processor_seconds(void)
{
    struct rusage used;

    CHECK(getrusage(RUSAGE_CHILDREN, &used) == 0);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static double events_per_second(const struct batch *batch, double seconds)
{
    return seconds > 0 ? (double)batch->counts.events / seconds : 0;
}

static bool time_is_up(const struct batch *batch)
{
    return batch->options->seconds > 0 && seconds_since(&batch->began) >= batch->options->seconds;
}

static struct hash128 run_seed(const struct batch *batch, uint64_t seed,
                               struct verdict *ret_verdict)
{
    struct sim *sim = sim_new(seed, &batch->options->switches, false);

    sim_run(sim);
    struct hash128 digest = sim->digest;
    *ret_verdict = (struct verdict){ .seed = seed, .counts = sim->counts };
    memcpy(ret_verdict->failure, sim->failure, sizeof sim->failure);
    sim_free(sim);
    return digest;
}

static void tell(int fd, const struct verdict *verdict)
{
    if (write(fd, verdict, sizeof *verdict) != (ssize_t)sizeof *verdict)
        _exit(3);
}

static void child_main(const struct batch *batch, uint64_t place, int fd)
{
    for (; place < batch->seed_count && !time_is_up(batch); place += batch->options->jobs) {
        uint64_t seed = batch->seeds[place];
        struct verdict verdict = { .seed = seed, .begun = true };
        tell(fd, &verdict);
        struct hash128 first = run_seed(batch, seed, &verdict);
        verdict.digest = first;
        if (seed % TWICE_EVERY == 0 && verdict.failure[0] == '\0') {
            struct verdict again;
            struct hash128 second = run_seed(batch, seed, &again);
            if (!hash128_equal(first, second))
                snprintf(verdict.failure, sizeof verdict.failure,
                         "two runs of this seed are not the same");
        }
        tell(fd, &verdict);
    }
    _exit(0);
}

/* ---- children ---- */
static void child_start(struct batch *batch, struct child *child)
{
    int fds[2];

    CHECK(pipe(fds) == 0);
    fflush(stdout);
    child->pid = fork();
    CHECK(child->pid >= 0);
    if (child->pid == 0) {
        close(fds[0]);
        child_main(batch, child->next, fds[1]);
    }
    close(fds[1]);
    child->fd = fds[0];
}

static void note_failure(struct batch *batch, uint64_t seed, const char *what)
{
    struct verdict *failure = &batch->failures[batch->failed % FAILURES_SHOWN];

    batch->failed++;
    *failure = (struct verdict){ .seed = seed };
    snprintf(failure->failure, sizeof failure->failure, "%s", what);
    fprintf(stderr, "seed %" PRIu64 ": %s\n", seed, what);
}

static void add_counts(struct sim_counts *to, const struct sim_counts *from)
{
#define SIM_FIELD(name) to->name += from->name;
    SIM_REACH(SIM_FIELD)
    SIM_FAULTS(SIM_FIELD)
#undef SIM_FIELD
    to->events += from->events;
}

static void write_digest(struct batch *batch, const struct verdict *verdict)
{
    if (batch->digests == NULL)
        return;
    fprintf(batch->digests, "%" PRIu64 " ", verdict->seed);
    for (size_t i = 0; i < sizeof verdict->digest.bytes; i++)
        fprintf(batch->digests, "%02x", verdict->digest.bytes[i]);
    fputc('\n', batch->digests);
}

static void take_verdict(struct batch *batch, struct child *child, const struct verdict *verdict)
{
    if (verdict->begun) {
        child->seed = verdict->seed;
        return;
    }
    batch->done++;
    child->next += batch->options->jobs;
    add_counts(&batch->counts, &verdict->counts);
    write_digest(batch, verdict);
    if (verdict->failure[0] != '\0')
        note_failure(batch, verdict->seed, verdict->failure);
}

/* False: the child is through with its seeds. */
static bool child_listen(struct batch *batch, struct child *child)
{
    struct verdict verdict;
    size_t got = 0;
    int status = 0;

    while (got < sizeof verdict) {
        ssize_t n = read(child->fd, (char *)&verdict + got, sizeof verdict - got);
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    if (got == sizeof verdict) {
        take_verdict(batch, child, &verdict);
        return true;
    }
    close(child->fd);
    CHECK(waitpid(child->pid, &status, 0) == child->pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return false;
    note_failure(batch, child->seed, "the process died (see above)");
    batch->done++;
    child->next += batch->options->jobs;
    child_start(batch, child);
    return true;
}

static void child_end(const struct child *child)
{
    kill(child->pid, SIGKILL);
    close(child->fd);
    CHECK(waitpid(child->pid, NULL, 0) == child->pid);
}

static void run_children(struct batch *batch)
{
    struct child children[BATCH_JOBS_MAX];
    uint32_t jobs = batch->options->jobs;
    bool working[BATCH_JOBS_MAX] = { false };
    uint32_t left = jobs;

    for (uint32_t i = 0; i < jobs; i++) {
        children[i] = (struct child){ .next = i };
        child_start(batch, &children[i]);
        working[i] = true;
    }
    while (left > 0) {
        for (uint32_t i = 0; i < jobs; i++) {
            if (working[i] && !child_listen(batch, &children[i])) {
                working[i] = false;
                left--;
            }
        }
        if (batch->options->stop && batch->failed > 0)
            break;
    }
    for (uint32_t i = 0; i < jobs; i++) {
        if (working[i])
            child_end(&children[i]);
    }
}

/* ---- the report ---- */

static uint32_t unreached(const struct batch *batch)
{
    uint32_t zeros = 0;

    if (batch->options->reach_optional)
        return 0;
#define SIM_FIELD(name)                                                                            \
    if (batch->counts.name == 0) {                                                                 \
        fprintf(stderr, "never exercised: " #name "\n");                                           \
        zeros++;                                                                                   \
    }
    SIM_REACH(SIM_FIELD)
    SIM_FAULTS(SIM_FIELD)
#undef SIM_FIELD
    return zeros;
}

static void print_json(const struct batch *batch, double seconds, double processor)
{
    printf("{\"seeds\":%" PRIu64 ",\"events\":%" PRIu64 ",\"violations\":%" PRIu64
           ",\"seconds\":%.1f,\"processor_seconds\":%.1f,\"events_per_processor_second\":%.0f"
           ",\"reach\":{",
           batch->done, batch->counts.events, batch->failed, seconds, processor,
           events_per_second(batch, processor));
    const char *comma = "";
#define SIM_FIELD(name)                                                                            \
    printf("%s\"" #name "\":%" PRIu64, comma, batch->counts.name);                                 \
    comma = ",";
    SIM_REACH(SIM_FIELD)
    printf("},\"faults\":{");
    comma = "";
    SIM_FAULTS(SIM_FIELD)
#undef SIM_FIELD
    printf("},\"failed\":[");
    for (uint64_t i = 0; i < batch->failed && i < FAILURES_SHOWN; i++)
        printf("%s%" PRIu64, i > 0 ? "," : "", batch->failures[i].seed);
    printf("],\"broken\":\"");
    for (const char *at = batch->failures[0].failure; *at != '\0'; at++)
        putchar(*at == '"' || *at == '\\' || (unsigned char)*at < ' ' ? '\'' : *at);
    printf("\"}\n");
}

static void print_text(const struct batch *batch, double seconds, double processor)
{
    uint32_t column = 0;

    printf("---- reached\n");
#define SIM_FIELD(name)                                                                            \
    printf("%-22s%12" PRIu64 "%s", #name, batch->counts.name, ++column % 3 == 0 ? "\n" : "   ");
    SIM_REACH(SIM_FIELD)
    printf("%s---- faults by kind\n", column % 3 == 0 ? "" : "\n");
    column = 0;
    SIM_FAULTS(SIM_FIELD)
#undef SIM_FIELD
    printf("\n%" PRIu64 " seeds, %" PRIu64 " events, %.1f s (%.0f seeds/s), "
           "%.1f processor seconds (%.0f events in each), %" PRIu64 " failed\n",
           batch->done, batch->counts.events, seconds, (double)batch->done / seconds, processor,
           events_per_second(batch, processor), batch->failed);
}

static int report(const struct batch *batch)
{
    double seconds = seconds_since(&batch->began);
    double processor = processor_seconds(); /* Before stories are shrunk. */

    if (batch->options->json) {
        print_json(batch, seconds, processor);
    } else {
        for (uint64_t i = 0; i < batch->failed && i < STORIES_MAX && !batch->options->stop; i++)
            story_shrunk(batch->failures[i].seed, &batch->options->switches);
        print_text(batch, seconds, processor);
    }
    return unreached(batch) > 0 || batch->failed > 0;
}

/* ---- seeds ---- */
static bool open_digests(struct batch *batch, const char *path)
{
    if (path == NULL)
        return true;
    batch->digests = fopen(path, "w");
    if (batch->digests == NULL)
        fprintf(stderr, "%s cannot be written\n", path);
    return batch->digests != NULL;
}

int batch_run(const struct batch_options *options)
{
    struct batch batch = { .options = options };

    clock_gettime(CLOCK_MONOTONIC, &batch.began);
    batch.seeds = mem_zalloc(sizeof *batch.seeds * (BATCH_SEEDS_MAX + 1));
    batch.failures = mem_zalloc(sizeof *batch.failures * FAILURES_SHOWN);
    bool readable = (options->file == NULL || sim_seeds_read(options->file, batch.seeds,
                                                             BATCH_SEEDS_MAX, &batch.seed_count)) &&
                    open_digests(&batch, options->digests);
    for (uint64_t i = 0; i < options->count && batch.seed_count < BATCH_SEEDS_MAX; i++)
        batch.seeds[batch.seed_count++] = options->first + i;
    if (readable)
        run_children(&batch);
    int code = readable ? report(&batch) : 2;
    if (batch.digests != NULL && fclose(batch.digests) != 0) {
        fprintf(stderr, "%s: the digests could not be written\n", options->digests);
        code = 2;
    }
    free(batch.seeds);
    free(batch.failures);
    return code;
}
