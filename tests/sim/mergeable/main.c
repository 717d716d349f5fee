/* holdfast-merge-sim: seeds of the mergeable class. */
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/check.h"
#include "tests/sim/mergeable/msim.h"
#include "tests/sim/options.h"

#define SEEDS_MAX 100000000u
#define KEPT_MAX  10000u
#define STORY_MS  60000u

/* What a signal or a failed check has to tell. */
static const struct msim *running;

static void tell_broken(const struct msim *sim, const char *text)
{
    printf("{\"seeds\":1,\"violations\":1,\"failed\":[%" PRIu64 "],\"broken\":\"", sim->seed);
    for (const char *at = text; *at != '\0'; at++)
        putchar(*at == '"' || *at == '\\' || (unsigned char)*at < ' ' ? '\'' : *at);
    printf("\"}\n");
    (void)fflush(stdout);
}

void msim_broken(const struct msim *sim, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    tell_broken(sim, text);
    _exit(1);
}

static void check_told(void *user, const char *where)
{
    (void)user;
    tell_broken(running, where);
}

static void signal_told(int number)
{
    tell_broken(running, number == SIGSEGV ? "bad memory" : "the process died");
    _exit(1);
}

uint64_t msim_next(struct msim *sim)
{
    uint64_t x = sim->random += 0x9e3779b97f4a7c15u; /* Splitmix64 (Vigna). */

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t msim_between(struct msim *sim, uint64_t low, uint64_t high)
{
    CHECK(low <= high);
    return low + msim_next(sim) % (high - low + 1);
}

bool msim_chance(struct msim *sim, uint32_t per_thousand)
{
    return msim_between(sim, 0, 999) < per_thousand;
}

static void make_keys(struct msim *sim)
{
    for (uint32_t i = 0; i < KEYS; i++) {
        char entity[16], name[16];

        (void)snprintf(entity, sizeof entity, "player:%u", i / FORMS);
        (void)snprintf(name, sizeof name, "%u", i % FORMS);
        CHECK(merge_key_new(slice_from_text(entity), slice_from_text(name), &sim->keys[i]) ==
              ERR_OK);
    }
}

static void step(struct msim *sim)
{
    sim->now_ms += msim_between(sim, 1, 60);
    msim_deliver(sim);
    for (uint32_t i = 0; i < NODES; i++) {
        struct node *node = &sim->nodes[i];

        if (node->replica == NULL)
            continue;
        msim_strict(sim, node);
        if (msim_chance(sim, sim->healing ? 300 : sim->synced_per_thousand))
            msim_sync(sim, node);
        if (msim_chance(sim, 8))
            msim_checkpoint(sim, node, false);
    }
    msim_members(sim);
    ended_watch(sim);
}

static void run_seed(uint64_t seed, struct counts *counts)
{
    struct msim *sim = mem_zalloc(sizeof *sim);

    sim->seed = seed;
    sim->random = seed * 1000003u;
    sim->now_ms = 1000000000;
    sim->counts = counts;
    sim->index_max = msim_chance(sim, 250) ? 24 : 4096;
    sim->closed_max = (uint32_t)msim_between(sim, 1, 6);
    sim->lost_per_thousand = msim_chance(sim, 250) ? (uint32_t)msim_between(sim, 50, 250) : 30;
    sim->late_per_thousand = msim_chance(sim, 250) ? (uint32_t)msim_between(sim, 50, 200) : 20;
    sim->synced_per_thousand = msim_chance(sim, 250) ? (uint32_t)msim_between(sim, 10, 100) : 300;
    sim->counts_most = msim_chance(sim, 250);
    if (msim_chance(sim, 250))
        sim->fades_ms = sim->now_ms + STORY_MS / 2;
    sim->loses_many = seed % 8 == 5;
    sim->large = seed % 8 == 4;
    sim->leaps = seed % 8 == 7; /* Nothing is drawn: kept seeds stay the stories that they are. */
    running = sim;
    make_keys(sim);
    sim->members.membership = (struct membership){ .config = 1,
                                                   .count = msim_chance(sim, 250) ? NODES : 3,
                                                   .members = { 1, 2, 3, 4, 5 } };
    for (uint32_t i = 0; i < NODES; i++) {
        sim->nodes[i].sim = sim;
        sim->nodes[i].id = i + 1;
        sim->nodes[i].skew_ms = (int64_t)msim_between(sim, 0, 600) - 300;
    }
    if (msim_chance(sim, 200))
        sim->nodes[msim_between(sim, 0, 2)].skew_ms = (int64_t)msim_between(sim, 0, 9000) - 4500;
    for (uint32_t i = 0; i < sim->members.membership.count; i++)
        msim_start(sim, &sim->nodes[i], true);
    uint64_t end_ms = sim->now_ms + STORY_MS;

    while (sim->now_ms < end_ms) {
        step(sim);
        msim_call(sim);
        msim_trouble(sim);
    }
    msim_heal(sim);
    for (end_ms = sim->now_ms + STORY_MS; sim->now_ms < end_ms;) {
        step(sim);
        if (sim->now_ms + STORY_MS / 3 < end_ms && msim_chance(sim, 100))
            msim_sweep(sim);
    }
    oracle_healed(sim);
    msim_world_free(sim);
}

static uint32_t report(uint64_t seeds, const struct counts *counts, bool no_reach)
{
    uint32_t never = 0;
    const char *comma = "";

    printf("{\"seeds\":%" PRIu64 ",\"violations\":0,\"reach\":{", seeds);
#define FIELD(name)                                                                                \
    printf("%s\"" #name "\":%" PRIu64, comma, counts->name);                                       \
    comma = ",";                                                                                   \
    if (counts->name == 0 && !no_reach) {                                                          \
        fprintf(stderr, "never exercised: " #name "\n");                                           \
        never++;                                                                                   \
    }
    MSIM_REACH(FIELD)
#undef FIELD
    printf("},\"failed\":[],\"broken\":\"\"}\n");
    return never;
}

int main(int argc, char **argv)
{
    static const struct check_watch watch = { .failed = check_told };
    const struct sigaction died = { .sa_handler = signal_told };
    static const int fatal[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL };
    static uint64_t kept[KEPT_MAX];
    uint64_t first = 1, seeds = 1000, kept_count = 0;
    const char *file = NULL;
    bool no_reach = false;
    struct counts counts = { 0 };

    const struct sim_option known[] = {
        { .name = "--first", .number = &first, .least = 1, .most = SEEDS_MAX },
        { .name = "--seeds", .number = &seeds, .least = 1, .most = SEEDS_MAX },
        { .name = "--file", .text = &file },
        { .name = "--no-reach", .flag = &no_reach },
    };

    (void)argc;
    if (!sim_options_read(&(struct sim_options){ .known = known, .count = ARRAY_SIZE(known) },
                          argv)) {
        fprintf(stderr, "holdfast-merge-sim [--first S] [--seeds N] [--file PATH] [--no-reach]\n");
        return 2;
    }
    if (file != NULL && !sim_seeds_read(file, kept, KEPT_MAX, &kept_count))
        return 2;
    check_watch_set(&watch);
    for (size_t i = 0; i < ARRAY_SIZE(fatal); i++)
        (void)sigaction(fatal[i], &died, NULL);
    for (uint64_t i = 0; i < kept_count; i++)
        run_seed(kept[i], &counts);
    for (uint64_t seed = first; seed < first + seeds; seed++)
        run_seed(seed, &counts);
    return report(kept_count + seeds, &counts, no_reach) > 0;
}
