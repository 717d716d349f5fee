/* fixture_metadata: what the game says of a target of the fixture's shard. Tests only. */
#ifndef NODE_RPC_FIXTURE_METADATA_H
#define NODE_RPC_FIXTURE_METADATA_H

#include "holdfast/v1/favorites.pb-c.h"
#include "node/rpc/fixture.h"

#define FIXTURE_TARGET_SIZE 24u

/* A target whose metadata lives in that shard; each `number` is another one. */
void fixture_target_name(const struct fixture *f, uint32_t number,
                         char ret_name[FIXTURE_TARGET_SIZE]);
/* Writes it, reads it and removes one that is not there, in the default collection. Each may be
 * refused. */
void fixture_metadata_all(struct fixture *f);

#endif
