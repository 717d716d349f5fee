#include "runtime/base/file_stamp.h"

#include <stddef.h>
#include <sys/stat.h>

struct file_stamp file_stamp_of(const char *path)
{
    struct file_stamp stamp = { 0 };
    struct stat now;

    if (path == NULL || stat(path, &now) != 0)
        return stamp;
    stamp.device = now.st_dev;
    stamp.inode = now.st_ino;
    stamp.size = now.st_size;
    stamp.changed = now.st_mtim;
    return stamp;
}

bool file_stamp_equal(const struct file_stamp *a, const struct file_stamp *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}
