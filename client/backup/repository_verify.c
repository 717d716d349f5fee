#include "client/backup/repository_verify.h"

#include <inttypes.h>

#include "client/backup/shard_reader.h"

static err verify_file(const char *path, const struct manifest_file *file,
                       struct verify_counts *counts, struct backup_error *ret_why)
{
    counts->files++;
    counts->bytes += file->bytes;
    return file_check(path, file, ret_why);
}

static err verify_pair(const struct repository *repository, const struct manifest *manifest,
                       const struct backup_part *part, struct verify_counts *counts,
                       struct backup_error *ret_why)
{
    const struct manifest_rows *rows = manifest_rows_of(manifest, part);
    const struct repository_place place = { manifest->number, *part };
    char path[BACKUP_PATH_MAX];

    repository_file_path(repository, &place, REPOSITORY_PACK, path);
    err e = verify_file(path, &rows->pack, counts, ret_why);

    if (e != ERR_OK)
        return e;
    repository_file_path(repository, &place, REPOSITORY_LIST, path);
    return verify_file(path, &rows->list, counts, ret_why);
}

static struct repository_backup *find_backup(struct repository *repository, uint64_t number)
{
    for (uint32_t i = 0; i < repository->count; i++) {
        if (repository->backups[i].number == number)
            return &repository->backups[i];
    }
    return NULL;
}

/* Once: later backups use the same files. */
static err verify_files(struct repository *repository, const struct manifest *manifest,
                        struct verify_counts *counts, struct backup_error *ret_why)
{
    struct repository_backup *backup = find_backup(repository, manifest->number);
    err e = ERR_OK;

    if (backup != NULL && backup->checked)
        return ERR_OK;
    for (uint32_t i = 0; i < manifest->shard_count && e == ERR_OK; i++) {
        e = verify_pair(repository, manifest, &(struct backup_part){ .shard = i }, counts, ret_why);
        if (e == ERR_OK && manifest->shards[i].documents.rows.count > 0)
            e = verify_pair(repository, manifest,
                            &(struct backup_part){ .shard = i, .kind = BACKUP_DOCUMENTS }, counts,
                            ret_why);
    }
    if (backup != NULL)
        backup->checked = e == ERR_OK;
    return e;
}

static err verify_use(struct repository *repository, const struct manifest_use *use,
                      struct verify_counts *counts, struct backup_error *ret_why)
{
    struct manifest used;

    err e = repository_manifest(repository, use->number, &used, ret_why);
    if (e != ERR_OK)
        return e;
    if (hash128_equal(used.checksum, use->checksum)) {
        e = verify_files(repository, &used, counts, ret_why);
    } else {
        backup_why(ret_why, "%.400s/%06" PRIu64 "/MANIFEST is not the one that was there",
                   repository->path, use->number);
        e = ERR_CORRUPT;
    }
    manifest_deinit(&used);
    return e;
}

static err verify_rows(const struct repository *repository, const struct manifest *manifest,
                       const struct backup_part *part, struct backup_error *ret_why)
{
    struct shard_reader *reader;
    struct slice rows;

    err e = shard_reader_new(repository, manifest, part, &reader, ret_why);
    if (e != ERR_OK)
        return e;
    do
        e = shard_reader_next(reader, &rows, ret_why);
    while (e == ERR_OK && rows.size > 0);
    shard_reader_free(reader);
    return e;
}

err repository_verify(struct repository *repository, uint64_t number, struct manifest *ret_manifest,
                      struct verify_counts *counts, struct backup_error *ret_why)
{
    struct manifest manifest;

    err e = repository_manifest(repository, number, &manifest, ret_why);
    if (e != ERR_OK)
        return e;
    e = verify_files(repository, &manifest, counts, ret_why);
    for (uint32_t i = 0; i < manifest.use_count && e == ERR_OK; i++)
        e = verify_use(repository, &manifest.uses[i], counts, ret_why);
    for (uint32_t i = 0; i < manifest.shard_count && e == ERR_OK; i++) {
        uint64_t documents = manifest.shards[i].documents.rows.count;

        e = verify_rows(repository, &manifest, &(struct backup_part){ i, BACKUP_STATE }, ret_why);
        if (e == ERR_OK && documents > 0)
            e = verify_rows(repository, &manifest, &(struct backup_part){ i, BACKUP_DOCUMENTS },
                            ret_why);
        counts->rows += manifest.shards[i].state.rows.count;
        counts->documents += documents;
    }
    if (e == ERR_OK)
        *ret_manifest = manifest;
    else
        manifest_deinit(&manifest);
    return e;
}
