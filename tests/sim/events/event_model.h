/* event_model: what event.c keeps, and event_told.c reads. */
#ifndef TESTS_SIM_EVENTS_EVENT_MODEL_H
#define TESTS_SIM_EVENTS_EVENT_MODEL_H

#include "node/core/handler/event_row.h"
#include "tests/sim/model/definition.h"
#include "tests/sim/events/event.h"

/* An event as its shard's log made it, in order. */
struct event_seen {
    uint64_t index, gone_index; /* Of the entries that made and removed it; 0: it stands. */
    uint64_t at_ms;
    struct event_place place;
    Holdfast__V1__EventKind kind;
    char entity[64];
    uint32_t player; /* Of LEDGER. */
    uint64_t number; /* Of the ledger's entry, the fence, the ver, the version. */
    bool flag;       /* Favorited, started, deleted. */
};

/* A definition as the shard had it after the last entry that named it. */
#define EVENT_DEFINITIONS 128u
struct definition_events {
    uint64_t number;
    bool stands;
    struct sim_definition row;
};

struct shard_events {
    struct definition_events definitions[EVENT_DEFINITIONS];
    uint32_t definition_count;
    struct event_seen *seen;
    uint32_t count, capacity;
    uint32_t gone;       /* The first so many. */
    uint64_t told_index; /* Up to where some answer has told. */
    bool loaded;
};

/* What a player was like after the entry before. */
struct player_events {
    uint64_t entries, fence;
    struct incarnation holder;
};

struct events_sim {
    struct shard_events shards[SIM_SHARDS_MAX];
    struct player_events players[SIM_PLAYERS_MAX];
};

struct events_sim *events_of(struct sim *sim);
/* What tells events of one kind and entity apart. */
void event_told_number(const Holdfast__V1__Event *event, uint64_t *ret_number, bool *ret_flag);

#endif
