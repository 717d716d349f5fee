/*
 * backup_link: the calls of a backup or a restore, over one connection. All of them may be
 * repeated, so what is not known is asked again, and what is throttled a moment later.
 */
#ifndef CLIENT_CLI_BACKUP_BACKUP_LINK_H
#define CLIENT_CLI_BACKUP_BACKUP_LINK_H

#include <jansson.h>

#include "client/backup/manifest.h"
#include "client/cli/console/arguments.h"
#include "runtime/base/buf.h"

struct backup_link {
    struct client *client;
    char why[512];       /* Of the last call that failed. */
    bool may_begin_anew; /* ... a view was lost, or a cut was taken too early. */
    uint64_t rate_bytes_per_s, sent_bytes, begun_ms;
};

/* False: written to standard error. */
bool backup_link_open(struct backup_link *link, const struct arguments *arguments);
void backup_link_close(struct backup_link *link);
/* "BackupService/ReadBackup". Takes `request`. NULL: `why`. The answer is the caller's to decref.
 */
json_t *backup_link_call(struct backup_link *link, const char *method, json_t *request);
/* The same, with the reason in *ret_why. */
json_t *backup_link_ask(struct backup_link *link, struct backup_error *ret_why, const char *method,
                        json_t *request);
/* Sleeps as long as the rate wants after so many bytes. */
void backup_link_pace(struct backup_link *link, size_t bytes);

/* Appended. False: not base64. */
bool backup_bytes(const json_t *object, const char *name, struct buf *out);
json_t *backup_text(struct slice bytes);

#endif
