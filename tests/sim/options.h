/*
 * options: the command line of a simulator, which lists what it knows. Shared by holdfast-sim,
 * holdfast-merge-sim and holdfast-cores-sim.
 */
#ifndef TESTS_SIM_OPTIONS_H
#define TESTS_SIM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One option. It has a value if `number` or `text` is set. */
struct sim_option {
    const char *name; /* "--seeds" */
    bool *flag;       /* Set when it is given; NULL: not told. */
    uint64_t *number; /* Its value: from `least` to `most`. */
    uint64_t least, most;
    const char **text; /* Its value, borrowed from argv. */
};

struct sim_options {
    const struct sim_option *known;
    size_t count;
    /* Takes any other option with its value; false: it is unknown. NULL: every other one is. */
    bool (*other)(void *user, const char *name, const char *value);
    void *user;
};

/* Reads argv[1] and what follows. False at the first that is unknown, lacks its value or has a bad
 * one; of a bad number stderr is told. */
bool sim_options_read(const struct sim_options *options, char **argv);

/* Appends the kept seeds of a file, the number at the start of each line that begins with one, to
 * `seeds` of `most`. False: stderr is told that it cannot be read. */
bool sim_seeds_read(const char *path, uint64_t *seeds, uint64_t most, uint64_t *count);

#endif
