/* model: what the files of the model share; see oracle.h. */
#ifndef TESTS_SIM_MODEL_H
#define TESTS_SIM_MODEL_H

#include "tests/sim/oracle.h"

/* One entry and what became of it. */
struct change {
    struct sim *sim;
    struct shard_oracle *shard;
    uint32_t number;
    const struct entry *entry;
    const struct outcome *outcome;
    struct op op;
    struct player_model *player; /* NULL: none is concerned. */
    const ProtobufCMessage *request;
    enum op_state was; /* The operation, before this entry. */
    struct hash128 payload;
};

void model_fail_op(const struct change *c, const struct op_model *op, const char *what);
/* The player as it is now, from this entry on. */
void model_remember(struct player_model *player, uint64_t index);

/* Done in this entry, under the authority that the operation names. */
void model_carried_out(struct change *c, struct op_model *op);
/* Asked for: nothing is done yet. */
void model_asked(struct change *c, struct op_model *op);
/* Whether the log gives the reason that a refusal gives. */
void model_check_reason(const struct change *c, const struct op_model *op, int code);

/* ---- model_ledger.c ---- */
/* Consume, Reverse, Reserve, Post that spends, and Void, done or refused. */
void model_ledger(const struct change *c, struct op_model *op, const ProtobufCMessage *response);
/* What a Post takes of its reservation, which it closes. */
struct goods model_post(const struct change *c, const struct op_model *op);
void model_reservation_due(const struct change *c);
void model_ledger_refused(const struct change *c, const struct op_model *op,
                          const Holdfast__V1__ErrorDetail *detail);

#endif
