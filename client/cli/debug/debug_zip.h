/* debug_zip: `holdfast debug zip FILE`: one archive with all that a support case needs. */
#ifndef CLIENT_CLI_DEBUG_DEBUG_ZIP_H
#define CLIENT_CLI_DEBUG_DEBUG_ZIP_H

#include "client/cli/console/arguments.h"

/* The exit code: 0 if the archive was written, whatever is missing in it. */
int debug_zip(const struct arguments *arguments, const char *path);

#endif
