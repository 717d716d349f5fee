/* definition: a team's changes of definitions while all else goes wrong, and what must hold. */
#ifndef TESTS_SIM_MODEL_DEFINITION_H
#define TESTS_SIM_MODEL_DEFINITION_H

#include "tests/sim/sim.h"

/* At a coordinator's tick: a caller's change of a definition. False: none is asked for. */
bool definition_ask(struct sim *sim, uint32_t place, struct coord_event *ret_event);
void definition_answered(struct sim *sim, const struct coord_answer *answer);
/* Before the write is carried out. */
void definition_written_to_etcd(struct sim *sim, const struct cluster_key_parts *parts,
                                struct slice value, bool remove);
/* A DEFINE entry is applied. */
void definition_logged(struct sim *sim, uint32_t shard, const ProtobufCMessage *message);
/* A collection that a shard has, by the rows of definitions alone; number 0: none of that name. */
struct sim_collection {
    uint64_t number;
    uint32_t edges_max;
    bool last_write;
};
bool definition_collection(struct sim *sim, uint32_t shard, const char *name,
                           struct sim_collection *ret_collection);
/* The same of a counter. */
struct sim_counter {
    uint64_t number;
    int64_t value_max, add_max;
};
bool definition_counter(struct sim *sim, uint32_t shard, const char *name,
                        struct sim_counter *ret_counter);
/* Rate rules about a subject that a shard has, by the rows of definitions alone: those with the
 * lowest numbers, by number; how many. */
#define SIM_RULES_MAX 8u
struct sim_rule {
    uint64_t number, generation, revision; /* All 0: the default's. */
    uint32_t limit, period_ms;
    bool flags;      /* What is past the limit is flagged; else it is refused. */
    uint64_t age_ms; /* Edges of players who are younger are flagged; `limit` is 0 then. */
};
uint32_t definition_rules(struct sim *sim, uint32_t shard, const char *subject,
                          struct sim_rule ret_rules[SIM_RULES_MAX]);
/* How long a shard keeps events, by the rows of definitions alone; the defaults if none says. */
void definition_retention(struct sim *sim, uint32_t shard, uint64_t *ret_keep_ms,
                          uint64_t *ret_events_max);
/* A definition's row in a shard, by its number; false: there is none. */
struct sim_definition {
    uint64_t version;
    uint64_t body; /* A hash of it. */
};
bool definition_row(struct sim *sim, uint32_t shard, uint64_t number,
                    struct sim_definition *ret_row);
/* Shards that have not followed to what etcd has. */
uint32_t definition_pending(struct sim *sim);
void definition_check_end(struct sim *sim);
void definition_free_all(struct sim *sim);

#endif
