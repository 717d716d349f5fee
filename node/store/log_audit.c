#include "node/store/log_audit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/check.h"

#define AUDIT_NAME_BYTES 32u

static void audit_name(uint32_t number, char ret_name[AUDIT_NAME_BYTES])
{
    snprintf(ret_name, AUDIT_NAME_BYTES, "orphans-%u.log", number);
}

void log_audit_init(struct log_audit *audit, int dir_fd, const struct log *log)
{
    *audit = (struct log_audit){ .dir_fd = dir_fd, .log = log, .fd = -1 };
}

void log_audit_deinit(struct log_audit *audit)
{
    if (audit->fd >= 0)
        close(audit->fd);
    audit->fd = -1;
}

_Noreturn static void audit_failed(const struct log_audit *audit, const char *what)
{
    /* Dropping orphans unaudited is not an option, and neither is keeping them. */
    log_event(audit->log, LOG_ERROR, "log.audit_failed", LOG_S("what", what),
              LOG_N("number", audit->number), LOG_S("error", strerror(errno)));
    abort();
}

void log_audit_sync(struct log_audit *audit)
{
    if (audit->fd >= 0 && fsync(audit->fd) != 0)
        audit_failed(audit, "sync");
}

/* Greatest number in use; 0 when there is none. */
static uint32_t audit_newest(const struct log_audit *audit)
{
    int fd = openat(audit->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    uint32_t newest = 0;

    if (dir == NULL)
        audit_failed(audit, "list");
    for (struct dirent *item = readdir(dir); item != NULL; item = readdir(dir)) {
        unsigned number;

        if (sscanf(item->d_name, "orphans-%u.log", &number) == 1 && number > newest)
            newest = number;
    }
    closedir(dir);
    return newest;
}

/* A fresh file each time the process first needs one: an old one may end in half a record.
 * ERR_FULL: there is none. */
static err audit_open(struct log_audit *audit)
{
    char name[AUDIT_NAME_BYTES];

    log_audit_sync(audit);
    log_audit_deinit(audit);
    audit->number = audit_newest(audit) + 1;
    audit_name(audit->number, name);
    audit->fd = openat(audit->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (audit->fd < 0 && errno == ENOSPC)
        return ERR_FULL;
    if (audit->fd < 0)
        audit_failed(audit, "open");
    audit->bytes = 0;
    if (audit->number > AUDIT_FILES_MAX) {
        audit_name(audit->number - AUDIT_FILES_MAX, name);
        if (unlinkat(audit->dir_fd, name, 0) == 0)
            log_event(audit->log, LOG_WARN, "log.audit_dropped", LOG_S("file", name));
    }
    if (fsync(audit->dir_fd) != 0)
        audit_failed(audit, "sync of the directory");
    return ERR_OK;
}

/* ERR_FULL: none of it is there. */
static err audit_write(struct log_audit *audit, struct slice bytes)
{
    ssize_t written = write(audit->fd, bytes.data, bytes.size);

    if (written == (ssize_t)bytes.size) {
        audit->bytes += bytes.size;
        return ERR_OK;
    }
    if (written < 0 && errno != ENOSPC)
        audit_failed(audit, "write");
    if (ftruncate(audit->fd, (off_t)audit->bytes) != 0 ||
        lseek(audit->fd, (off_t)audit->bytes, SEEK_SET) < 0)
        audit_failed(audit, "cut off half a record");
    return ERR_FULL;
}

err log_audit_add(struct log_audit *audit, const struct log_orphan *orphan)
{
    struct buf bytes = { 0 };
    err e = ERR_OK;

    orphan_encode(orphan, &bytes);
    if (audit->fd < 0 || audit->bytes + bytes.size > AUDIT_BYTES_MAX)
        e = audit_open(audit);
    if (e == ERR_OK)
        e = audit_write(audit, buf_slice(&bytes));
    buf_deinit(&bytes);
    return e;
}
