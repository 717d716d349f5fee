/*
 * bulk: calls of low priority wait here, at the node's door, while enough of them are on their
 * way behind it. What is behind the door is served in the order in which it came, so an urgent
 * call waits for at most `open_max` bulk ones, however many were let in by routers.
 *
 * Only counts and keeps: who makes calls and answers them is service.c.
 */
#ifndef NODE_IO_PROCESS_BULK_H
#define NODE_IO_PROCESS_BULK_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/buf.h"

/* None was answered for so long: what is on its way may wait for something that bulk of other
 * shards need not wait for, so as many again may pass. */
#define BULK_STALLED_MS 100u
#define BULK_BYTES_MAX  (64u * 1024u * 1024u)

struct bulk_call {
    struct bulk_call *next;
    uint64_t id;
    uint32_t method;
    uint32_t shard;
    uint64_t deadline_ms;
    size_t size;
    uint8_t bytes[]; /* The request. */
};

struct bulk {
    uint32_t open_max;
    uint32_t open;    /* Passed, and not answered yet. */
    uint32_t allowed; /* Of those; open_max, and more when they stall. */
    uint64_t answered_ms;
    struct bulk_call *first, *last;
    uint32_t count;
    uint64_t bytes;
};

void bulk_init(struct bulk *bulk, uint32_t open_max);
void bulk_deinit(struct bulk *bulk);
/* True: the next one may pass now, and is counted. */
bool bulk_pass(struct bulk *bulk, uint64_t now_ms);
/* One that passed was answered. */
void bulk_answered(struct bulk *bulk, uint64_t now_ms);
/* Copies a call to the end of the queue. False: BULK_BYTES_MAX are waiting. */
bool bulk_wait(struct bulk *bulk, const struct bulk_call *call, struct slice request);
/* The first in the queue, which passes now: counted, and the caller's to free. NULL: there is none,
 * or it must wait on. */
struct bulk_call *bulk_take(struct bulk *bulk, uint64_t now_ms);

#endif
