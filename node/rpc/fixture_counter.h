/* fixture_counter: counters, and what players add to them. Tests only. */
#ifndef NODE_RPC_FIXTURE_COUNTER_H
#define NODE_RPC_FIXTURE_COUNTER_H

#include "node/core/counter/counter.h"
#include "node/rpc/fixture.h"

/* A version of a counter, at the revision of that number; 0: the greatest that there is. */
struct fixture_counter {
    uint64_t number, revision;
    const char *name;
    int64_t max_value, add_max;
    bool deleted;
};
void fixture_define_counter(struct fixture *f, const struct fixture_counter *counter);
/* "plays", under number 9. */
void fixture_define_plays(struct fixture *f);

/* One addition; NULL: refused. */
struct fixture_addition {
    const char *player, *target;
    int64_t amount;
    const char *counter;   /* NULL: "plays". */
    const char *op_id;     /* NULL: a new one. */
    const char *authority; /* NULL: "system:match". */
};
const Holdfast__V1__AddToCounterResponse *fixture_addition(struct fixture *f,
                                                           const struct fixture_addition *addition);
/* Short for one to "plays"; its value after, or -1: refused. */
int64_t fixture_add(struct fixture *f, const char *player, const char *target, int64_t amount);

/* What a player added to a target of "plays"; -1: refused. */
int64_t fixture_value(struct fixture *f, const char *player, const char *target);
/* The shard's part of what a target has; UINT64_MAX: refused. */
uint64_t fixture_part(struct fixture *f, const char *counter, const char *target);
/* Some of everything that rows of counters are read and written by. Each may be refused. */
void fixture_count_all(struct fixture *f, const char *player);

/* Some steps of a rebuild of totals, and of one of counts, wherever the shard is in them, and some
 * comparing. Each may be refused. */
void fixture_rebuild_all(struct fixture *f, uint32_t steps);

/* All rows of counters fit each other: with players, with targets, and both sums. Looks at the
 * database, after a checkpoint. */
void fixture_check_counters(struct fixture *f);

#endif
