/*
 * shard_erasure: how far an entity of the shard is erased (docs/erasure.md), in the words of those
 * who keep something of it outside the shard's rows: a shard tells its shell of each change, and
 * its rows tell the rest at a start.
 */
#ifndef NODE_CORE_SHARD_SHARD_ERASURE_H
#define NODE_CORE_SHARD_SHARD_ERASURE_H

#include "node/core/codec/op.h"
#include "node/core/favorite/erasure_row.h"

struct shard_erasure {
    uint64_t number; /* Rises with each erasure of the entity. */
    bool hides;      /* Nothing of the entity is told to readers, and nothing is written. */
    bool purges;     /* Nothing that was there before it is kept. */
    uint8_t entity_size;
    uint8_t entity[ENTITY_BYTES_MAX];
};
_Static_assert(ENTITY_BYTES_MAX <= UINT8_MAX, "its size is a byte");

struct slice shard_erasure_entity(const struct shard_erasure *erasure);
/* The row is the entity's, whose name fits. */
void shard_erasure_tell(struct slice entity, const struct erasure_row *row,
                        struct shard_erasure *ret_erasure);
/* A row of TABLE_ERASURE. False: it cannot be read. */
bool shard_erasure_decode(struct slice key, struct slice value, struct shard_erasure *ret_erasure);

#endif
