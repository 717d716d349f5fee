/* ledger_change: the verbs of `holdfast ledger` that write: reverse, reserve, post, void. */
#ifndef CLIENT_CLI_LEDGER_CHANGE_H
#define CLIENT_CLI_LEDGER_CHANGE_H

#include <stdbool.h>

#include "client/cli/arguments.h"

/* False: it is none of them, or has the wrong words. Else *ret_code is the exit code. */
bool ledger_change(const struct arguments *arguments, int *ret_code);
/* How they are used, on standard error. */
void ledger_change_usage(void);

#endif
