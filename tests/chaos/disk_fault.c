/*
 * disk_fault: a shared object for LD_PRELOAD that makes a process's disk fail as a file says: the
 * first byte of $HOLDFAST_DISK_FAULT is '0' (nothing), 'e' (fsync and fdatasync fail with EIO),
 * 's' (they take 300 ms), 'l' (statvfs says that nothing is free), or 'f' (that, and no file
 * grows). Never linked into a product.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define SLOW_NS 300000000L

static char mode(void)
{
    const char *path = getenv("HOLDFAST_DISK_FAULT");
    char found = '0';

    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        if (read(fd, &found, 1) != 1)
            found = '0';
        close(fd);
    }
    return found;
}

static int disturbed(const char *name, int fd)
{
    int (*real)(int) = (int (*)(int))(uintptr_t)dlsym(RTLD_NEXT, name);
    const struct timespec slow = { .tv_nsec = SLOW_NS };

    switch (mode()) {
    case 'e':
        errno = EIO;
        return -1;
    case 's':
        (void)nanosleep(&slow, NULL);
        break;
    default:
        break;
    }
    return real(fd);
}

int fsync(int fd)
{
    return disturbed("fsync", fd);
}

int fdatasync(int fd)
{
    return disturbed("fdatasync", fd);
}

/* ---- a full disk -------------------------------------------------------------------------- */

/* Whether writing up to `end` makes a file grow that then has no room. Not what a process says. */
static bool no_room(int fd, off_t end)
{
    struct stat stat, said = { .st_ino = 0 };

    if (fd <= STDERR_FILENO || mode() != 'f' || fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode))
        return false;
    if (fstat(STDERR_FILENO, &said) == 0 && said.st_dev == stat.st_dev &&
        said.st_ino == stat.st_ino)
        return false;
    return end > stat.st_size;
}

static off_t here(int fd)
{
    off_t at = lseek(fd, 0, SEEK_CUR);

    return at > 0 ? at : 0;
}

typedef ssize_t write_fn(int, const void *, size_t);
typedef ssize_t pwrite_fn(int, const void *, size_t, off_t);
typedef int allocate_fn(int, int, off_t, off_t);
typedef int statvfs_fn(const char *, struct statvfs *);

ssize_t write(int fd, const void *bytes, size_t size)
{
    static write_fn *real;

    if (real == NULL)
        real = (write_fn *)(uintptr_t)dlsym(RTLD_NEXT, "write");
    if (fd > STDERR_FILENO && no_room(fd, here(fd) + (off_t)size)) {
        errno = ENOSPC;
        return -1;
    }
    return real(fd, bytes, size);
}

static ssize_t positioned(const char *name, int fd, struct iovec bytes, off_t offset)
{
    pwrite_fn *real = (pwrite_fn *)(uintptr_t)dlsym(RTLD_NEXT, name);

    if (no_room(fd, offset + (off_t)bytes.iov_len)) {
        errno = ENOSPC;
        return -1;
    }
    return real(fd, bytes.iov_base, bytes.iov_len, offset);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    return positioned("pwrite", fd, (struct iovec){ (void *)(uintptr_t)bytes, size }, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off_t offset)
{
    return positioned("pwrite64", fd, (struct iovec){ (void *)(uintptr_t)bytes, size }, offset);
}

int fallocate(int fd, int flags, off_t offset, off_t size)
{
    allocate_fn *real = (allocate_fn *)(uintptr_t)dlsym(RTLD_NEXT, "fallocate");

    if (no_room(fd, offset + size)) {
        errno = ENOSPC;
        return -1;
    }
    return real(fd, flags, offset, size);
}

int statvfs(const char *path, struct statvfs *stat)
{
    statvfs_fn *real = (statvfs_fn *)(uintptr_t)dlsym(RTLD_NEXT, "statvfs");
    int result = real(path, stat);

    if (result == 0 && (mode() == 'l' || mode() == 'f'))
        stat->f_bavail = 0;
    return result;
}
