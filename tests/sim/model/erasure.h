/*
 * erasure: players that are erased from favourites and counters, restored and purged, while all
 * else goes wrong, and what must hold: after every entry counts are those of the edges that count,
 * no reader is told of an erased player, what is undone is as it was, what is purged is gone.
 */
#ifndef TESTS_SIM_MODEL_ERASURE_H
#define TESTS_SIM_MODEL_ERASURE_H

#include "holdfast/v1/erasure.pb-c.h"
#include "tests/sim/oracle/answer.h"
#include "tests/sim/model/model.h"

/* Of a player, from an entry on. */
struct erasure_seen {
    uint32_t shard, player;
    uint64_t index;
    uint64_t number, purge_at_ms;
    Holdfast__V1__ErasureState state;
    bool told; /* An event tells of it. */
};

/* Every other run with favourites has them. */
bool erasure_runs(const struct sim *sim);
void erasure_act(struct sim *sim, uint32_t server, uint32_t player);

/* ---- the log ---- */
/* NULL: the player was never erased. */
const struct erasure_seen *erasure_at(const struct sim *sim, uint32_t shard, uint32_t player,
                                      uint64_t index);
bool erasure_hides_at(const struct sim *sim, uint32_t shard, uint32_t player, uint64_t index);
/* Whether the entry's player may change edges, or add; and, under QUARANTINED, be erased. */
bool erasure_blocks(const struct change *c);
void erasure_begun(struct change *c, const Holdfast__V1__Erasure *told, uint64_t grace_ms);
void erasure_undone(struct change *c, const Holdfast__V1__Erasure *told);
/* Refused for good. */
void erasure_undo_refused(const struct change *c, const struct op_model *op, int code);
void erasure_stepped(struct change *c, uint64_t number, uint32_t rows_max);

/* ---- answers ---- */
void erasure_told_state(const struct told *t);
void erasure_told_export(const struct told *t);

#endif
