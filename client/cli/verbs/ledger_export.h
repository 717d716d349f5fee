/*
 * ledger_export: ledgers as lines of JSON on standard output, a page of entries in memory at a
 * time, and the check of such a file without any cluster. docs/ledger.md.
 */
#ifndef CLIENT_CLI_VERBS_LEDGER_EXPORT_H
#define CLIENT_CLI_VERBS_LEDGER_EXPORT_H

#include "client/cli/console/arguments.h"

/* Both return the exit code (verb.h). */
extern const struct command_option option_player, option_all;

int ledger_export(const struct arguments *arguments);
int ledger_verify(const struct arguments *arguments);

#endif
