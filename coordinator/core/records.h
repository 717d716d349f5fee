/* records: the copy of what etcd says, and what follows from it alone. */
#ifndef COORDINATOR_CORE_RECORDS_H
#define COORDINATOR_CORE_RECORDS_H

#include "coordinator/core/coord_event.h"
#include "coordinator/core/coord_state.h"

/* The node of which a new life began; 0: of none. */
uint64_t records_put(struct coord *coord, const struct coord_event *event);
/* True: a node is gone, which cannot wait for the next tick. */
bool records_deleted(struct coord *coord, const struct coord_event *event);
struct node *node_find(struct coord *coord, uint64_t replica_id);
struct server *server_find(struct coord *coord, struct incarnation incarnation);
void server_remove(struct coord *coord, struct server *server);
void shard_adopt(struct coord *coord, uint32_t number, const struct shard_record *record,
                 int64_t mod_revision);
/* Of the next write of the shard's record: one on, and above what a restored backup knew. */
uint64_t epoch_after(const struct coord *coord, const struct shard *shard);
/* It is drained or removed: it is to own nothing. */
bool node_is_leaving(const struct coord *coord, uint64_t replica_id);
bool node_is_removed(const struct coord *coord, uint64_t replica_id);

#endif
