#include "router/core/txn_read.h"

#include <string.h>

#include "runtime/base/check.h"

void txn_read_init(struct txn_read *reading, uint32_t count)
{
    CHECK(count > 0 && count <= TXN_READ_PLAYERS_MAX);
    memset(reading, 0, sizeof *reading);
    reading->count = count;
    reading->open = count;
}

enum txn_read_next txn_read_take(struct txn_read *reading, uint32_t place, uint64_t version)
{
    CHECK(place < reading->count);
    CHECK(reading->open > 0);
    reading->changed |= reading->round > 0 && reading->versions[place] != version;
    reading->versions[place] = version;
    if (--reading->open > 0)
        return TXN_READ_WAIT;
    bool first = reading->round++ == 0;
    if (reading->count == 1 || (!first && !reading->changed))
        return TXN_READ_ANSWER;
    if (reading->round == TXN_READ_ROUNDS_MAX)
        return TXN_READ_BUSY;
    reading->changed = false;
    reading->open = reading->count;
    return TXN_READ_AGAIN;
}
