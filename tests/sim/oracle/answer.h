/* answer: what the checks of answers share. A row of the workload says which of them its method
 * needs (workload.h). */
#ifndef TESTS_SIM_ORACLE_ANSWER_H
#define TESTS_SIM_ORACLE_ANSWER_H

#include "tests/sim/model/model.h"

/* A good answer of a node, beside its request. */
struct told {
    struct sim *sim;
    const struct node_call *call;
    struct shard_oracle *shard;
    const ProtobufCMessage *request;
    const ProtobufCMessage *response;
};

void told_fail(const struct told *t, const char *what, uint64_t got, uint64_t wanted);
/* That of the request's player_id. */
struct player_model *told_player(const struct told *t);
/* The op that the request is about; NULL: it has no op_id. */
struct op_model *told_op(const struct told *t);
/* What the id stood for when the entry was logged that the answer's `write` names: a late answer
 * may tell of a `key:` that was over since, and stands for another operation now. */
const struct op_model *told_life(const struct told *t);

/* A mutation that is done: so the log says, at that entry. What a row without `told` gets. */
void told_write(const struct told *t);
/* The response's `dot` was committed, and no later read may miss it. */
void told_dot(const struct told *t);
/* What an operation's status may be, as the log stands now. */
void told_status(const struct told *t, const Holdfast__Internal__V1__OperationRecord *status);
/* The entry up to which a read has seen (`as_of`); 0: already failed. */
uint64_t told_index(const struct told *t);
/* The request's player then; all zero if there was none. */
const struct moment *told_moment(const struct told *t, uint64_t index);
/* What is reserved: all of it, and nothing else. */
void told_reserved(const struct told *t, size_t count,
                   Holdfast__V1__CurrencyAmount *const *reserved, const struct moment *moment);
/* All balances, and nothing else; one that was never held is 0. */
void told_balances(const struct told *t, size_t count,
                   Holdfast__V1__CurrencyAmount *const *balances, const struct moment *moment);
/* ... of a profile that was asked for without `include`. */
void told_whole(const struct told *t, const Holdfast__V1__Profile *profile,
                const struct moment *moment);
void told_profile(const struct told *t, const Holdfast__V1__Profile *profile,
                  const struct moment *moment);
/* Nothing in it can be checked. */
void told_nothing(const struct told *t);

#endif
