/* restore_definitions: the definitions of a backup, made again with their numbers before anything
 * that stands under them is put. A backup of an earlier version has none. */
#ifndef CLIENT_CLI_BACKUP_RESTORE_DEFINITIONS_H
#define CLIENT_CLI_BACKUP_RESTORE_DEFINITIONS_H

#include "client/cli/backup/backup_link.h"

/* Each stands in the cluster, or can be made; nothing is changed. False: why. */
bool restore_definitions_check(struct backup_link *link, const struct manifest *manifest,
                               struct backup_error *ret_why);
/* Each stands, and all shards have logged it. False: why. */
bool restore_definitions_put(struct backup_link *link, const struct manifest *manifest,
                             struct backup_error *ret_why);

#endif
