/* verb_table: all verbs, and all options that any of them has. Looks up; prints nothing. Verbs that
 * look into it (help, completion) are among its rows, so the program hands the rows in. */
#ifndef CLIENT_CLI_VERB_TABLE_H
#define CLIENT_CLI_VERB_TABLE_H

#include "client/cli/verb.h"
#include "runtime/base/buf.h"

/* First of all: verb_rows.h. Borrowed. */
void verb_table_set(const struct verb *const *rows);

/* One after the other, verbs that begin with the same word side by side; NULL behind the last. */
const struct verb *verb_at(size_t place);
/* Which of its own words stands at `place`, 0 the first. Empty: there is none. */
struct slice verb_word(const struct verb *verb, uint32_t place);
uint32_t verb_word_count(const struct verb *verb);
/* Whether its first word is this. */
bool verb_begins_with(const struct verb *verb, const char *word);
/* Whether any does. */
bool verb_family_exists(const char *word);
/* Whether so many arguments are neither too few nor too many. */
bool verb_takes(const struct verb *verb, uint32_t count);
/* The verb that the words begin with, of several ("backup", "backup list") the longest, whatever
 * follows. NULL: there is none. */
const struct verb *verb_named(const char *const *words, uint32_t count);
/* The verb that runs: the longest that takes what follows, else the longest. NULL: there is none.
 */
const struct verb *verb_find(const char *const *words, uint32_t count);

/* Which verb was probably meant by words that begin with none, or with one that cannot take them:
 * "there is no verb 'stauts'", and the nearest (nearest.h). False: nothing is said, as the first
 * word is a verb's and no second one is near. */
#define VERB_WHY_BYTES 320u
bool verb_misspelt(const char *const *words, uint32_t count, char ret_why[VERB_WHY_BYTES]);

/* The options of all verbs, one for each flag; returns how many. */
#define OPTIONS_MAX OPTIONS_GIVEN_MAX
size_t options_gather(const struct command_option *ret_options[OPTIONS_MAX]);
/* NULL: no verb has it. */
const struct command_option *option_find(struct slice flag);
/* Whether this verb has it. */
bool verb_has_option(const struct verb *verb, const char *flag);

#endif
