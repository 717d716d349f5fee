/*
 * repository: a directory of backups: MARKER, and a directory for each backup, numbered from 1:
 * `000001/MANIFEST`, and of each shard `shard-0000.pack` and `shard-0000.list`, and of its
 * documents, if it has any, `shard-0000.documents.pack` and `shard-0000.documents.list`. One
 * without a manifest was interrupted: it counts for nothing, and the next backup removes it.
 */
#ifndef CLIENT_BACKUP_REPOSITORY_H
#define CLIENT_BACKUP_REPOSITORY_H

#include "client/backup/chunk_list.h"
#include "client/backup/file_io.h"

#define REPOSITORY_MARKER      "HOLDFAST-BACKUPS"
#define REPOSITORY_BACKUPS_MAX 65536u

struct repository_backup {
    uint64_t number;
    bool complete; /* It has a manifest. */
    bool checked;  /* repository_verify compared its files with it. */
};

struct repository {
    char path[2048];
    int lock;                          /* Of the marker, while it is open for writing; else -1. */
    struct repository_backup *backups; /* By rising number. */
    uint32_t count;
};

/* ERR_NOT_FOUND: no directory of backups, ERR_CORRUPT: its marker is damaged, ERR_INVALID: the
 * marker is of a newer version; ERR_IO. */
NODISCARD err repository_open(const char *path, struct repository *ret_repository,
                              struct backup_error *ret_why);
/*
 * For writing: makes the directory and the marker if need be, removes interrupted backups.
 * ERR_EXISTS: it holds something else, or somebody writes into it.
 */
NODISCARD err repository_open_to_write(const char *path, struct repository *ret_repository,
                                       struct backup_error *ret_why);
void repository_close(struct repository *repository);

/* The newest complete one; 0: none. */
uint64_t repository_newest(const struct repository *repository);
/* One that was begun after all complete ones; 0: none. */
uint64_t repository_interrupted(const struct repository *repository);

/* Whether another process writes into it now: the newest without a manifest is then its. */
bool repository_is_written(const struct repository *repository);

enum repository_file { REPOSITORY_PACK, REPOSITORY_LIST };
struct repository_place {
    uint64_t number;
    struct backup_part part;
};
void repository_path(const struct repository *repository, uint64_t number,
                     char ret_path[BACKUP_PATH_MAX]);
void repository_file_path(const struct repository *repository, const struct repository_place *place,
                          enum repository_file file, char ret_path[BACKUP_PATH_MAX]);

/* ERR_NOT_FOUND: interrupted, or there never was one. Errors name the file. */
NODISCARD err repository_manifest(const struct repository *repository, uint64_t number,
                                  struct manifest *ret_manifest, struct backup_error *ret_why);
/* Of one shard, compared with what the manifest says. Of documents there is one if there are rows.
 */
NODISCARD err repository_list(const struct repository *repository, const struct manifest *manifest,
                              const struct backup_part *part, struct chunk_list *ret_list,
                              struct backup_error *ret_why);
/* A directory for the backup that is numbered so. */
NODISCARD err repository_begin(const struct repository *repository, uint64_t number,
                               struct backup_error *ret_why);
/* Writes the manifest: from here on the backup counts. */
NODISCARD err repository_commit(const struct repository *repository, struct manifest *manifest,
                                struct backup_error *ret_why);
/* Removes a backup without a manifest; ERR_CONFLICT: it has one. */
NODISCARD err repository_remove(const struct repository *repository, uint64_t number,
                                struct backup_error *ret_why);

#endif
