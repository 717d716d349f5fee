/*
 * holdfast-sim: runs seeds of the cluster simulator. Each seed is one run; seeds are run by child
 * processes, so that a failed CHECK costs one seed and not the batch.
 */
#include <stdio.h>

#include "runtime/base/check.h"
#include "tests/sim/batch.h"
#include "tests/sim/options.h"
#include "tests/sim/story.h"

#define SEEDS_DEFAULT 100u
#define SECONDS_MAX   86400u

static int usage(void)
{
    fputs(
        "usage: holdfast-sim [--seeds N] [--first S] [--seed S] [--file PATH] [--jobs N]\n"
        "                    [--seconds N] [--json] [--no-reach] [--stop]\n"
        "  --seeds N   N seeds from --first on (default 100 from 1)\n"
        "  --seed S    one seed, with its whole story\n"
        "  --file P    also the seeds kept in this file, one a line\n"
        "  --seconds N begins no seed after N seconds (without --seeds: as many as fit)\n"
        "  --seed S --shrink: leaves out what it can while the seed still fails, and tells that\n"
        "  --without KIND,.. --troubles N,.. --nodes N --shards N --players N --servers N\n"
        "              leave out parts of a run; --events N: ends it; --forbid COUNTER: breaks it\n"
        "  --digests P writes a line for each seed to this file: the seed, and the digest of all "
        "that\n"
        "              happened in it. Equal before and after a change: the change is one of form\n"
        "  --no-reach  do not fail when something was never exercised\n"
        "  --stop      at the first seed that fails, and without its story\n",
        stderr);
    return 2;
}

static bool take_switch(void *user, const char *name, const char *value)
{
    return switches_option(user, name, value);
}

static bool parse(char **argv, struct batch_options *options)
{
    uint64_t jobs = options->jobs, seconds = options->seconds;
    const struct sim_option known[] = {
        { .name = "--json", .flag = &options->json },
        { .name = "--no-reach", .flag = &options->reach_optional },
        { .name = "--stop", .flag = &options->stop },
        { .name = "--shrink", .flag = &options->shrink },
        { .name = "--file", .text = &options->file },
        { .name = "--digests", .text = &options->digests },
        { .name = "--seeds", .number = &options->count, .most = UINT64_MAX },
        { .name = "--first", .number = &options->first, .most = UINT64_MAX },
        { .name = "--seed",
          .number = &options->first,
          .most = UINT64_MAX,
          .flag = &options->story },
        { .name = "--jobs", .number = &jobs, .least = 1, .most = BATCH_JOBS_MAX },
        { .name = "--seconds", .number = &seconds, .least = 1, .most = SECONDS_MAX },
    };
    bool good = sim_options_read(&(struct sim_options){ .known = known,
                                                        .count = ARRAY_SIZE(known),
                                                        .other = take_switch,
                                                        .user = &options->switches },
                                 argv);

    options->jobs = (uint32_t)jobs;
    options->seconds = (uint32_t)seconds;
    return good;
}

int main(int argc, char **argv)
{
    struct batch_options options = { .first = 1, .jobs = 1 };

    (void)argc;
    if (!parse(argv, &options))
        return usage();
    if (options.shrink) {
        story_shrunk(options.first, &options.switches);
        return 0;
    }
    if (options.story)
        return story_tell(options.first, &options.switches);
    if (options.count == 0)
        options.count = options.seconds > 0 ? BATCH_SEEDS_MAX : SEEDS_DEFAULT;
    return batch_run(&options);
}
