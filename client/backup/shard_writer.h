/*
 * shard_writer: the rows of one kind of one shard, in the order of their keys, into chunks. Where a
 * chunk ends follows from the keys in it (a hash of the key), so that rows which come, change or go
 * move only the ends near them, and all other chunks are those of the backup before: only what that
 * one lacks is written. Memory: one page of rows and the list of chunks.
 */
#ifndef CLIENT_BACKUP_SHARD_WRITER_H
#define CLIENT_BACKUP_SHARD_WRITER_H

#include "client/backup/repository.h"

struct shard_writer;

/* `before`: of the same shard, in the backup before; NULL: none. It outlives the writer. */
struct shard_writer_options {
    const struct repository *repository;
    struct repository_place place;
    const struct chunk_list *before;
};
NODISCARD err shard_writer_new(const struct shard_writer_options *options,
                               struct shard_writer **ret_writer, struct backup_error *ret_why);
/* Rows as ReadBackup gives them: of each the key and the value, with a u32 length before each.
 * ERR_CORRUPT: malformed, or not in the order of their keys. */
NODISCARD err shard_writer_put(struct shard_writer *writer, struct slice rows,
                               struct backup_error *ret_why);
/* Durable. */
NODISCARD err shard_writer_finish(struct shard_writer *writer, struct slice meta,
                                  struct manifest_rows *ret_rows, struct backup_error *ret_why);
/* Chunks of all, and those of them that were written. */
void shard_writer_counts(const struct shard_writer *writer, uint64_t *ret_chunks,
                         uint64_t *ret_written);
/* The list that finish wrote; valid until free. */
const struct chunk_list *shard_writer_list(const struct shard_writer *writer);
void shard_writer_free(struct shard_writer *writer); /* NULL: nothing. */

/* The next row of encoded rows. False: there are no more, or (reader->bad) they are malformed. */
bool backup_row_next(struct reader *reader, struct slice *ret_key, struct slice *ret_value);

#endif
