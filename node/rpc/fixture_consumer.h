/* fixture_consumer: a consumer of events of the fixture's shard. Tests only. */
#ifndef NODE_RPC_FIXTURE_CONSUMER_H
#define NODE_RPC_FIXTURE_CONSUMER_H

#include "node/rpc/fixture.h"

#define FIXTURE_CONSUMER_SIZE 24u

/* A name whose consumer lives in that shard. */
void fixture_consumer_name(const struct fixture *f, char ret_name[FIXTURE_CONSUMER_SIZE]);
/* Makes it, moves it on, reads and lists it. Each may be refused. */
void fixture_consume_all(struct fixture *f);

#endif
