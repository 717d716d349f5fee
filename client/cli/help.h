/* help: what --help prints, all of it from what verbs say about themselves. */
#ifndef CLIENT_CLI_HELP_H
#define CLIENT_CLI_HELP_H

#include <stdio.h>

#include "client/cli/console/arguments.h"

/* All verbs by topic, the options that many have, and exit codes, on standard output. */
void help_print(void);
/* The verb that the words name, by itself; with one word that several verbs begin with, a list of
 * these. Returns the exit code: 2 if there is no such verb, which is told on standard error. */
int help_print_verb(const char *const *words, uint32_t count);
/* How each verb that begins with this word is used. */
void help_print_usages(FILE *to, const char *word);
/* How the verb that runs is used, on standard error; returns 2, the exit code. */
int refuse_usage(const struct arguments *arguments);

#endif
