/*
 * log_audit: keeps what TRUNCATE removes. Orphan entries go to `orphans-<n>.log` beside the
 * segments, synced before the TRUNCATE record is written; they are never proposed again (DESIGN
 * section 4), only a person reads them. A crash between the two may write an orphan twice.
 *
 * The file is a run of records (orphan_record.h); `holdfast orphans` reads it.
 * A file is at most 16 MiB; the newest 64 are kept.
 */
#ifndef NODE_STORE_LOG_AUDIT_H
#define NODE_STORE_LOG_AUDIT_H

#include <stdint.h>

#include "node/store/orphan_record.h"
#include "runtime/base/log.h"

#define AUDIT_FILES_MAX 64u
#define AUDIT_BYTES_MAX (16u * 1024u * 1024u)

/* Zeroed plus dir_fd and log is valid. */
struct log_audit {
    int dir_fd; /* Borrowed. */
    const struct log *log;
    int fd; /* Of the newest file; -1 none is open. */
    uint32_t number;
    uint64_t bytes;
};

void log_audit_init(struct log_audit *audit, int dir_fd, const struct log *log);
void log_audit_deinit(struct log_audit *audit);

/* Adds to the file. ERR_FULL: the disk is; nothing was added. Any other failure aborts the process.
 */
NODISCARD err log_audit_add(struct log_audit *audit, const struct log_orphan *orphan);
void log_audit_sync(struct log_audit *audit);

#endif
