/* load_favorite: which player favourites which target: the same draw for every store. */
#ifndef TESTS_BENCH_LOAD_FAVORITE_H
#define TESTS_BENCH_LOAD_FAVORITE_H

#include "load_options.h"

struct load_favorite {
    unsigned player;
    char target[32];
};

/* A player, uniformly, and one of --targets "g0", "g1", ..; with --hot, half of the time that. */
struct load_favorite load_favorite_next(const struct load_options *options);

#endif
