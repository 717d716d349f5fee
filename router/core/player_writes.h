/*
 * player_writes: how often players write, by the address that they call from and by the device that
 * a header names: a minute's worth at once, then evenly. What one player may change is a rate rule,
 * exact in the log (docs/abuse.md); these bound one household, or one machine with many accounts,
 * at one router. Pure: the time is told.
 */
#ifndef ROUTER_CORE_PLAYER_WRITES_H
#define ROUTER_CORE_PLAYER_WRITES_H

#include <stdbool.h>
#include <stdint.h>

struct player_writes;

struct player_writes *player_writes_new(void);
/* NULL is allowed. */
void player_writes_free(struct player_writes *writes);

struct player_write {
    uint64_t address; /* Stands for the address. */
    uint64_t device;  /* Stands for the device; 0: the caller names none. */
    uint32_t address_per_minute, device_per_minute; /* 0: no limit. */
    uint64_t now_ms;                                /* Of a clock that never goes back. */
};

enum player_writes_told {
    PLAYER_WRITES_OK, /* It counts for both. */
    /* It counts for neither; *ret_retry_after_ms, at most 60 ms too long. */
    PLAYER_WRITES_ADDRESS,
    PLAYER_WRITES_DEVICE
};
enum player_writes_told player_writes_take(struct player_writes *writes,
                                           const struct player_write *write,
                                           uint32_t *ret_retry_after_ms);

#endif
