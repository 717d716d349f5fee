/*
 * arguments: what stood on the command line: the words of a verb, and options with their values. An
 * option is an object that the files of verbs share or keep for themselves; reading one by its
 * address lets the compiler find a misspelt name. command_line.h parses.
 */
#ifndef CLIENT_CLI_CONSOLE_ARGUMENTS_H
#define CLIENT_CLI_CONSOLE_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/buf.h"
#include "runtime/base/err.h"

#define WORDS_MAX         8u
#define OPTIONS_GIVEN_MAX 128u

struct verb;

/* Options of several verbs may have one flag, with meanings of their own; then all of them take a
 * value, or none does. */
struct command_option {
    const char *flag;        /* Without the dashes. */
    const char *value;       /* What its value is: "FILE"; NULL: it takes none. */
    const char *initial;     /* What holds where it is not given; NULL: an empty text. */
    const char *environment; /* A variable that stands in for it; NULL: none does. */
    const char *meaning;
    bool common; /* Of every verb that calls a router or prints rows; help tells of it once. */
};

struct option_given {
    const char *flag;
    const char *text; /* Empty where it takes none. */
};

struct arguments {
    const struct verb *verb; /* What runs; NULL while it is not known. */
    bool help, version;
    const char
        *words[WORDS_MAX]; /* Of the line; for a verb that runs, what follows its own words. */
    uint32_t word_count;
    struct option_given given[OPTIONS_GIVEN_MAX]; /* Each flag once. */
    uint32_t given_count;
};

/* From the line, else from the environment, else its default. Never NULL. */
const char *option_text(const struct arguments *arguments, const struct command_option *option);
/* Whether an option without a value was given. */
bool option_is_set(const struct arguments *arguments, const struct command_option *option);
/* A whole number within bounds. ERR_INVALID: written to standard error with flag and bounds. */
NODISCARD err option_number(const struct arguments *arguments, const struct command_option *option,
                            uint32_t min, uint32_t max, uint32_t *ret_number);
/* The same of a word, which messages call `name`: "SHARD". */
NODISCARD err argument_number(const char *name, const char *text, uint32_t min, uint32_t max,
                              uint32_t *ret_number);

/* Cuts the next element off a list with commas between, which may be empty. False: none is left. */
bool list_next(const char **list, struct slice *ret_element);

/* As if `--flag text` stood at the end of the line; both are borrowed. ERR_TOO_LARGE: too many. */
NODISCARD err arguments_give(struct arguments *arguments, const char *flag, const char *text);
/* Leaves out the first `count` words. */
void arguments_skip_words(struct arguments *arguments, uint32_t count);

#endif
