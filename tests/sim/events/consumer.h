/*
 * consumer: named consumers of events while all else goes wrong, and what must hold. After every
 * entry: it did to the consumer what the request asks for, or is refused as the rules say, by the
 * model alone; a committed place goes back only if that was asked for. In every answer: the
 * consumer is as the log says that it was.
 */
#ifndef TESTS_SIM_EVENTS_CONSUMER_H
#define TESTS_SIM_EVENTS_CONSUMER_H

#include "tests/sim/oracle/answer.h"
#include "tests/sim/model/model.h"
#include "tests/sim/servers/request.h"

/* Every other run with readers has consumers. */
bool consumer_runs(const struct sim *sim);
void consumer_act(struct sim *sim, uint32_t server);
void consumer_free_all(struct sim *sim);

/* The request of an op: of GetConsumer, CreateConsumer, CommitConsumer or DeleteConsumer. */
void consumer_encode(const struct sim *sim, const struct sim_op *op, struct buf *out);
/* An entry of these. */
void consumer_logged(struct change *c);
/* A good answer to these. */
void consumer_told(const struct told *t);
/* What the server learns from it. */
void consumer_taken(struct sim *sim, const struct sim_op *op, struct slice body);

#endif
