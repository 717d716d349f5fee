/*
 * file_stamp: whether a file is another than it was: replaced, or written. For programs that look
 * now and then, and read a file again only then.
 */
#ifndef RUNTIME_BASE_FILE_STAMP_H
#define RUNTIME_BASE_FILE_STAMP_H

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

/* What tells one version of a file from another. */
struct file_stamp {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed;
};

/* Zeros where there is no such file, or `path` is NULL. */
struct file_stamp file_stamp_of(const char *path);
bool file_stamp_equal(const struct file_stamp *a, const struct file_stamp *b);

#endif
