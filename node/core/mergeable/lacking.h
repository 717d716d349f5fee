/*
 * lacking: the dots that a replica holds and a peer that pulls does not, by record. The list is
 * made and sorted once a pull. It names records by their keys, so it stays true while rows change.
 */
#ifndef NODE_CORE_MERGEABLE_LACKING_H
#define NODE_CORE_MERGEABLE_LACKING_H

#include "node/core/mergeable/index.h"

/* Dots of one list; for more all records are sent. */
#define MERGE_LACKING_MAX (1u << 20)

struct lacking_dot {
    struct merge_key *key; /* A reference. */
    struct merge_dot dot;
};

/* A zeroed one is empty. */
struct lacking {
    uint32_t count, capacity;
    struct lacking_dot *dots; /* By key, then dot. */
    uint32_t at;              /* Up to here they were sent. */
    struct merge_key *after;  /* The last key that was sent, a reference; NULL: none. */
    uint64_t moved_ms;
};

void lacking_deinit(struct lacking *lacking);
/* Into an empty one: what `mine` holds and `theirs` does not cover. ERR_NOT_FOUND: the index does
 * not know the record of some dot, or there are too many; it stays empty. */
NODISCARD err lacking_find(struct lacking *lacking, const struct mclock *mine,
                           const struct dot_index *index, const struct mclock *theirs);
/* Goes to the first dot of a record behind `after`; NULL: of the first. */
void lacking_seek(struct lacking *lacking, struct merge_key *after);
/* How many dots from `at` on are of one record. */
uint32_t lacking_record(const struct lacking *lacking);
/* Goes on behind that record. */
void lacking_next(struct lacking *lacking);

#endif
