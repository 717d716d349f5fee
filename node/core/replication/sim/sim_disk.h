/*
 * sim_disk: one shard's log and database at one simulated replica. Writes wait until they are
 * synced; a crash loses those that are not (or keeps some first part of them, as disks do).
 * What is left is read back as a rep_image. For tests only.
 */
#ifndef NODE_CORE_REPLICATION_SIM_SIM_DISK_H
#define NODE_CORE_REPLICATION_SIM_SIM_DISK_H

#include "node/core/replication/rep.h"

/* The database: state up to one applied entry. */
struct sim_checkpoint {
    uint64_t index;
    struct hash128 hash;
    uint64_t ms;
    struct vector vector;
    struct membership membership;
    uint64_t generation;
    struct hash128 outcome;
};

/* A zeroed disk is valid and empty. */
struct sim_disk {
    struct promise promise;
    bool dropped;
    bool differs;
    uint64_t commit_index;
    struct sim_checkpoint checkpoint;
    uint64_t first_index;   /* Oldest entry held; entries[0]. Above 0. */
    struct entry **entries; /* Durable ones. */
    uint32_t count, capacity;
    struct rep_write *pending; /* In order, not durable yet. */
    uint32_t pending_count, pending_capacity;
};

/* Takes over the writes' references. */
void sim_disk_write(struct sim_disk *disk, struct rep_write *writes, uint32_t count);
/* Makes durable whatever has a ticket up to this one. */
void sim_disk_sync(struct sim_disk *disk, uint64_t ticket);
/* Keeps the first `keep` pending writes, loses the rest. */
void sim_disk_crash(struct sim_disk *disk, uint32_t keep);
/* NULL when the log does not hold it. */
struct entry *sim_disk_entry(const struct sim_disk *disk, uint64_t index);
uint64_t sim_disk_last_index(const struct sim_disk *disk);
/* Moves the database forward, applying durable entries up to `index`. */
void sim_disk_checkpoint(struct sim_disk *disk, uint64_t index);
/* Drops entries up to `index`, at most up to the checkpoint. */
void sim_disk_cut(struct sim_disk *disk, uint64_t index);
/* Installs another replica's database; promises stay as they are. */
void sim_disk_install(struct sim_disk *disk, const struct sim_checkpoint *checkpoint);
/* Forgets all entries, and what was known committed; promises stay. */
void sim_disk_reset(struct sim_disk *disk);
/* `entries` of the image are borrowed from the disk. */
struct rep_image sim_disk_image(const struct sim_disk *disk);
/* The running hash of outcomes that the simulated state machine computes. */
struct hash128 sim_outcome(struct hash128 before, const struct entry *entry);
void sim_checkpoint_apply(struct sim_checkpoint *checkpoint, const struct entry *entry);
void sim_disk_deinit(struct sim_disk *disk);

#endif
