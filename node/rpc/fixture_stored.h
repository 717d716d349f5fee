/* fixture_stored: a database for whole shards under test, filled by their checkpoints. For tests
 * only. */
#ifndef NODE_RPC_FIXTURE_STORED_H
#define NODE_RPC_FIXTURE_STORED_H

#include "node/core/shard/shard.h"

struct stored_row {
    struct buf key, value;
};

struct stored_rows {
    struct stored_row *list; /* In no order. */
    uint32_t count, capacity;
};

void stored_rows_deinit(struct stored_rows *rows);
/* The rows of the shard that changed go here, and none that is clean stays in its memory. */
void stored_rows_checkpoint(struct stored_rows *rows, struct shard *shard);
/* As the database answers for the key; borrowed. */
struct shard_row stored_rows_find(const struct stored_rows *rows, struct slice key);
/* All there are of the range, in order; CHECKs that they fit it, and `rows_max`. */
uint32_t stored_rows_range(const struct stored_rows *rows, const struct state_range *range,
                           struct shard_row *ret_rows, uint32_t rows_max);
/* The database forgets the row; CHECKs that it is there. */
void stored_rows_lose(struct stored_rows *rows, struct slice key);

#endif
