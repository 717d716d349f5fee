/*
 * count_memo: the counts of targets that a router has gathered, by collection, or counter, and
 * target, as long as there is room: what was asked for longest ago goes first. Each comes with the
 * moments between which its parts stood so; how old one may be, the reader says. A collection that
 * is deleted and made again has another number: counts of its former life are never told. Pure: the
 * time is told.
 */
#ifndef ROUTER_CORE_COUNT_MEMO_H
#define ROUTER_CORE_COUNT_MEMO_H

#include "runtime/base/buf.h"

struct count_name {
    struct slice collection; /* Or a counter. */
    struct slice target;
    bool is_counter;
};

struct count_known {
    uint64_t count;
    uint64_t collection_number; /* Under which all shards counted. 0: not known. */
    /* Milliseconds since 1970, by the clocks of the shards' owners. */
    int64_t from_ms;
    int64_t to_ms;
    /* On the router's clock: when the first shard was asked. All parts are at least as new. */
    uint64_t gathered_ms;
};

struct count_memo_stats {
    uint64_t hits;
    uint64_t misses; /* Not known, or known for too long. */
    uint64_t evictions;
    uint64_t bytes;
    uint64_t entries;
};

struct count_memo;

struct count_memo *count_memo_new(size_t bytes_max);
void count_memo_free(struct count_memo *memo);

/* Whether the count is known and was gathered at `since_ms` or later: a hit, which moves it behind
 * all others in the order of leaving. */
bool count_memo_find(struct count_memo *memo, const struct count_name *name, uint64_t since_ms,
                     struct count_known *ret_known);
/* The same, of any age that is at least `since_ms`, where nothing newer can be had; no hit and no
 * miss. */
bool count_memo_recall(const struct count_memo *memo, const struct count_name *name,
                       uint64_t since_ms, struct count_known *ret_known);
/* Copies the name. What was gathered earlier than what is known already changes nothing. */
void count_memo_put(struct count_memo *memo, const struct count_name *name,
                    const struct count_known *known);
/* The collection of that name lives under this number, by shards that were asked at `gathered_ms`:
 * counts under any other are known no more. An earlier word, or the number 0, changes nothing. It
 * is kept as long as any count of the collection that was asked for. */
void count_memo_note_life(struct count_memo *memo, const struct count_name *name, uint64_t number,
                          uint64_t gathered_ms);
struct count_memo_stats count_memo_stats(const struct count_memo *memo);
/* CHECKs that places and order hold the same counts, and that they are as many and as large as is
 * told. For tests. */
void count_memo_check(const struct count_memo *memo);

#endif
