/* restore_put: `holdfast restore DIR`, docs/backup.md. */
#ifndef CLIENT_CLI_BACKUP_RESTORE_PUT_H
#define CLIENT_CLI_BACKUP_RESTORE_PUT_H

#include "client/backup/repository.h"
#include "client/cli/console/arguments.h"

/* `manifest` was verified. The exit code. */
int restore_put(const struct arguments *arguments, const struct repository *repository,
                const struct manifest *manifest);

#endif
