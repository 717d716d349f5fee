/* options: those that verbs of more than one file have. A verb's own stand in its file. */
#ifndef CLIENT_CLI_CONSOLE_OPTIONS_H
#define CLIENT_CLI_CONSOLE_OPTIONS_H

#include "client/cli/console/arguments.h"

/* ---- of every verb that calls a router ---- */
extern const struct command_option option_endpoint, option_key, option_ca, option_deadline_ms;
#define OPTIONS_OF_CALLS &option_endpoint, &option_key, &option_ca, &option_deadline_ms

/* ---- of every verb that prints rows or JSON ---- */
extern const struct command_option option_output, option_json;
#define OPTIONS_OF_OUTPUT &option_output, &option_json

#define DEADLINE_MS_MAX 60000u

extern const struct command_option option_cluster; /* Its name. */
extern const struct command_option option_dry_run;
extern const struct command_option option_reason;

/* ---- of verbs that print a page ---- */
extern const struct command_option option_page_size, option_cursor;
#define OPTIONS_OF_PAGES &option_page_size, &option_cursor

/* ---- of verbs that change what a player owns ---- */
extern const struct command_option option_op_id;
#define OPTIONS_OF_CHANGES &option_op_id, &option_reason

#define THROTTLE_MIB_MAX 100000u
extern const struct command_option option_throttle; /* Of backups. */

#endif
