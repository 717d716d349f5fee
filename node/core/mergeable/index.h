/*
 * index: which record a dot belongs to, for the dots that some member may lack. A delete leaves
 * nothing but its dot here: by it a peer that lacks the dot is sent the record without its cells.
 */
#ifndef NODE_CORE_MERGEABLE_INDEX_H
#define NODE_CORE_MERGEABLE_INDEX_H

#include "node/core/mergeable/clock.h"
#include "node/core/mergeable/key.h"

struct index_dot {
    uint64_t counter;
    struct merge_key *key;
};

/* Few enough that one more in their middle costs little, however many there are in all. */
#define INDEX_BLOCK_DOTS 256u
struct index_block {
    uint32_t first, end; /* In use: dots[first, end), at least one. */
    uint32_t capacity;   /* At most INDEX_BLOCK_DOTS. */
    struct index_dot dots[];
};

struct index_actor {
    uint64_t actor;
    uint32_t count; /* Of dots. */
    uint32_t block_count, block_capacity;
    struct index_block **blocks; /* Ascending counters, within a block and from one to the next. */
};

struct dot_index {
    uint32_t actor_count;
    uint32_t dot_count, dots_max;
    struct index_actor *actors; /* Ascending; at most MCLOCK_ACTORS_MAX. */
};

void dot_index_init(struct dot_index *index, uint32_t dots_max);
void dot_index_deinit(struct dot_index *index);
/* Keeps a reference. Over the limit the lowest dots of the actor with most go: a peer that lacks
 * one of those is sent all records. */
void dot_index_add(struct dot_index *index, struct merge_dot dot, struct merge_key *key);
/* NULL: not known. Borrowed. */
struct merge_key *dot_index_find(const struct dot_index *index, struct merge_dot dot);
/* Tells all, by actor and counter; `tell` changes nothing of the index. */
void dot_index_each(const struct dot_index *index,
                    void (*tell)(void *user, struct merge_dot dot, struct merge_key *key),
                    void *user);
struct dot_pruning {
    bool (*gone)(void *user, struct merge_dot dot, const struct merge_key *key);
    /* Above it no dot of the actor is gone, and none is asked about. NULL: all are. */
    uint64_t (*upto)(void *user, uint64_t actor);
    void *user;
};
/* Forgets each dot that is gone. */
void dot_index_prune(struct dot_index *index, const struct dot_pruning *pruning);

/* compact count of actors; per actor u64, compact count; per dot compact counter, key. */
void dot_index_encode(const struct dot_index *index, struct buf *out);
/* Into an empty index. ERR_CORRUPT: malformed; what was read until then stays. */
NODISCARD err dot_index_decode(struct dot_index *index, struct reader *reader);

#endif
