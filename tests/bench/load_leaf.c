#include "load_leaf.h"

#include <stdio.h>

#include "load_grant.h"

#define LEAVES 8u

struct load_leaf load_leaf_next(const struct load_options *options)
{
    struct load_leaf leaf = { .player = load_player(options) };
    uint64_t draw = load_random();

    snprintf(leaf.name, sizeof leaf.name, "s%u", (unsigned)(draw % LEAVES));
    leaf.value = (unsigned)(draw >> 40);
    return leaf;
}
