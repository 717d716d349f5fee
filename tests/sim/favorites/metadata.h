/*
 * metadata: what games say of targets while all else goes wrong, and what must hold. After every
 * entry: it did what the request asks for, or is refused as the rules say, by the requests alone;
 * no version comes twice. Every answer: the metadata is as the log says that it was.
 */
#ifndef TESTS_SIM_FAVORITES_METADATA_H
#define TESTS_SIM_FAVORITES_METADATA_H

#include "tests/sim/oracle/answer.h"
#include "tests/sim/model/model.h"
#include "tests/sim/servers/request.h"

/* Of the runs with favourites some have metadata: the others are told as before there was any. */
bool metadata_runs(const struct sim *sim);
void metadata_act(struct sim *sim, uint32_t server);
void metadata_free_all(struct sim *sim);

/* The request of an op: of Put-, BatchGet- or DeleteTargetMetadata. */
void metadata_encode(const struct sim *sim, const struct sim_op *op, struct buf *out);
/* Such an entry is applied. */
void metadata_logged(struct change *c);
/* A good answer. */
void metadata_told(const struct told *t);
/* What a server learns from it. */
void metadata_taken(struct sim *sim, const struct sim_op *op, struct slice body);

#endif
