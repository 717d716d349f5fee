/*
 * batch: many seeds in child processes, their counts added up, failures told. Reads the clock only
 * to say how fast it was.
 */
#ifndef TESTS_SIM_BATCH_H
#define TESTS_SIM_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/switches.h"

#define BATCH_JOBS_MAX  16u
#define BATCH_SEEDS_MAX 1000000u

struct batch_options {
    uint64_t first, count;
    const char *file;    /* Kept seeds; NULL: none. */
    const char *digests; /* Where each seed's digest is written; NULL: nowhere. */
    uint32_t jobs;
    bool json;
    bool reach_optional;
    bool stop;        /* At the first seed that fails. */
    uint32_t seconds; /* Begins no seed after so long; 0: no limit. */
    bool story;       /* One seed, told line by line. */
    bool shrink;      /* One seed, shrunk. */
    struct sim_switches switches;
};

/* The exit code: 0 when every seed held and everything was exercised. */
int batch_run(const struct batch_options *options);

#endif
