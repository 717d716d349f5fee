/* command_line: from argv to the verb that runs. */
#ifndef CLIENT_CLI_COMMAND_LINE_H
#define CLIENT_CLI_COMMAND_LINE_H

#include "client/cli/console/arguments.h"

/* Texts are borrowed from argv. ERR_INVALID: ret_why says what is wrong; of options it names the
 * flag and never a value, which may be a secret. */
#define COMMAND_WHY_BYTES 320u
NODISCARD err command_line_parse(int argc, char *const *argv, struct arguments *ret_arguments,
                                 char ret_why[COMMAND_WHY_BYTES]);
/* Finds the verb of the words and runs it with what follows; returns the exit code. Words that are
 * none, or too few or too many, are told on standard error. */
int command_line_run(struct arguments *arguments);

#endif
