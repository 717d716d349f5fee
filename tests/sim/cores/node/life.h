/*
 * life: one shard (node/core under node/rpc) with three players who do a little of everything, for
 * the rooms of the node. Whether a request is refused does not matter here; the cluster simulator
 * judges that.
 */
#ifndef TESTS_SIM_CORES_NODE_LIFE_H
#define TESTS_SIM_CORES_NODE_LIFE_H

#include "node/rpc/fixture.h"
#include "tests/sim/cores/rsim.h"

#define LIFE_PLAYERS      3u
#define LIFE_SECTIONS     3u
#define LIFE_RESERVATIONS 12u

extern const char *const life_players[LIFE_PLAYERS];
extern const char *const life_sections[LIFE_SECTIONS];

struct life {
    struct rsim *sim;
    struct fixture f;
    uint32_t ops;                                        /* Made so far. */
    char *reservations[LIFE_PLAYERS][LIFE_RESERVATIONS]; /* Op ids. */
    uint32_t reservation_count[LIFE_PLAYERS];
};

void life_init(struct life *life, struct rsim *sim);
void life_deinit(struct life *life);
/* One request. */
void life_turn(struct life *life);
/* A typed op id that was never used; in the seed's arena. */
char *life_op_id(struct life *life, const char *stem);
struct slice life_entity(struct life *life, const char *player);

/* The database after a checkpoint, sorted by key; in the seed's arena. */
struct life_rows {
    struct slice *keys, *values;
    uint32_t count;
};
void life_rows_get(struct life *life, struct life_rows *ret_rows);
/* NULL: there is no such row. */
const struct slice *life_row(const struct life_rows *rows, struct slice key);
/* Another value stands there, as if a disk or a program had put it. */
void life_spoil(struct life *life, struct slice key, struct slice value);

#endif
