/*
 * store: the records of one shard at one replica, in the order of their keys, and the erasure
 * numbers of entities. Records are stored stripped of what the replica's clock says.
 */
#ifndef NODE_CORE_MERGEABLE_STORE_H
#define NODE_CORE_MERGEABLE_STORE_H

#include "node/core/mergeable/key.h"
#include "node/core/mergeable/record.h"

/* Entities with an erasure number. */
#define MERGE_ERASURES_MAX 65536u

struct merge_row {
    struct merge_key *key;
    struct merge_record record;
    void *followed; /* The follower's own; NULL in a new row. */
    bool saved;     /* The disk has a row of that key, */
    bool changed;   /* but not this one. What clocks say may be left out here alone. */
};

struct merge_erasure {
    struct slice entity; /* Owned. */
    uint64_t number;
};

/* Follows the records: it is told of each row that is new or has changed, and of each that goes,
 * right before. It may not change the store. */
struct merge_follower {
    void (*changed)(void *user, struct merge_row *row);
    void (*gone)(void *user, struct merge_row *row);
    void *user;
};

/* Takes what the disk lacks: first the keys of rows that went, then rows. */
struct merge_saving {
    void (*gone)(void *user, const struct merge_key *key);
    void (*row)(void *user, const struct merge_row *row);
    void *user;
};

/* A zeroed store is a valid empty one. */
struct merge_store {
    uint32_t count, capacity;
    struct merge_row *rows; /* Ascending keys. */
    uint32_t erasure_count;
    struct merge_erasure *erasures; /* Ascending entities. */
    uint32_t gone_count, gone_capacity;
    struct merge_key **gone;        /* References: of rows that the disk has, and the store not. */
    struct merge_follower follower; /* Zeros: none. The shell's, once what it reads is there. */
};

void merge_store_deinit(struct merge_store *store);
/* NULL: there is none. Valid until rows are added or removed. */
struct merge_record *merge_store_find(const struct merge_store *store, const struct merge_key *key);
/* Makes an empty one where there is none; keeps a reference to the key. */
struct merge_record *merge_store_make(struct merge_store *store, struct merge_key *key);
void merge_store_remove(struct merge_store *store, const struct merge_key *key);
/* All void records at once, in one walk. */
void merge_store_remove_void(struct merge_store *store);
/* The row is as the disk has it; the record is the store's from now on. */
void merge_store_load(struct merge_store *store, struct merge_key *key,
                      const struct merge_record *record);
/* The disk has a row of that key, and the store none: one that went, or cannot be read. */
void merge_store_must_go(struct merge_store *store, struct merge_key *key);
/* Tells all that has changed since the last time, of one moment: the disk is to have it. */
void merge_store_save(struct merge_store *store, const struct merge_saving *saving);
/* For what has changed the record of this key: its row is to be saved, and the follower is told. */
void merge_store_changed(struct merge_store *store, const struct merge_key *key);
/* The place of the first row behind `key`; NULL: of the first. */
uint32_t merge_store_after(const struct merge_store *store, const struct merge_key *key);

/* 0: never erased. */
uint64_t merge_store_erasure(const struct merge_store *store, struct slice entity);
bool merge_store_can_erase(const struct merge_store *store, struct slice entity);
/* Raises the number and drops the entity's records below it; a lower number changes nothing.
 * ERR_FULL: MERGE_ERASURES_MAX entities have one; nothing is changed. */
NODISCARD err merge_store_erase(struct merge_store *store, struct slice entity, uint64_t number);

/* compact count; per entity u8 size, entity, compact number. */
void merge_erasures_encode(const struct merge_store *store, struct buf *out);
/* ERR_CORRUPT: malformed; what was read until then stays. */
NODISCARD err merge_erasures_decode(struct merge_store *store, struct reader *reader);

/* Over keys and what replicas have to agree on; equal once they have converged. */
struct hash128 merge_store_digest(const struct merge_store *store);

#endif
