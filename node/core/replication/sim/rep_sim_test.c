/*
 * Runs replicas of one shard through seeds of trouble. Without arguments: a few hundred seeds.
 *   rep_sim_test FIRST_SEED [COUNT [verbose]]
 * A failing seed is printed; run it again alone, with `verbose`, to see every message.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/core/replication/sim/rep_sim_chaos.h"

#define SEEDS_DEFAULT 300u
#define CHAOS_MS      3000u

static char seed_text[64];

/* A failed CHECK aborts: say under which seed. */
static void on_abort(int signal_number)
{
    (void)signal_number;
    ssize_t ignored = write(STDERR_FILENO, seed_text, strlen(seed_text));
    (void)ignored;
}

static bool run_seed(uint64_t seed, bool verbose, struct sim_counts *total)
{
    struct rep_sim *sim = malloc(sizeof *sim);

    if (sim == NULL)
        abort();
    snprintf(seed_text, sizeof seed_text, "aborted in seed %" PRIu64 "\n", seed);
    rep_sim_chaos_begin(sim, seed);
    sim->verbose = verbose;
    while (sim->failure[0] == '\0' && rep_sim_one(sim, CHAOS_MS))
        ;
    bool good = sim->failure[0] == '\0' && rep_sim_heal(sim);
    if (!good)
        printf("seed %" PRIu64 " failed %s\n", seed, sim->failure);
#define ADD(name) total->name += sim->counts.name;
    SIM_COUNTS(ADD)
#undef ADD
    rep_sim_deinit(sim);
    free(sim);
    return good;
}

/* What no run has reached, no run has tested. */
static uint32_t print_counts(const struct sim_counts *total)
{
    uint32_t unreached = 0;

#define PRINT(name)                                                                                \
    printf("  %-18s %12" PRIu64 "\n", #name, total->name);                                         \
    unreached += total->name == 0;
    SIM_COUNTS(PRINT)
#undef PRINT
    return unreached;
}

int main(int argc, char **argv)
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : argc > 1 ? 1 : SEEDS_DEFAULT;
    bool verbose = argc > 3 && strcmp(argv[3], "verbose") == 0;
    struct sim_counts total = { 0 };
    uint64_t failed = 0;

    signal(SIGABRT, on_abort);
    for (uint64_t seed = first; seed < first + count; seed++)
        failed += !run_seed(seed, verbose, &total);
    printf("%" PRIu64 " seeds from %" PRIu64 ", %" PRIu64 " failed\n", count, first, failed);
    uint32_t unreached = print_counts(&total);
    if (count >= SEEDS_DEFAULT && unreached > 0) {
        printf("%u mechanisms were never reached\n", unreached);
        return 1;
    }
    return failed == 0 ? 0 : 1;
}
