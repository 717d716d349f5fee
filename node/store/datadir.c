#include "node/store/datadir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/check.h"
#include "runtime/base/hash.h"
#include "runtime/base/id.h"

#define IDENTITY_BYTES_MAX 1024u
#define SHARDS_MAX         4096u

struct datadir {
    char path[DATADIR_PATH_BYTES];
    char log_path[DATADIR_PATH_BYTES + 8];
    char db_path[DATADIR_PATH_BYTES + 8];
    char salvage_path[DATADIR_PATH_BYTES + 16];
    enum datadir_damage damage;
    int dir_fd;
    int lock_fd;
    pthread_mutex_t lock; /* datadir_note_etcd. */
    struct datadir_identity identity;
};

__attribute__((format(printf, 3, 4))) static err fail(err e, char ret_text[DATADIR_ERROR_BYTES],
                                                      const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(ret_text, DATADIR_ERROR_BYTES, format, args);
    va_end(args);
    return e;
}

static err fail_io(const struct datadir *dir, char ret_text[DATADIR_ERROR_BYTES], const char *what)
{
    int failure = errno;

    return fail(ERR_IO, ret_text, "%s: %s: %s", dir->path, what, strerror(failure));
}

/* ---- the lock ----------------------------------------------------------------------------- */

static err name_holder(const char *path, int lock_fd, char ret_text[DATADIR_ERROR_BYTES])
{
    char pid[32] = { 0 };
    ssize_t n = pread(lock_fd, pid, sizeof pid - 1, 0);

    if (n > 0)
        pid[strcspn(pid, "\n")] = '\0';
    return fail(ERR_CONFLICT, ret_text, "%s: in use by process %s", path,
                n > 0 ? pid : "(unknown)");
}

static err take_lock(struct datadir *dir, char ret_text[DATADIR_ERROR_BYTES])
{
    dir->lock_fd = openat(dir->dir_fd, "LOCK", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (dir->lock_fd < 0)
        return fail_io(dir, ret_text, "LOCK cannot be opened");
    if (flock(dir->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK)
            return name_holder(dir->path, dir->lock_fd, ret_text);
        return fail_io(dir, ret_text, "LOCK cannot be locked");
    }
    if (ftruncate(dir->lock_fd, 0) != 0 || dprintf(dir->lock_fd, "%ld\n", (long)getpid()) < 0)
        return fail_io(dir, ret_text, "LOCK cannot be written");
    return ERR_OK;
}

bool datadir_is_held(const char *path, char ret_text[DATADIR_ERROR_BYTES])
{
    int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = dir_fd < 0 ? -1 : openat(dir_fd, "LOCK", O_RDONLY | O_CLOEXEC);
    bool held = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;

    if (held)
        (void)name_holder(path, fd, ret_text);
    if (fd >= 0)
        close(fd);
    if (dir_fd >= 0)
        close(dir_fd);
    return held;
}

/* ---- the identity ------------------------------------------------------------------------- */

static size_t identity_print(const struct datadir_identity *identity, char text[IDENTITY_BYTES_MAX])
{
    int size = snprintf(
        text, IDENTITY_BYTES_MAX,
        "format %" PRIu32 "\ncluster_id %s\nreplica_id %" PRIu64 "\nshard_count %" PRIu32
        "\ngeneration %" PRIu64 "\netcd_cluster_id %" PRIu64 "\netcd_revision %" PRIu64 "\n",
        identity->format, identity->cluster_id, identity->replica_id, identity->shard_count,
        identity->generation, identity->etcd_cluster_id, identity->etcd_revision);
    uint64_t checksum = hash_u64(slice_from_text(text));

    size += snprintf(text + size, IDENTITY_BYTES_MAX - (size_t)size, "checksum %016" PRIx64 "\n",
                     checksum);
    return (size_t)size;
}

static bool identity_parse(const char *text, struct datadir_identity *ret_identity)
{
    struct datadir_identity identity = { 0 };
    char again[IDENTITY_BYTES_MAX];
    int fields =
        sscanf(text,
               "format %" SCNu32 " cluster_id %36s replica_id %" SCNu64 " shard_count %" SCNu32
               " generation %" SCNu64 " etcd_cluster_id %" SCNu64 " etcd_revision %" SCNu64,
               &identity.format, identity.cluster_id, &identity.replica_id, &identity.shard_count,
               &identity.generation, &identity.etcd_cluster_id, &identity.etcd_revision);

    if (fields != 7 || identity.replica_id == 0)
        return false;
    /* Only what this code would have written counts, checksum and all. */
    identity_print(&identity, again);
    if (strcmp(again, text) != 0)
        return false;
    *ret_identity = identity;
    return true;
}

static bool write_whole(int dir_fd, const char *name, const char *text, size_t size)
{
    int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0)
        return false;
    bool ok = write(fd, text, size) == (ssize_t)size && fsync(fd) == 0;
    int failure = errno;
    close(fd);
    errno = failure;
    return ok;
}

static bool identity_write(const struct datadir *dir, const struct datadir_identity *identity)
{
    char text[IDENTITY_BYTES_MAX];
    size_t size = identity_print(identity, text);

    return write_whole(dir->dir_fd, "IDENTITY.tmp", text, size) &&
           renameat(dir->dir_fd, "IDENTITY.tmp", dir->dir_fd, "IDENTITY") == 0 &&
           fsync(dir->dir_fd) == 0;
}

static bool is_empty(const char *path)
{
    DIR *dir = opendir(path);
    bool empty = true;

    if (dir == NULL)
        return errno == ENOENT;
    for (struct dirent *item = readdir(dir); item != NULL && empty; item = readdir(dir))
        empty = item->d_name[0] == '.';
    closedir(dir);
    return empty;
}

static err identity_mint(struct datadir *dir, const struct datadir_config *config,
                         char ret_text[DATADIR_ERROR_BYTES])
{
    if (!is_empty(dir->log_path) || !is_empty(dir->db_path))
        return fail(ERR_CORRUPT, ret_text,
                    "%s: IDENTITY is missing beside a log or database: whose they are is not known",
                    dir->path);
    dir->identity = (struct datadir_identity){
        .format = DATADIR_FORMAT,
        .replica_id = config->new_replica_id,
        .shard_count = config->shard_count,
    };
    memcpy(dir->identity.cluster_id, config->cluster_id, sizeof dir->identity.cluster_id - 1);
    if (!identity_write(dir, &dir->identity))
        return fail_io(dir, ret_text, "IDENTITY cannot be written");
    return ERR_OK;
}

static err identity_check(const struct datadir *dir, const struct datadir_config *config,
                          char ret_text[DATADIR_ERROR_BYTES])
{
    const struct datadir_identity *identity = &dir->identity;

    if (identity->format != DATADIR_FORMAT)
        return fail(ERR_INVALID, ret_text, "%s: format %u; this binary reads format %u", dir->path,
                    identity->format, DATADIR_FORMAT);
    if (strcmp(identity->cluster_id, config->cluster_id) != 0)
        return fail(ERR_PERMISSION, ret_text, "%s: belongs to cluster %s, not to %s", dir->path,
                    identity->cluster_id, config->cluster_id);
    if (identity->shard_count != config->shard_count)
        return fail(ERR_PERMISSION, ret_text, "%s: made for %u shards; the cluster has %u",
                    dir->path, identity->shard_count, config->shard_count);
    return ERR_OK;
}

static err identity_load(struct datadir *dir, const struct datadir_config *config,
                         char ret_text[DATADIR_ERROR_BYTES])
{
    char text[IDENTITY_BYTES_MAX] = { 0 };
    int fd = openat(dir->dir_fd, "IDENTITY", O_RDONLY | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT)
        return identity_mint(dir, config, ret_text);
    if (fd < 0)
        return fail_io(dir, ret_text, "IDENTITY cannot be opened");
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n < 0)
        return fail_io(dir, ret_text, "IDENTITY cannot be read");
    if (!identity_parse(text, &dir->identity))
        return fail(ERR_CORRUPT, ret_text, "%s: IDENTITY is malformed or damaged", dir->path);
    return identity_check(dir, config, ret_text);
}

bool datadir_peek(const char *path, struct datadir_identity *ret_identity)
{
    char text[IDENTITY_BYTES_MAX] = { 0 };
    int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = dir_fd < 0 ? -1 : openat(dir_fd, "IDENTITY", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

    if (fd >= 0)
        close(fd);
    if (dir_fd >= 0)
        close(dir_fd);
    return n > 0 && identity_parse(text, ret_identity);
}

/* ---- a damaged database -------------------------------------------------------------------
 * DAMAGE says "damaged" until all that can be read is durable in db.salvage/, then "salvaged" until
 * that is db/. */

static const char damaged_text[] = "damaged\n";
static const char salvaged_text[] = "salvaged\n";

static bool damage_write(const struct datadir *dir, const char *text)
{
    return write_whole(dir->dir_fd, "DAMAGE.tmp", text, strlen(text)) &&
           renameat(dir->dir_fd, "DAMAGE.tmp", dir->dir_fd, "DAMAGE") == 0 &&
           fsync(dir->dir_fd) == 0;
}

/* A database has files and nothing else. */
static bool remove_directory(int dir_fd, const char *name)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    bool ok = dir != NULL;

    if (fd < 0)
        return errno == ENOENT;
    if (dir == NULL) {
        close(fd);
        return false;
    }
    for (struct dirent *item = readdir(dir); item != NULL && ok; item = readdir(dir)) {
        if (strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0)
            ok = unlinkat(fd, item->d_name, 0) == 0;
    }
    int failure = errno;
    closedir(dir);
    errno = failure;
    return ok && unlinkat(dir_fd, name, AT_REMOVEDIR) == 0;
}

static bool exists(int dir_fd, const char *name)
{
    return faccessat(dir_fd, name, F_OK, 0) == 0;
}

/* DAMAGE says "salvaged". Removing what is there comes first, so that no part of it can pass for
 * the new one. */
static err end_switch(struct datadir *dir, char ret_text[DATADIR_ERROR_BYTES])
{
    if (exists(dir->dir_fd, "db.salvage")) {
        if (!remove_directory(dir->dir_fd, "db"))
            return fail_io(dir, ret_text, "the damaged db/ cannot be removed");
        if (renameat(dir->dir_fd, "db.salvage", dir->dir_fd, "db") != 0 || fsync(dir->dir_fd) != 0)
            return fail_io(dir, ret_text, "db.salvage/ cannot be renamed");
    }
    if (unlinkat(dir->dir_fd, "DAMAGE", 0) != 0 || fsync(dir->dir_fd) != 0)
        return fail_io(dir, ret_text, "DAMAGE cannot be removed");
    dir->damage = DATADIR_WHOLE;
    return ERR_OK;
}

static err damage_load(struct datadir *dir, char ret_text[DATADIR_ERROR_BYTES])
{
    char text[32] = { 0 };
    int fd = openat(dir->dir_fd, "DAMAGE", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT ? ERR_OK : fail_io(dir, ret_text, "DAMAGE cannot be opened");
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n < 0)
        return fail_io(dir, ret_text, "DAMAGE cannot be read");
    if (strcmp(text, salvaged_text) == 0)
        return end_switch(dir, ret_text);
    dir->damage = DATADIR_DAMAGED; /* Whatever else it says. */
    return ERR_OK;
}

enum datadir_damage datadir_damage_get(const struct datadir *dir)
{
    return dir->damage;
}

err datadir_note_damage(struct datadir *dir)
{
    if (dir->damage == DATADIR_DAMAGED)
        return ERR_OK;
    if (!damage_write(dir, damaged_text))
        return ERR_IO;
    dir->damage = DATADIR_DAMAGED;
    return ERR_OK;
}

const char *datadir_salvage_path(const struct datadir *dir)
{
    return dir->salvage_path;
}

err datadir_salvage_begin(struct datadir *dir, char ret_text[DATADIR_ERROR_BYTES])
{
    CHECK(dir->damage == DATADIR_DAMAGED);
    if (!remove_directory(dir->dir_fd, "db.salvage"))
        return fail_io(dir, ret_text, "an earlier db.salvage/ cannot be removed");
    if (mkdirat(dir->dir_fd, "db.salvage", 0700) != 0 || fsync(dir->dir_fd) != 0)
        return fail_io(dir, ret_text, "db.salvage/ cannot be made");
    return ERR_OK;
}

err datadir_salvage_switch(struct datadir *dir, char ret_text[DATADIR_ERROR_BYTES])
{
    CHECK(dir->damage == DATADIR_DAMAGED);
    if (!damage_write(dir, salvaged_text))
        return fail_io(dir, ret_text, "DAMAGE cannot be written");
    return end_switch(dir, ret_text);
}

/* ---- the directory ------------------------------------------------------------------------ */

static err config_check(const struct datadir_config *config, char ret_text[DATADIR_ERROR_BYTES])
{
    struct uuid uuid;

    if (strlen(config->path) >= DATADIR_PATH_BYTES)
        return fail(ERR_INVALID, ret_text, "data directory: path of %zu bytes; at most %u",
                    strlen(config->path), DATADIR_PATH_BYTES - 1);
    if (uuid_parse(slice_from_text(config->cluster_id), &uuid) != ERR_OK)
        return fail(ERR_INVALID, ret_text, "cluster_id: not a UUID: %.64s", config->cluster_id);
    if (config->new_replica_id == 0)
        return fail(ERR_INVALID, ret_text, "new_replica_id: 0 is not allowed");
    if (config->shard_count == 0 || config->shard_count > SHARDS_MAX)
        return fail(ERR_INVALID, ret_text, "shard_count: %u; 1 to %u", config->shard_count,
                    SHARDS_MAX);
    return ERR_OK;
}

static bool make_directory(const char *path)
{
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

static err open_directory(struct datadir *dir, char ret_text[DATADIR_ERROR_BYTES])
{
    if (!make_directory(dir->path))
        return fail_io(dir, ret_text, "cannot be made");
    dir->dir_fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir->dir_fd < 0)
        return fail_io(dir, ret_text, "cannot be opened");
    return ERR_OK;
}

static err make_parts(struct datadir *dir, char ret_text[DATADIR_ERROR_BYTES])
{
    if (!make_directory(dir->log_path))
        return fail_io(dir, ret_text, "log/ cannot be made");
    if (!make_directory(dir->db_path))
        return fail_io(dir, ret_text, "db/ cannot be made");
    if (fsync(dir->dir_fd) != 0)
        return fail_io(dir, ret_text, "cannot be synced");
    return ERR_OK;
}

err datadir_open(const struct datadir_config *config, struct datadir **ret_dir,
                 char ret_text[DATADIR_ERROR_BYTES])
{
    err e = config_check(config, ret_text);

    if (e != ERR_OK)
        return e;
    struct datadir *dir = mem_zalloc(sizeof *dir);
    dir->dir_fd = -1;
    dir->lock_fd = -1;
    CHECK(pthread_mutex_init(&dir->lock, NULL) == 0);
    snprintf(dir->path, sizeof dir->path, "%s", config->path);
    snprintf(dir->log_path, sizeof dir->log_path, "%s/log", config->path);
    snprintf(dir->db_path, sizeof dir->db_path, "%s/db", config->path);
    snprintf(dir->salvage_path, sizeof dir->salvage_path, "%s/db.salvage", config->path);

    e = open_directory(dir, ret_text);
    if (e == ERR_OK)
        e = take_lock(dir, ret_text);
    if (e == ERR_OK)
        e = identity_load(dir, config, ret_text);
    if (e == ERR_OK)
        e = damage_load(dir, ret_text);
    if (e == ERR_OK)
        e = make_parts(dir, ret_text);
    if (e != ERR_OK) {
        datadir_close(dir);
        return e;
    }
    *ret_dir = dir;
    return ERR_OK;
}

void datadir_close(struct datadir *dir)
{
    if (dir->lock_fd >= 0)
        close(dir->lock_fd);
    if (dir->dir_fd >= 0)
        close(dir->dir_fd);
    pthread_mutex_destroy(&dir->lock);
    free(dir);
}

const struct datadir_identity *datadir_identity_get(const struct datadir *dir)
{
    return &dir->identity;
}

const char *datadir_log_path(const struct datadir *dir)
{
    return dir->log_path;
}

const char *datadir_db_path(const struct datadir *dir)
{
    return dir->db_path;
}

static bool goes_back(const struct datadir_identity *from, const struct datadir_identity *to)
{
    if (to->generation != from->generation)
        return to->generation < from->generation;
    if (from->etcd_cluster_id == 0)
        return false;
    return to->etcd_cluster_id != from->etcd_cluster_id || to->etcd_revision < from->etcd_revision;
}

err datadir_note_etcd(struct datadir *dir, uint64_t generation, uint64_t etcd_cluster_id,
                      uint64_t etcd_revision)
{
    err e = ERR_OK;

    pthread_mutex_lock(&dir->lock);
    struct datadir_identity next = dir->identity;

    next.generation = generation;
    next.etcd_cluster_id = etcd_cluster_id;
    next.etcd_revision = etcd_revision;
    if (goes_back(&dir->identity, &next))
        e = ERR_CONFLICT;
    else if (!identity_write(dir, &next))
        e = ERR_IO;
    else
        dir->identity = next;
    pthread_mutex_unlock(&dir->lock);
    return e;
}
