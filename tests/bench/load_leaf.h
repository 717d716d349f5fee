/* load_leaf: which leaf of which player's settings gets which value: the same draw for every store.
 */
#ifndef TESTS_BENCH_LOAD_LEAF_H
#define TESTS_BENCH_LOAD_LEAF_H

#include "load_options.h"

struct load_leaf {
    unsigned player;
    char name[8];
    unsigned value;
};

/* A player, one of eight leaves and a value, each uniformly. */
struct load_leaf load_leaf_next(const struct load_options *options);

#endif
