/*
 * event: events while all else goes wrong, and what must hold. After every entry: the events that
 * it left are those that its changes call for, by the model alone, each once, and no others; what
 * goes by retention is old or too many, the oldest first. In every answer: all events up to the
 * entry that it names, each once and in order, and a gap if and only if one is missing.
 */
#ifndef TESTS_SIM_EVENTS_EVENT_H
#define TESTS_SIM_EVENTS_EVENT_H

#include "tests/sim/oracle/answer.h"
#include "tests/sim/model/model.h"
#include "tests/sim/servers/request.h"

/* Every other run has readers, and a retention; the others only the rows. */
bool event_runs(const struct sim *sim);
void event_act(struct sim *sim, uint32_t server);
/* After an entry that is applied. */
void event_check(struct change *c);
/* Of an op that reads: after which place, none if false; which filters. */
struct event_wish {
    uint8_t after[20];
    bool has_after;
    uint64_t passed; /* How many events that and those before it are, and 1; 0: it does not say. */
    bool ledgers, sessions; /* Of these kinds alone. */
    const char *prefix;
    const char *entity; /* Of it alone; empty: of all. */
    uint32_t limit;
};
void event_wish_of(const struct sim *sim, const struct sim_op *op, struct event_wish *ret_wish);
void event_told(const struct told *t);
/* A place that some answer has told: of so many events the last. 0: none. */
uint32_t event_choose_place(struct sim *sim, uint32_t shard);
void event_free_all(struct sim *sim);

#endif
