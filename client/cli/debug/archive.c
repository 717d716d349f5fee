#include "client/cli/debug/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zip.h>

#include "runtime/base/check.h"

#define MODE_OWNER_ALONE ((zip_uint32_t)0100600 << 16)

struct archive {
    char *path;
    char *temporary;
    zip_t *zip; /* NULL: closed, or never opened. */
    int64_t time_s;
    bool finished;
};

/* libzip's errors have an errno only where the system had one. */
static err fail(const zip_error_t *error)
{
    errno = zip_error_system_type(error) == ZIP_ET_SYS ? zip_error_code_system(error) : EIO;
    return ERR_IO;
}

/* The file is there before libzip opens it: libzip keeps the mode of what it replaces. */
static err open_temporary(struct archive *archive)
{
    zip_error_t error;
    int why = 0;
    int file = mkostemp(archive->temporary, O_CLOEXEC); /* Mode 0600. */

    if (file < 0) {
        archive->finished = true; /* Nothing to remove. */
        return ERR_IO;
    }
    close(file);
    archive->zip = zip_open(archive->temporary, ZIP_CREATE | ZIP_TRUNCATE, &why);
    if (archive->zip != NULL)
        return ERR_OK;
    zip_error_init_with_code(&error, why);
    err e = fail(&error);
    zip_error_fini(&error);
    return e;
}

err archive_new(const char *path, int64_t time_s, struct archive **ret_archive)
{
    struct archive *archive = mem_zalloc(sizeof *archive);
    size_t size = strlen(path) + sizeof ".XXXXXX";

    archive->path = strdup(path);
    archive->temporary = mem_zalloc(size);
    archive->time_s = time_s;
    CHECK(archive->path != NULL);
    snprintf(archive->temporary, size, "%s.XXXXXX", path);
    err e = open_temporary(archive);
    if (e == ERR_OK)
        *ret_archive = archive;
    else
        archive_free(archive);
    return e;
}

void archive_free(struct archive *archive)
{
    if (archive == NULL)
        return;
    int why = errno;

    if (archive->zip != NULL)
        zip_discard(archive->zip);
    if (!archive->finished)
        unlink(archive->temporary);
    errno = why;
    free(archive->temporary);
    free(archive->path);
    free(archive);
}

err archive_add(struct archive *archive, const char *name, struct slice content)
{
    CHECK(archive->zip != NULL);
    if (strlen(name) > ARCHIVE_NAME_MAX)
        return ERR_TOO_LARGE;
    uint8_t *copy = malloc(content.size + 1); /* libzip frees it. */

    CHECK(copy != NULL);
    if (content.size > 0)
        memcpy(copy, content.data, content.size);
    zip_source_t *source = zip_source_buffer(archive->zip, copy, content.size, 1);
    if (source == NULL) {
        free(copy);
        return fail(zip_get_error(archive->zip));
    }
    zip_int64_t at = zip_file_add(archive->zip, name, source, ZIP_FL_ENC_UTF_8);
    if (at < 0) {
        zip_source_free(source);
        return fail(zip_get_error(archive->zip));
    }
    if (zip_file_set_mtime(archive->zip, (zip_uint64_t)at, archive->time_s, 0) != 0 ||
        zip_file_set_external_attributes(archive->zip, (zip_uint64_t)at, 0, ZIP_OPSYS_UNIX,
                                         MODE_OWNER_ALONE) != 0)
        return fail(zip_get_error(archive->zip));
    return ERR_OK;
}

static err sync_file(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    bool synced = file >= 0 && fsync(file) == 0;
    int why = errno;

    if (file >= 0)
        close(file);
    errno = why;
    return synced ? ERR_OK : ERR_IO;
}

err archive_finish(struct archive *archive)
{
    CHECK(archive->zip != NULL);
    if (zip_close(archive->zip) != 0)
        return fail(zip_get_error(archive->zip));
    archive->zip = NULL;
    if (sync_file(archive->temporary) != ERR_OK || rename(archive->temporary, archive->path) != 0)
        return ERR_IO;
    archive->finished = true;
    return ERR_OK;
}
