/* word: whether etcd is as new as what replicas know. */
#ifndef COORDINATOR_CORE_WORD_H
#define COORDINATOR_CORE_WORD_H

#include "coordinator/core/coord_event.h"
#include "coordinator/core/coord_out.h"
#include "coordinator/core/coord_state.h"
#include "coordinator/core/delivery.h"

/* A live node says that etcd is older than it knows. */
uint32_t word_doubting_nodes(const struct coord *coord);
/* A term begins: others may have written since the last one. Every node is asked again. */
void word_begin(struct coord *coord);
/* Looks at every shard, and asks who has not been asked. */
void word_run(struct coord *coord, struct coord_out *out);
void word_told(struct coord *coord, const struct open_call *call, const struct coord_event *event);
void word_drop(struct coord *coord);

#endif
