/*
 * archive: a ZIP archive of parts that are in memory, by libzip. Written beside its place under
 * another name and renamed when it is whole. Readable by its owner alone.
 */
#ifndef CLIENT_CLI_DEBUG_ARCHIVE_H
#define CLIENT_CLI_DEBUG_ARCHIVE_H

#include "runtime/base/buf.h"

#define ARCHIVE_NAME_MAX 200u

struct archive;

/* `time_s`: of all parts, since 1970. ERR_IO: errno says why. */
NODISCARD err archive_new(const char *path, int64_t time_s, struct archive **ret_archive);
/* Removes what is not finished; leaves errno alone. NULL is allowed. */
void archive_free(struct archive *archive);

/* Copies the content, which stays in memory until archive_finish. `name` has slashes for folders.
 * ERR_TOO_LARGE: the name is too long, nothing was added. ERR_IO: the archive cannot be finished.
 */
NODISCARD err archive_add(struct archive *archive, const char *name, struct slice content);
/* Deflates, writes, syncs, and gives the archive its name. ERR_IO: errno says why. */
NODISCARD err archive_finish(struct archive *archive);

#endif
