/* favorite_model: what favorite.c and counter.c keep, and those of answers and totals read. */
#ifndef TESTS_SIM_FAVORITES_FAVORITE_MODEL_H
#define TESTS_SIM_FAVORITES_FAVORITE_MODEL_H

#include "node/core/favorite/partial.h"
#include "tests/sim/favorites/counter.h"
#include "tests/sim/model/definition.h"
#include "tests/sim/model/erasure.h"
#include "tests/sim/favorites/favorite.h"

/* An edge after an entry that changed it, or what a player has added to a target of a counter. The
 * newest of each names what stands. */
struct edge_step {
    uint32_t shard, player, target;
    uint32_t place;  /* Of the collection's name. */
    uint64_t number; /* Of its definition. */
    uint64_t index;
    struct source_dot dot; /* Of the entry. */
    uint64_t ver, at_ms;
    bool favorited; /* Of a counter: always. */
    uint32_t flag; /* Of one that stands: what it waits for; 0: it counts. Of one that is gone: what
                    * it is flagged for if it is made again. */
    uint64_t flagged_at_ms;
    bool decided;    /* By a moderator. */
    bool withdrawn;  /* It stands, and does not count: its player is erased. */
    bool by_erasure; /* No call made it. */
    uint32_t life;   /* Of a counter: so often was it purged. */
    bool is_counter;
    int64_t amount, value; /* Of a counter: what the entry added; in all. */
};

/* Which collections and counters a shard has, from an entry on; number 0: it has none of that name.
 * And which rules are about the collections; where there is none, the default. */
struct collections_life {
    uint32_t shard;
    uint64_t index;
    struct sim_collection now[FAVORITE_COLLECTIONS];
    struct sim_rule rules[FAVORITE_COLLECTIONS][SIM_RULES_MAX + 1]; /* One for the default. */
    uint32_t rule_count[FAVORITE_COLLECTIONS];
    struct sim_counter counters[COUNTER_NAMES];
};

/* A change that counted for its player's rate. */
struct rate_use_seen {
    uint32_t shard, player;
    uint32_t place;  /* Of the collection's name. */
    uint64_t number; /* Of its definition. */
    uint64_t index, at_ms;
    bool makes;    /* An edge. */
    uint32_t life; /* In favorites_sim.lives: what was in force. */
};

/* An outcome of a call that a player may make itself. */
struct share_use_seen {
    uint32_t shard, player;
    bool is_key; /* Of an id of kind `key:`. */
    uint64_t at_ms;
};

struct favorites_sim {
    struct tops_sim *tops; /* Of top.c. */
    struct edge_step *steps;
    uint32_t step_count, step_capacity;
    struct collections_life *lives;
    uint32_t life_count, life_capacity;
    struct rate_use_seen *uses; /* Of rate.c. */
    uint32_t use_count, use_capacity;
    struct share_use_seen *shares; /* Of share.c. */
    uint32_t share_count, share_capacity;
    struct erasure_seen *erasures; /* Of erasure.c. */
    uint32_t erasure_count, erasure_capacity;
};

struct favorites_sim *favorites_of(struct sim *sim);
/* As of an index; NULL: there is none of that name. */
const struct sim_collection *favorite_life(const struct sim *sim, uint32_t shard,
                                           const char *collection, uint64_t index);
/* The same: what was in force there, with rules; NULL: nothing was defined yet. */
const struct collections_life *favorite_life_at(const struct sim *sim, uint32_t shard,
                                                uint64_t index);
uint32_t favorite_place_of_name(const char *collection);
/* The edge that has the shard, number, player and target of `edge`; NULL: none was there yet. */
const struct edge_step *favorite_edge_at(const struct sim *sim, const struct edge_step *edge,
                                         uint64_t index);
/* How many lead to the target of `edge`, or what was added to it, and how many its player has. */
uint64_t favorite_count_at(const struct sim *sim, const struct edge_step *edge, uint64_t index);
uint32_t favorite_edges_at(const struct sim *sim, const struct edge_step *edge, uint64_t index);
/* Whether counts have it: it stands, waits for no review, and is not withdrawn. */
bool favorite_step_counts(const struct edge_step *step);
uint32_t favorite_target_of(const char *target);
/* The number of what counts are of, as of an entry of the shard that was asked; 0: none. */
uint64_t told_subject(const struct told *t, const char *name, bool is_counter, uint64_t index);
void favorite_step_add(struct favorites_sim *favorites, const struct edge_step *step);
/* The rows after an entry: its target's partial count, and its player's own. */
void favorite_check_rows(const struct change *c, const struct edge_step *edge);
/* In which hours the edges were made that led to the target of `edge` as of an index: those that
 * stand, by the entries that made them. */
void favorite_hours_at(const struct sim *sim, const struct edge_step *edge, uint64_t index,
                       struct hours *ret_hours);

#endif
