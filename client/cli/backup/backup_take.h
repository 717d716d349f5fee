/* backup_take: `holdfast backup DIR`, docs/backup.md. */
#ifndef CLIENT_CLI_BACKUP_BACKUP_TAKE_H
#define CLIENT_CLI_BACKUP_BACKUP_TAKE_H

#include "client/cli/console/arguments.h"

/* The exit code. */
int backup_take(const struct arguments *arguments, const char *path);

#endif
