/*
 * zip_writer: a ZIP archive (PKWARE's APPNOTE, without ZIP64 and encryption) with deflated members,
 * written beside its place under another name and renamed when it is whole. Readable by its owner
 * alone.
 */
#ifndef CLIENT_CLI_ZIP_WRITER_H
#define CLIENT_CLI_ZIP_WRITER_H

#include "runtime/base/buf.h"

#define ZIP_MEMBERS_MAX   1024u
#define ZIP_NAME_MAX      200u
#define ZIP_MEMBER_BYTES  67108864u   /* 64 MiB, before compression. */
#define ZIP_ARCHIVE_BYTES 1073741824u /* 1 GiB: offsets have 32 bits. */

struct zip_writer;

/* `time_s`: of all members, since 1970. ERR_IO: errno says why. */
NODISCARD err zip_writer_new(const char *path, int64_t time_s, struct zip_writer **ret_zip);
/* Removes what is not finished. NULL is allowed. */
void zip_writer_free(struct zip_writer *zip);

/* `name` has slashes for folders. ERR_TOO_LARGE: one of the limits above, nothing was added;
 * ERR_IO: the archive cannot be finished any more. */
NODISCARD err zip_writer_add(struct zip_writer *zip, const char *name, struct slice content);
/* Writes the directory, syncs, and gives the archive its name. ERR_IO: errno says why. */
NODISCARD err zip_writer_finish(struct zip_writer *zip);

#endif
