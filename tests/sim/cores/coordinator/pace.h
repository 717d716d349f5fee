/*
 * pace: a coordinator in virtual time whose writes and calls are kept with their times, so that a
 * room can say to the millisecond when each had to come. Ticks are 1 ms apart once it has begun:
 * what a limit decides is decided at the limit, one below it and one above it.
 */
#ifndef TESTS_SIM_CORES_COORDINATOR_PACE_H
#define TESTS_SIM_CORES_COORDINATOR_PACE_H

#include "coordinator/core/world.h"
#include "tests/sim/cores/rsim.h"

#define PACE_CLUSTER "test"
#define PACE_SHARDS  WORLD_CUT_SHARDS
#define PACE_MAX     1024u
#define PACE_NEVER   UINT64_MAX

struct pace_write {
    uint64_t at_ms;
    enum cluster_key_kind kind;
    uint64_t id; /* Of a shard, a node, or a server's revision. */
    bool remove;
    struct shard_record shard; /* Of a shard: what is written, */
    uint64_t before;           /* and the owner until then; 0: none. */
    bool expiring;             /* Of a server. */
    uint64_t held_ms;          /* Likewise: since when it is held; 0: it is not. */
};

struct pace_call {
    uint64_t at_ms;
    uint16_t method;
    uint32_t shard;
    uint64_t id; /* Of ExpireServer: the server's revision. */
};

struct pace_sent {
    uint64_t at_ms, ticket;
    uint32_t writes;
};

struct pace {
    struct rsim *sim;
    struct world *world;
    struct pace_write writes[PACE_MAX];
    struct pace_call calls[PACE_MAX]; /* That were answered well. */
    struct pace_sent sent[PACE_MAX];
    uint32_t write_count, call_count, sent_count;
};

/* A world with limits to be set; audits, hand-overs and exchanges are off. */
struct pace *pace_new(struct rsim *sim);
void pace_free(struct pace *pace);
/* Under these limits: nodes 1 to 3, elected, all shards placed and left alone for 3 s. */
void pace_begin(struct pace *pace);
/* As pace_begin, without nodes and not elected. */
void pace_begin_empty(struct pace *pace);
/* Nothing is kept of what was before. */
void pace_clear(struct pace *pace);
/* Ticks every millisecond. */
void pace_run(struct pace *pace, uint64_t ms);
/* A tick later; what the coordinator asks for stands in world->out, and is not answered. */
void pace_tick(struct pace *pace);
/* Ends the calls of that method in world->out with this status; what else is there is forgotten.
 * Returns how many there were. */
uint32_t pace_answer(struct pace *pace, uint16_t method, enum wire_status status);

static inline uint64_t pace_now(const struct pace *pace)
{
    return pace->world->now_ms;
}

/* The first since the last pace_clear; NULL: none. */
const struct pace_write *pace_write_of(const struct pace *pace, enum cluster_key_kind kind,
                                       uint64_t id);
/* When a server was marked as expiring; PACE_NEVER: it was not. */
uint64_t pace_marked_ms(const struct pace *pace, uint64_t server);
/* Of the n-th call of that method to the shard, from 0 on; PACE_NEVER: there were fewer. */
uint64_t pace_called_ms(const struct pace *pace, uint16_t method, uint32_t shard, uint32_t n);

#endif
