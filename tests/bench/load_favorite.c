#include "load_favorite.h"

#include <stdio.h>

#include "load_grant.h"

struct load_favorite load_favorite_next(const struct load_options *options)
{
    struct load_favorite favorite = { .player = load_player(options) };
    uint64_t draw = load_random();

    if (options->hot[0] != 0 && draw % 2 == 0)
        snprintf(favorite.target, sizeof favorite.target, "%s", options->hot);
    else
        snprintf(favorite.target, sizeof favorite.target, "g%u",
                 (unsigned)(draw / 2 % options->targets));
    return favorite;
}
