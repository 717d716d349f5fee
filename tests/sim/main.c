/*
 * holdfast-sim: runs seeds of the cluster simulator. Each seed is one run; seeds are run by child
 * processes, so that a failed CHECK costs one seed and not the batch.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/sim/batch.h"
#include "tests/sim/story.h"

#define SEEDS_DEFAULT 100u
#define SECONDS_MAX   86400u

static bool number(const char *text, uint64_t *ret_number)
{
    char *end = NULL;

    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (text[0] == '\0' || *end != '\0' || errno != 0)
        return false;
    *ret_number = n;
    return true;
}

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

static bool flag(const char *name, struct batch_options *options)
{
    if (strcmp(name, "--json") == 0)
        options->json = true;
    else if (strcmp(name, "--no-reach") == 0)
        options->reach_optional = true;
    else if (strcmp(name, "--stop") == 0)
        options->stop = true;
    else if (strcmp(name, "--shrink") == 0)
        options->shrink = true;
    else
        return false;
    return true;
}

static bool option(const char *name, const char *value, struct batch_options *options)
{
    uint64_t n = 0;

    if (strcmp(name, "--file") == 0) {
        options->file = value;
        return true;
    }
    if (strcmp(name, "--digests") == 0) {
        options->digests = value;
        return true;
    }
    if (switches_option(&options->switches, name, value))
        return true;
    if (!number(value, &n))
        return false;
    if (strcmp(name, "--seeds") == 0) {
        options->count = n;
    } else if (strcmp(name, "--first") == 0) {
        options->first = n;
    } else if (strcmp(name, "--jobs") == 0 && n >= 1 && n <= BATCH_JOBS_MAX) {
        options->jobs = (uint32_t)n;
    } else if (strcmp(name, "--seconds") == 0 && n >= 1 && n <= SECONDS_MAX) {
        options->seconds = (uint32_t)n;
    } else if (strcmp(name, "--seed") == 0) {
        options->story = true;
        options->first = n;
    } else {
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct batch_options options = { .first = 1, .jobs = 1 };

    for (int i = 1; i < argc; i++) {
        if (flag(argv[i], &options))
            continue;
        if (i + 1 >= argc || !option(argv[i], argv[i + 1], &options))
            return usage();
        i++;
    }
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
