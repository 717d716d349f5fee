/*
 * tops: edges of a few shards, what their homes have logged of them, and the promises of top.proto,
 * pull.h, puller.h and docs/favorites.md said again. Two nodes carry what is pulled, by the very
 * puller of the product; the room loses their calls and gives their homes from one to the other.
 */
#ifndef TESTS_SIM_CORES_NODE_TOPS_H
#define TESTS_SIM_CORES_NODE_TOPS_H

#include "node/core/top/puller.h"
#include "node/core/top/top.h"
#include "node/rpc/fixture_edges.h"
#include "node/rpc/fixture_restore.h"
#include "tests/sim/cores/rsim.h"

#define TOPS_SHARDS      32u /* More than one answer looks at. */
#define TOPS_NODES       2u
#define TOPS_PLAYERS     3u /* Of each shard. */
#define TOPS_COLLECTIONS 2u
#define TOPS_TARGETS     300u

extern const char *const tops_collections[TOPS_COLLECTIONS];

/* What a shard has of one target. */
struct tops_spot {
    uint64_t made_ms[TOPS_PLAYERS]; /* 0: no edge. */
    struct source_dot changed;      /* Of its count. Zero: never. */
    uint64_t changed_ms;
    bool kept; /* The shard stores something of it. */
};

/* What a home has logged of it. */
struct tops_share {
    uint32_t count, hour_count;
    struct hour_count hours[TOPS_PLAYERS];
};

struct tops_target {
    char name[16];
    uint32_t home[TOPS_COLLECTIONS];
    struct tops_spot spots[TOPS_COLLECTIONS][TOPS_SHARDS];
    struct tops_share shares[TOPS_COLLECTIONS][TOPS_SHARDS];
};

struct tops {
    struct rsim *sim;
    struct fixture shards[TOPS_SHARDS];
    uint32_t shard_count;
    char players[TOPS_SHARDS][TOPS_PLAYERS][16];
    struct tops_target *targets;
    uint32_t target_count;
    uint64_t now_ms;
    uint64_t skew_ms[TOPS_SHARDS]; /* A clock is ahead by so much. */
    struct puller *pullers[TOPS_NODES];
    uint64_t begin_ms[TOPS_NODES]; /* When the next round may begin. */
    bool owned[TOPS_NODES][TOPS_SHARDS];
    struct source_dot logged[TOPS_SHARDS][TOPS_SHARDS]; /* By home and source. */
    /* Rows were spoilt and repaired: what is pulled again is not said exactly, only where all of it
     * ends. */
    bool damaged;
    struct tops_backup *backup; /* One is being made, or was; NULL: neither. */
    bool restored;
};

/* The number of a collection's definition. */
uint64_t tops_number(uint32_t collection);
uint32_t tops_count(const struct tops_spot *spot);
/* The clock of that shard's owner is set to now. */
struct fixture *tops_shard(struct tops *t, uint32_t shard);

/* What a shard is given to know before it takes edges. */
void tops_define(struct tops *t, uint32_t shard);
/* All nodes begin again, and own what they are given. */
void tops_begin_nodes(struct tops *t);

/* ---- tops_backup.c: a backup, and a cluster that is made of it ---- */
/* Some shard is backed up as of now, at a moment of its own; all of them have been: once, a new
 * cluster goes on from there. */
void tops_back_up(struct tops *t);
void tops_backup_free(struct tops *t);

/* ---- tops_told.c: what shards tell ---- */
/* A call of a puller reaches its shard. The answer, in the seed's arena. False: refused. */
bool tops_answer(struct tops *t, const struct pull_call *call, struct slice *ret_answer);
/* What no puller sends unless something went wrong. */
void tops_take_bare(struct tops *t);
void tops_tell_list(struct tops *t, uint32_t home);
void tops_tell_refused(struct tops *t);
/* Nothing is on its way: what every home knows, and all rows, are those of the edges. */
void tops_check_rows(struct tops *t, uint32_t shard);

#endif
