/* repository_verify: whether a backup can be restored, from its files alone. */
#ifndef CLIENT_BACKUP_REPOSITORY_VERIFY_H
#define CLIENT_BACKUP_REPOSITORY_VERIFY_H

#include "client/backup/repository.h"

struct verify_counts {
    uint64_t files, bytes; /* Compared with their checksums. */
    uint64_t rows, documents;
};

/* Every file of the backup and of those that it uses, each once while the
 * repository is open, then every row of it. The first that is not
 * as it was written: `ret_why` names it. *ret_manifest is set on ERR_OK; counts are added to. */
NODISCARD err repository_verify(struct repository *repository, uint64_t number,
                                struct manifest *ret_manifest, struct verify_counts *counts,
                                struct backup_error *ret_why);

#endif
