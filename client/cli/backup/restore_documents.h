/* restore_documents: the documents of a backup, put into a cluster whose shards are being restored.
 */
#ifndef CLIENT_CLI_BACKUP_RESTORE_DOCUMENTS_H
#define CLIENT_CLI_BACKUP_RESTORE_DOCUMENTS_H

#include "client/backup/repository.h"
#include "client/cli/backup/backup_link.h"

struct restore_documents {
    struct backup_link *link;
    const struct repository *repository;
    const struct manifest *manifest;
    const bool *finished; /* By shard: it serves, and is left alone. */
    struct backup_error *ret_why;
};

/* The shard has no documents of its own, as all of its members say. False: why. */
bool restore_documents_check_new(const struct restore_documents *documents, uint32_t shard);
/* All members of every shard have begun the restore, and none had documents. False: why. */
bool restore_documents_begin(const struct restore_documents *documents);
/* Each collection of the backup is defined in the cluster under its policy. False: why. */
bool restore_documents_check(const struct restore_documents *documents);
/* Every shard has its documents, on the disks of a majority of its members. False: why. */
bool restore_documents_put(const struct restore_documents *documents);

#endif
