/*
 * disk_fault: a shared object for LD_PRELOAD that makes a process's disk fail as a file says: the
 * first byte of $HOLDFAST_DISK_FAULT is '0' (nothing), 'e' (fsync and fdatasync fail with EIO), or
 * 's' (they take 300 ms). Never linked into a product.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
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
