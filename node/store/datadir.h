/*
 * datadir: a node's directory: who it belongs to, and that only one process uses it.
 * Holds `LOCK` (flock, with the owner's pid), `IDENTITY` (text, replaced atomically), `log/` and
 * `db/`, once there are documents `mergeable/`, and while the database is damaged `DAMAGE` and
 * `db.salvage/`. DESIGN section 4: a wiped disk is a new replica, and nodes persist what they saw
 * of etcd.
 */
#ifndef NODE_STORE_DATADIR_H
#define NODE_STORE_DATADIR_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/err.h"

#define DATADIR_FORMAT      1u
#define DATADIR_PATH_BYTES  1024u
#define DATADIR_ERROR_BYTES 1280u

struct datadir_identity {
    char cluster_id[37]; /* UUID text. */
    uint64_t replica_id; /* Never 0; minted once. */
    uint32_t format;     /* Of the whole directory. */
    uint32_t shard_count;
    uint64_t generation;      /* Highest seen. */
    uint64_t etcd_cluster_id; /* 0: never connected. */
    uint64_t etcd_revision;   /* Highest seen of that cluster. */
};

struct datadir;

struct datadir_config {
    const char *path;        /* Made (0700) if it does not exist; its parent must exist. */
    const char *cluster_id;  /* UUID text of the cluster this node was told to join. */
    uint64_t new_replica_id; /* Random, not 0: taken when the directory has no identity yet. */
    uint32_t shard_count;    /* Of the cluster. */
};

/*
 * Locks the directory and reads or creates its identity; makes log/ and db/. `ret_text` is
 * filled on every error.
 * ERR_CONFLICT    another process holds it (text names the pid).
 * ERR_PERMISSION  it belongs to another cluster (text names both ids), or shard_count differs.
 * ERR_INVALID     config, or a format newer than this binary (text names both).
 * ERR_CORRUPT     IDENTITY is malformed, or missing beside a log or database that is not empty.
 * ERR_IO          text says what failed.
 */
NODISCARD err datadir_open(const struct datadir_config *config, struct datadir **ret_dir,
                           char ret_text[DATADIR_ERROR_BYTES]);
/* What IDENTITY says, without the lock: for what must be known before the directory is opened.
 * False: there is none that can be read; datadir_open will say why. */
bool datadir_peek(const char *path, struct datadir_identity *ret_identity);
/* Whether a process holds it now: then `ret_text` says which, as datadir_open would. */
bool datadir_is_held(const char *path, char ret_text[DATADIR_ERROR_BYTES]);
/* Unlocks and frees. */
void datadir_close(struct datadir *dir);

/* Valid until datadir_close; changes with datadir_note_etcd. */
const struct datadir_identity *datadir_identity_get(const struct datadir *dir);
const char *datadir_log_path(const struct datadir *dir);
const char *datadir_db_path(const struct datadir *dir);

/* What is known of the database, over restarts. */
enum datadir_damage {
    DATADIR_WHOLE,
    DATADIR_DAMAGED /* It is to be salvaged before it is used again. */
};
enum datadir_damage datadir_damage_get(const struct datadir *dir);
/* Makes durable that the database is damaged: some milliseconds. ERR_IO: nothing is known to have
 * been changed. */
NODISCARD err datadir_note_damage(struct datadir *dir);
/* Where what is salvaged goes. */
const char *datadir_salvage_path(const struct datadir *dir);
/* Makes that directory, empty. ERR_IO, with ret_text. */
NODISCARD err datadir_salvage_begin(struct datadir *dir, char ret_text[DATADIR_ERROR_BYTES]);
/*
 * It takes the place of the database, which is removed, and nothing is damaged any more. Both are
 * closed, and all that is in it is durable. A crash at any step: the next datadir_open ends it.
 * ERR_IO, with ret_text.
 */
NODISCARD err datadir_salvage_switch(struct datadir *dir, char ret_text[DATADIR_ERROR_BYTES]);

/*
 * Makes durable what was seen of etcd and of the cluster's generation (temporary file, fsync,
 * rename, fsync of the directory: some milliseconds, so not on a loop's thread and not for every
 * revision). Nothing may go back within one (generation, etcd cluster):
 * ERR_CONFLICT: the generation is lower than the stored one, or it is the same and etcd's cluster
 * id differs or its revision is lower. Nothing was changed; DESIGN section 4, "etcd restored".
 * ERR_IO: nothing is known to have been changed.
 */
NODISCARD err datadir_note_etcd(struct datadir *dir, uint64_t generation, uint64_t etcd_cluster_id,
                                uint64_t etcd_revision);

#endif
