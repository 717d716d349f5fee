#include "client/backup/repository.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/check.h"

#define MARKER_TEXT   "holdfast-backups 1\n"
#define MARKER_BEGIN  "holdfast-backups "
#define MARKER_MAX    64u
#define MANIFEST_NAME "MANIFEST"
#define NUMBER_DIGITS 6u
#define FILE_NAME_MAX 64u

static err io_failed(const char *path, const char *what, struct backup_error *ret_why)
{
    backup_why(ret_why, "%s cannot be %s: %s", path, what, strerror(errno));
    return ERR_IO;
}

void repository_path(const struct repository *repository, uint64_t number,
                     char ret_path[BACKUP_PATH_MAX])
{
    snprintf(ret_path, BACKUP_PATH_MAX, "%s/%06" PRIu64, repository->path, number);
}

void repository_file_path(const struct repository *repository, const struct repository_place *place,
                          enum repository_file file, char ret_path[BACKUP_PATH_MAX])
{
    snprintf(ret_path, BACKUP_PATH_MAX, "%s/%06" PRIu64 "/shard-%04" PRIu32 "%s.%s",
             repository->path, place->number, place->part.shard,
             place->part.kind == BACKUP_DOCUMENTS ? ".documents" : "",
             file == REPOSITORY_PACK ? "pack" : "list");
}

static void marker_path(const struct repository *repository, char ret_path[BACKUP_PATH_MAX])
{
    snprintf(ret_path, BACKUP_PATH_MAX, "%s/%s", repository->path, REPOSITORY_MARKER);
}

/* ---- what is there ---- */

/* 0: not the name of a backup. */
static uint64_t number_of(const char *name)
{
    uint64_t number = 0;
    size_t size = strlen(name);

    if (size < NUMBER_DIGITS || size > 18)
        return 0;
    for (size_t i = 0; i < size; i++) {
        if (name[i] < '0' || name[i] > '9')
            return 0;
        number = number * 10 + (uint64_t)(name[i] - '0');
    }
    return number;
}

static int by_number(const void *a, const void *b)
{
    const struct repository_backup *left = a, *right = b;

    return (left->number > right->number) - (left->number < right->number);
}

static bool has_manifest(const struct repository *repository, uint64_t number)
{
    char directory[BACKUP_PATH_MAX], path[BACKUP_PATH_MAX + sizeof MANIFEST_NAME];

    repository_path(repository, number, directory);
    snprintf(path, sizeof path, "%s/%s", directory, MANIFEST_NAME);
    return access(path, F_OK) == 0;
}

static err list_backups(struct repository *repository, struct backup_error *ret_why)
{
    DIR *directory = opendir(repository->path);
    const struct dirent *entry;

    if (directory == NULL)
        return io_failed(repository->path, "read", ret_why);
    while ((entry = readdir(directory)) != NULL && repository->count < REPOSITORY_BACKUPS_MAX) {
        uint64_t number = number_of(entry->d_name);
        if (number == 0)
            continue;
        repository->backups = mem_realloc(repository->backups,
                                          sizeof *repository->backups * (repository->count + 1u));
        repository->backups[repository->count++] =
            (struct repository_backup){ number, has_manifest(repository, number), false };
    }
    closedir(directory);
    if (repository->count > 0)
        qsort(repository->backups, repository->count, sizeof *repository->backups, by_number);
    return ERR_OK;
}

static err check_marker(const struct repository *repository, struct backup_error *ret_why)
{
    char path[BACKUP_PATH_MAX];
    struct backup_error ignored;
    struct buf text = { 0 };

    marker_path(repository, path);
    err e = file_read(path, MARKER_MAX, &text, &ignored);
    if (e == ERR_NOT_FOUND) {
        backup_why(ret_why, "%s is no directory of backups: it has no file %s", repository->path,
                   REPOSITORY_MARKER);
        return e;
    }
    if (e == ERR_OK && slice_equal(buf_slice(&text), SLICE_LITERAL(MARKER_TEXT))) {
        buf_deinit(&text);
        return ERR_OK;
    }
    bool newer = e == ERR_OK && text.size >= sizeof MARKER_TEXT - 1 &&
                 memcmp(text.data, MARKER_BEGIN, sizeof MARKER_BEGIN - 1) == 0 &&
                 text.data[sizeof MARKER_BEGIN - 1] > '1' &&
                 text.data[sizeof MARKER_BEGIN - 1] <= '9';
    backup_why(ret_why, newer ? "%s is of a newer version" : "%s is damaged", path);
    buf_deinit(&text);
    return newer ? ERR_INVALID : ERR_CORRUPT;
}

static err set_path(struct repository *repository, const char *path, struct backup_error *ret_why)
{
    *repository = (struct repository){ .lock = -1 };
    if (path[0] == 0 || strlen(path) >= sizeof repository->path) {
        backup_why(ret_why, "the directory's name must have 1 to %zu bytes",
                   sizeof repository->path - 1);
        return ERR_INVALID;
    }
    snprintf(repository->path, sizeof repository->path, "%s", path);
    return ERR_OK;
}

err repository_open(const char *path, struct repository *ret_repository,
                    struct backup_error *ret_why)
{
    struct repository repository;
    err e = set_path(&repository, path, ret_why);

    if (e == ERR_OK)
        e = check_marker(&repository, ret_why);
    if (e == ERR_OK)
        e = list_backups(&repository, ret_why);
    if (e == ERR_OK)
        *ret_repository = repository;
    return e;
}

/* ---- writing ---- */

static err must_be_empty(const char *path, struct backup_error *ret_why)
{
    DIR *directory = opendir(path);
    const struct dirent *entry;
    err e = ERR_OK;

    if (directory == NULL)
        return io_failed(path, "read", ret_why);
    while ((entry = readdir(directory)) != NULL && e == ERR_OK) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            strcmp(entry->d_name, REPOSITORY_MARKER ".new") == 0) /* Broken off. */
            continue;
        backup_why(ret_why, "%s is not empty, and is no directory of backups: it holds %.200s",
                   path, entry->d_name);
        e = ERR_EXISTS;
    }
    closedir(directory);
    return e;
}

static err make(const struct repository *repository, struct backup_error *ret_why)
{
    if (mkdir(repository->path, 0750) != 0 && errno != EEXIST)
        return io_failed(repository->path, "made", ret_why);
    err e = must_be_empty(repository->path, ret_why);
    if (e == ERR_OK)
        e = file_write_atomically(repository->path, REPOSITORY_MARKER, SLICE_LITERAL(MARKER_TEXT),
                                  ret_why);
    return e;
}

static err lock(struct repository *repository, struct backup_error *ret_why)
{
    char path[BACKUP_PATH_MAX];

    marker_path(repository, path);
    repository->lock = open(path, O_RDONLY | O_CLOEXEC);
    if (repository->lock < 0)
        return io_failed(path, "opened", ret_why);
    if (flock(repository->lock, LOCK_EX | LOCK_NB) == 0)
        return ERR_OK;
    backup_why(ret_why, "another backup is being written into %s", repository->path);
    return ERR_EXISTS;
}

bool repository_is_written(const struct repository *repository)
{
    char path[BACKUP_PATH_MAX];

    marker_path(repository, path);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    bool written = file >= 0 && flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (file >= 0)
        close(file);
    return written;
}

static bool is_own_file(const char *name)
{
    const char *end = name + strlen(name);

    if (strcmp(name, MANIFEST_NAME ".new") == 0)
        return true;
    return strncmp(name, "shard-", 6) == 0 && end - name > 11 &&
           (strcmp(end - 5, ".pack") == 0 || strcmp(end - 5, ".list") == 0);
}

err repository_remove(const struct repository *repository, uint64_t number,
                      struct backup_error *ret_why)
{
    char path[BACKUP_PATH_MAX], file[BACKUP_PATH_MAX + 300];
    const struct dirent *entry;

    repository_path(repository, number, path);
    if (has_manifest(repository, number)) {
        backup_why(ret_why, "%s is a whole backup", path);
        return ERR_CONFLICT;
    }
    DIR *directory = opendir(path);
    if (directory == NULL)
        return io_failed(path, "read", ret_why);
    while ((entry = readdir(directory)) != NULL) {
        if (!is_own_file(entry->d_name))
            continue;
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        (void)unlink(file);
    }
    closedir(directory);
    return rmdir(path) == 0 ? ERR_OK : io_failed(path, "removed", ret_why);
}

static err remove_interrupted(struct repository *repository, struct backup_error *ret_why)
{
    uint32_t kept = 0;
    err e = ERR_OK;

    for (uint32_t i = 0; i < repository->count && e == ERR_OK; i++) {
        if (repository->backups[i].complete)
            repository->backups[kept++] = repository->backups[i];
        else
            e = repository_remove(repository, repository->backups[i].number, ret_why);
    }
    repository->count = e == ERR_OK ? kept : repository->count;
    return e;
}

err repository_open_to_write(const char *path, struct repository *ret_repository,
                             struct backup_error *ret_why)
{
    struct repository repository;
    err e = set_path(&repository, path, ret_why);

    if (e != ERR_OK)
        return e;
    e = check_marker(&repository, ret_why);
    if (e == ERR_NOT_FOUND)
        e = make(&repository, ret_why);
    if (e == ERR_OK)
        e = lock(&repository, ret_why);
    if (e == ERR_OK)
        e = list_backups(&repository, ret_why);
    if (e == ERR_OK)
        e = remove_interrupted(&repository, ret_why);
    if (e == ERR_OK)
        *ret_repository = repository;
    else
        repository_close(&repository);
    return e;
}

void repository_close(struct repository *repository)
{
    if (repository->lock >= 0)
        close(repository->lock);
    free(repository->backups);
    *repository = (struct repository){ .lock = -1 };
}

uint64_t repository_newest(const struct repository *repository)
{
    uint64_t newest = 0;

    for (uint32_t i = 0; i < repository->count; i++)
        newest = repository->backups[i].complete ? repository->backups[i].number : newest;
    return newest;
}

uint64_t repository_interrupted(const struct repository *repository)
{
    if (repository->count == 0 || repository->backups[repository->count - 1].complete)
        return 0;
    return repository->backups[repository->count - 1].number;
}

/* ---- single backups ---- */

err repository_manifest(const struct repository *repository, uint64_t number,
                        struct manifest *ret_manifest, struct backup_error *ret_why)
{
    char directory[BACKUP_PATH_MAX], path[BACKUP_PATH_MAX + sizeof MANIFEST_NAME];
    struct backup_error why;
    struct buf text = { 0 };

    repository_path(repository, number, directory);
    snprintf(path, sizeof path, "%s/%s", directory, MANIFEST_NAME);
    err e = file_read(path, MANIFEST_BYTES_MAX, &text, &why);
    if (e == ERR_NOT_FOUND && access(directory, F_OK) == 0) {
        backup_why(ret_why, "backup %" PRIu64 " was interrupted: %.400s is not there", number,
                   path);
        return e;
    }
    if (e == ERR_NOT_FOUND) {
        backup_why(ret_why, "there is no backup %" PRIu64 " in %.400s", number, repository->path);
        return e;
    }
    if (e != ERR_OK) {
        *ret_why = why;
        return e;
    }
    e = manifest_decode(buf_slice(&text), ret_manifest, &why);
    if (e != ERR_OK)
        backup_why(ret_why, "%.300s: %.200s", path, why.text);
    buf_deinit(&text);
    if (e == ERR_OK && ret_manifest->number != number) {
        backup_why(ret_why, "%.300s is of another backup", path);
        manifest_deinit(ret_manifest);
        e = ERR_CORRUPT;
    }
    return e;
}

err repository_list(const struct repository *repository, const struct manifest *manifest,
                    const struct backup_part *part, struct chunk_list *ret_list,
                    struct backup_error *ret_why)
{
    const struct manifest_file *wanted = &manifest_rows_of(manifest, part)->list;
    const struct repository_place place = { manifest->number, *part };
    char path[BACKUP_PATH_MAX];
    struct buf bytes = { 0 };

    repository_file_path(repository, &place, REPOSITORY_LIST, path);
    err e = file_read(path, CHUNK_LIST_BYTES_MAX, &bytes, ret_why);
    if (e == ERR_OK &&
        (bytes.size != wanted->bytes || !hash128_equal(hash_u128(buf_slice(&bytes)), wanted->hash)))
        e = ERR_CORRUPT;
    if (e == ERR_OK)
        e = chunk_list_decode(buf_slice(&bytes), manifest->number, ret_list);
    if (e == ERR_CORRUPT)
        backup_why(ret_why, "%.400s is damaged: its checksum is not the manifest's", path);
    buf_deinit(&bytes);
    return e;
}

err repository_begin(const struct repository *repository, uint64_t number,
                     struct backup_error *ret_why)
{
    char path[BACKUP_PATH_MAX];

    repository_path(repository, number, path);
    if (mkdir(path, 0750) != 0)
        return io_failed(path, "made", ret_why);
    return directory_sync(repository->path, ret_why);
}

err repository_commit(const struct repository *repository, struct manifest *manifest,
                      struct backup_error *ret_why)
{
    char path[BACKUP_PATH_MAX];
    struct buf text = { 0 };

    repository_path(repository, manifest->number, path);
    manifest_encode(manifest, &text);
    err e = directory_sync(path, ret_why);
    if (e == ERR_OK)
        e = file_write_atomically(path, MANIFEST_NAME, buf_slice(&text), ret_why);
    buf_deinit(&text);
    return e;
}
