#include "router/core/player_writes.h"

#include <stdlib.h>

#include "router/core/rate_limit.h"
#include "runtime/base/check.h"

/* Buckets hold a second's worth: by a clock that is so much slower, a minute's. */
#define MINUTE_SLOWER 60u

struct player_writes {
    struct rate_table *addresses, *devices;
};

struct player_writes *player_writes_new(void)
{
    struct player_writes *writes = mem_zalloc(sizeof *writes);

    writes->addresses = rate_table_new();
    writes->devices = rate_table_new();
    return writes;
}

void player_writes_free(struct player_writes *writes)
{
    if (writes == NULL)
        return;
    rate_table_free(writes->addresses);
    rate_table_free(writes->devices);
    free(writes);
}

static bool has(struct rate_table *table, uint64_t name, uint32_t per_minute, uint64_t slow_ms,
                uint32_t *ret_retry_after_ms)
{
    uint32_t slow_retry_ms = 0;

    if (per_minute == 0 ||
        rate_has(rate_table_get(table, name), per_minute, slow_ms, &slow_retry_ms))
        return true;
    *ret_retry_after_ms = slow_retry_ms * MINUTE_SLOWER;
    return false;
}

static void charge(struct rate_table *table, uint64_t name, uint32_t per_minute, uint64_t slow_ms)
{
    if (per_minute > 0)
        rate_charge(rate_table_get(table, name), per_minute, 1, slow_ms);
}

enum player_writes_told player_writes_take(struct player_writes *writes,
                                           const struct player_write *write,
                                           uint32_t *ret_retry_after_ms)
{
    uint64_t slow_ms = write->now_ms / MINUTE_SLOWER;
    uint32_t of_device = write->device != 0 ? write->device_per_minute : 0;

    if (!has(writes->addresses, write->address, write->address_per_minute, slow_ms,
             ret_retry_after_ms))
        return PLAYER_WRITES_ADDRESS;
    if (!has(writes->devices, write->device, of_device, slow_ms, ret_retry_after_ms))
        return PLAYER_WRITES_DEVICE;
    charge(writes->addresses, write->address, write->address_per_minute, slow_ms);
    charge(writes->devices, write->device, of_device, slow_ms);
    return PLAYER_WRITES_OK;
}
