/*
 * verb_table: every verb of `holdfast`, once: what main() runs, what --help prints, what shells
 * complete, and what docs/holdfast.1 must tell of.
 */
#ifndef CLIENT_CLI_VERB_TABLE_H
#define CLIENT_CLI_VERB_TABLE_H

#include <stddef.h>

#include "client/cli/arguments.h"

/* One row a usage: several may have the same first word, and then the same `run`. */
struct verb {
    const char *words;     /* "player show"; alternatives: "node drain|undrain|remove". */
    const char *arguments; /* What follows: "PLAYER"; may be empty. */
    const char *meaning;
    int (*run)(const struct arguments *arguments);
};

/* All of them, as --help lists them; *ret_count of them. */
const struct verb *verb_all(size_t *ret_count);
/* A row whose first word is `word`; NULL: there is none. */
const struct verb *verb_find(const char *word);
/* Says which verb was probably meant where the words begin with none: "there is no verb 'lits'; did
 * you mean 'list'?" Not of a verb's second word unless one is near: the verb itself knows how it is
 * used. False: nothing is said, they begin with a verb. */
#define VERB_WHY_BYTES 256u
bool verb_misspelt(const struct arguments *arguments, char ret_why[VERB_WHY_BYTES]);
/* Verbs, options and exit codes, on standard output. */
void verb_print_help(void);

#endif
