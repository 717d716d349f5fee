/*
 * shard_reader: the rows of one kind of one shard as of one backup, chunk by chunk, each compared
 * with its hash, in the order of their keys; at the end the whole is compared with the manifest.
 * Memory: two chunks and the list of them.
 */
#ifndef CLIENT_BACKUP_SHARD_READER_H
#define CLIENT_BACKUP_SHARD_READER_H

#include "client/backup/repository.h"

struct shard_reader;

/* Both outlive the reader. Of documents there have to be some. Errors name the file. */
NODISCARD err shard_reader_new(const struct repository *repository, const struct manifest *manifest,
                               const struct backup_part *part, struct shard_reader **ret_reader,
                               struct backup_error *ret_why);
/* The rows of the next chunk, valid until the next call; none: all were read, and they are what the
 * manifest says. ERR_CORRUPT, ERR_IO, ERR_NOT_FOUND: `ret_why` names the file. */
NODISCARD err shard_reader_next(struct shard_reader *reader, struct slice *ret_rows,
                                struct backup_error *ret_why);
void shard_reader_free(struct shard_reader *reader); /* NULL: nothing. */

#endif
