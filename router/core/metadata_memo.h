/*
 * metadata_memo: what a router knows of targets, by collection and target, for as long as there is
 * room: the metadata, packed, or that there is none. How old it may be, the reader says: young
 * enough, it is told; older, it may be told while it is asked for again; older still, it is not
 * known. Pure: the time is told.
 */
#ifndef ROUTER_CORE_METADATA_MEMO_H
#define ROUTER_CORE_METADATA_MEMO_H

#include "runtime/base/buf.h"

struct metadata_memo;

struct metadata_name {
    struct slice collection;
    struct slice target;
};

enum metadata_age {
    METADATA_UNKNOWN, /* Not known, or known for too long. */
    METADATA_OLD,     /* To be asked for again; meanwhile it may be told. */
    METADATA_YOUNG
};

/* On the router's clock: what was learned at `young_since_ms` or later is young, at `old_since_ms`
 * or later old. */
struct metadata_ages {
    uint64_t young_since_ms, old_since_ms;
};

struct metadata_memo_stats {
    uint64_t hits;   /* Young ones. */
    uint64_t stale;  /* Old ones. */
    uint64_t misses; /* Unknown. */
    uint64_t evictions;
    uint64_t bytes;
    uint64_t entries;
};

struct metadata_memo *metadata_memo_new(size_t bytes_max);
/* NULL is allowed. */
void metadata_memo_free(struct metadata_memo *memo);

/* *ret_packed, unless it is unknown: empty for a target that has none. Good until the next put. */
enum metadata_age metadata_memo_find(struct metadata_memo *memo, const struct metadata_name *name,
                                     const struct metadata_ages *ages, struct slice *ret_packed);
/* Copies all of it. What was learned before what is known changes nothing. */
void metadata_memo_put(struct metadata_memo *memo, const struct metadata_name *name,
                       struct slice packed, uint64_t learned_ms);
struct metadata_memo_stats metadata_memo_stats(const struct metadata_memo *memo);
/* CHECKs that bytes and entries are as many as is told. For tests. */
void metadata_memo_check(const struct metadata_memo *memo);

#endif
