/*
 * manifest: what one backup holds, as lines of text that people can read, the last of them a
 * checksum of all before. Written last and atomically: a backup without one was interrupted.
 *
 * There is one way to write each manifest, and decode takes no other.
 */
#ifndef CLIENT_BACKUP_MANIFEST_H
#define CLIENT_BACKUP_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/hash.h"
#include "runtime/base/row_digest.h"

#define MANIFEST_VERSION         3u /* The first one had no documents, the second no definitions. */
#define MANIFEST_BYTES_MAX       (16u * 1024u * 1024u)
#define MANIFEST_SHARDS_MAX      4096u
#define MANIFEST_USES_MAX        65536u
#define MANIFEST_TEXT_MAX        65536u
#define MANIFEST_DEFINITIONS_MAX 4096u /* As many as a cluster has (docs/definitions.md). */

/* Why something was refused, for people: names the file where there is one. */
struct backup_error {
    char text[512];
};

struct manifest_file {
    uint64_t bytes;
    struct hash128 hash; /* XXH3-128 of the whole file, as `xxhsum -H2` prints it. */
};

enum backup_kind { BACKUP_STATE, BACKUP_DOCUMENTS };
struct backup_part {
    uint32_t shard;
    enum backup_kind kind;
};

/* What there is of one kind. */
struct manifest_rows {
    uint64_t row_bytes;
    struct row_digest rows;
    struct manifest_file pack, list; /* Of documents: no files if there are no rows. */
};

struct manifest_shard {
    uint64_t index; /* Of the log: what the state shows. */
    uint64_t epoch;
    uint32_t members_away; /* Their documents, where no other member has them, are not in it. */
    struct manifest_rows state, documents;
};

/* An earlier backup of the same directory that has some of the chunks. */
struct manifest_use {
    uint64_t number;
    struct hash128 checksum; /* Of its manifest. */
};

struct manifest {
    uint64_t number;
    bool has_documents;   /* False: an earlier version made it. */
    bool has_definitions; /* Likewise. */
    uint64_t taken_at_ms;
    char cluster_id[64];
    char software[64];
    uint64_t cut, generation, epoch; /* The highest of any shard. */
    uint32_t apply_version;
    struct buf policy; /* JSON on one line. */
    uint32_t definition_count;
    struct buf *definitions; /* Each a Definition of the API, JSON on one line. */
    uint32_t use_count;
    struct manifest_use *uses; /* By rising number. */
    uint32_t shard_count;
    struct manifest_shard *shards;
    struct hash128 checksum; /* Set by encode and decode. */
};

/* With documents and definitions, of which there are none yet. */
void manifest_init(struct manifest *manifest, uint32_t shard_count);
const struct manifest_rows *manifest_rows_of(const struct manifest *manifest,
                                             const struct backup_part *part);
void manifest_deinit(struct manifest *manifest);
/* ERR_TOO_LARGE: there are 4096, or the text is longer than a line may be. */
NODISCARD err manifest_add_definition(struct manifest *manifest, struct slice json);
void manifest_clear_definitions(struct manifest *manifest);
/* By rising number; once each. */
void manifest_add_use(struct manifest *manifest, uint64_t number, struct hash128 checksum);
/* Appends. */
void manifest_encode(struct manifest *manifest, struct buf *out);
/* ERR_CORRUPT, ERR_INVALID (a newer version): `ret_why`. *ret_manifest is set on ERR_OK alone. */
NODISCARD err manifest_decode(struct slice text, struct manifest *ret_manifest,
                              struct backup_error *ret_why);

void hash_print(struct hash128 hash, char ret_text[33]);
__attribute__((format(printf, 2, 3))) void backup_why(struct backup_error *why, const char *format,
                                                      ...);

#endif
