/*
 * file_io: the files of a backup, written durably and read whole or piece by piece. Every error
 * names the file.
 */
#ifndef CLIENT_BACKUP_FILE_IO_H
#define CLIENT_BACKUP_FILE_IO_H

#include "client/backup/manifest.h"

#define BACKUP_PATH_MAX 4096u

struct file_writer;

/* A new file; it must not be there. ERR_IO: `ret_why`. */
NODISCARD err file_writer_new(const char *path, struct file_writer **ret_writer,
                              struct backup_error *ret_why);
NODISCARD err file_writer_put(struct file_writer *writer, struct slice bytes,
                              struct backup_error *ret_why);
uint64_t file_writer_size(const struct file_writer *writer);
/* Durable; *ret_file is what it has become. Frees the writer in any case. */
NODISCARD err file_writer_finish(struct file_writer *writer, struct manifest_file *ret_file,
                                 struct backup_error *ret_why);
void file_writer_free(struct file_writer *writer); /* NULL: nothing. */

/* The whole file, at most bytes_max. ERR_NOT_FOUND, ERR_TOO_LARGE, ERR_IO. */
NODISCARD err file_read(const char *path, size_t bytes_max, struct buf *ret_bytes,
                        struct backup_error *ret_why);
/* Size and hash of the file as it is, compared with what it was. ERR_CORRUPT: they differ. */
NODISCARD err file_check(const char *path, const struct manifest_file *wanted,
                         struct backup_error *ret_why);
/* A file whose name takes effect at once and durably, or not at all. */
NODISCARD err file_write_atomically(const char *directory, const char *name, struct slice bytes,
                                    struct backup_error *ret_why);
/* Makes the names in a directory durable. */
NODISCARD err directory_sync(const char *path, struct backup_error *ret_why);

#endif
