#include "node/core/rows/row_key.h"

#include "node/core/rows/table.h"
#include "runtime/base/check.h"

#define OPERATION_MS_BYTES 6u /* Behind the table, big-endian. */

struct slice row_key_slice(const struct row_key *key)
{
    return (struct slice){ key->bytes, key->size };
}

void row_key_operation_bound(struct row_key *key, uint64_t ms)
{
    key->size = 1 + OPERATION_MS_BYTES;
    key->bytes[0] = TABLE_OPERATION;
    for (size_t i = 1; i <= OPERATION_MS_BYTES; i++)
        key->bytes[i] = (uint8_t)((ms + 1) >> (8 * (OPERATION_MS_BYTES - i)));
}

uint64_t row_operation_ms(struct slice key)
{
    uint64_t ms = 0;

    CHECK(key.size > OPERATION_MS_BYTES);
    for (size_t i = 1; i <= OPERATION_MS_BYTES; i++)
        ms = ms << 8 | key.data[i];
    return ms;
}
