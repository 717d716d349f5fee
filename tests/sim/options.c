#include "tests/sim/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEED_LINE_BYTES 512

static const struct sim_option *find(const struct sim_options *options, const char *name)
{
    for (size_t i = 0; i < options->count; i++) {
        if (strcmp(options->known[i].name, name) == 0)
            return &options->known[i];
    }
    return NULL;
}

static bool read_number(const struct sim_option *option, const char *value)
{
    char *end = NULL;

    errno = 0;
    unsigned long long number = strtoull(value, &end, 10);
    if (end == value || *end != '\0' || errno != 0 || number < option->least ||
        number > option->most) {
        fprintf(stderr, "%s %s: a number from %" PRIu64 " to %" PRIu64 " is expected\n",
                option->name, value, option->least, option->most);
        return false;
    }
    *option->number = number;
    return true;
}

/* Takes the option at `at`; returns the next one, NULL when it is refused. */
static char **take(const struct sim_options *options, char **at)
{
    const struct sim_option *option = find(options, *at);
    bool valued = option == NULL || option->number != NULL || option->text != NULL;

    if (valued && at[1] == NULL)
        return NULL;
    if (option == NULL)
        return options->other != NULL && options->other(options->user, at[0], at[1]) ? at + 2
                                                                                     : NULL;
    if (option->number != NULL && !read_number(option, at[1]))
        return NULL;
    if (option->text != NULL)
        *option->text = at[1];
    if (option->flag != NULL)
        *option->flag = true;
    return at + (valued ? 2 : 1);
}

bool sim_options_read(const struct sim_options *options, char **argv)
{
    char **at = argv + 1;

    while (at != NULL && *at != NULL)
        at = take(options, at);
    return at != NULL;
}

bool sim_seeds_read(const char *path, uint64_t *seeds, uint64_t most, uint64_t *count)
{
    FILE *file = fopen(path, "r");
    char line[SEED_LINE_BYTES];

    if (file == NULL) {
        fprintf(stderr, "%s cannot be read\n", path);
        return false;
    }
    while (fgets(line, sizeof line, file) != NULL && *count < most) {
        char *end;
        unsigned long long seed = strtoull(line, &end, 10);
        if (end != line)
            seeds[(*count)++] = seed;
    }
    fclose(file);
    return true;
}
