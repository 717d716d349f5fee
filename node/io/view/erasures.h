/*
 * erasures: which entities of which shards are erased, as their committed entries say: for what is
 * kept of an entity outside the rows of its shard (docs/erasure.md). Workers tell it of each change
 * before the call that made it is answered, and at a start of what their database has.
 */
#ifndef NODE_IO_VIEW_ERASURES_H
#define NODE_IO_VIEW_ERASURES_H

#include "node/core/shard/shard_erasure.h"

struct erasures;

struct erasures *erasures_new(uint32_t shard_count);
/* NULL is allowed. */
void erasures_free(struct erasures *erasures);

/* Any thread. A lower number than is known changes nothing. Copied. */
void erasures_set(struct erasures *erasures, uint32_t shard, const struct shard_erasure *erasure);
/* Any thread. False: the entity was never erased, as far as it is known here. */
bool erasures_find(struct erasures *erasures, uint32_t shard, struct slice entity,
                   struct shard_erasure *ret_erasure);
/* Any thread: the first change of the shard that is later than `*stamp`, which becomes its own.
 * Begin with 0. False: there is none. Changes that others overtook may be left out, and one may be
 * met again: what is kept grows with the entities, not with how often they are erased. */
bool erasures_next(struct erasures *erasures, uint32_t shard, uint64_t *stamp,
                   struct shard_erasure *ret_erasure);

#endif
