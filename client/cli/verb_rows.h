/* verb_rows: the rows of all verb_NAME.c, which the build finds, for verb_table_set. */
#ifndef CLIENT_CLI_VERB_ROWS_H
#define CLIENT_CLI_VERB_ROWS_H

#include "client/cli/verb.h"

/* One array of each file; NULL behind the last. */
extern const struct verb *const verb_rows[];

#endif
