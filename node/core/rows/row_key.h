/* row_key: room for a key, and the keys of operations, by which they leave memory. Keys: rows.h. */
#ifndef NODE_CORE_ROWS_ROW_KEY_H
#define NODE_CORE_ROWS_ROW_KEY_H

#include <stddef.h>
#include <stdint.h>

#include "node/core/rows/blob.h"

struct row_key {
    size_t size;
    uint8_t bytes[STATE_KEY_BYTES_MAX];
};

struct slice row_key_slice(const struct row_key *key);
/* The last key that an operation of this millisecond could have, and what follows it. */
void row_key_operation_bound(struct row_key *key, uint64_t ms);
/* Of a key of TABLE_OPERATION. */
uint64_t row_operation_ms(struct slice key);

#endif
