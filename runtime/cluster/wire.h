/*
 * wire: the status of a response frame between the cluster's processes (router, coordinator ->
 * node; node -> coordinator), and the hint that comes with WIRE_NOT_OWNER. Statuses of the
 * transport itself (FRAME_STATUS_RESERVED and up, runtime/link/frame.h) are not among these.
 * Pure: no I/O.
 */
#ifndef RUNTIME_CLUSTER_WIRE_H
#define RUNTIME_CLUSTER_WIRE_H

#include <stdint.h>

#include "runtime/base/buf.h"

enum wire_status {
    WIRE_OK = 0,          /* Body: the method's response message.                               */
    WIRE_REFUSED = 1,     /* Body: internal.v1.Refusal. Decided; see its `final`.           */
    WIRE_NOT_OWNER = 2,   /* Not carried out here. Body: wire_hint, or empty when unknown.      */
    WIRE_UNKNOWN = 3,     /* May or may not be carried out, now or later: repeat the same call.  */
    WIRE_UNAVAILABLE = 4, /* Not carried out (starting, throttled). Body: Refusal or empty. */
    WIRE_STATUS_END
};

/* Whose key a request of a router is for, in its frame: one number for each key, at every router,
 * so that nodes count what a key holds. Two keys of one number share; 0: no key. */
#define WIRE_ASKER_PLAYERS 1u /* All who bring tokens of players, together. */
/* The number of a caller of that name, 2 or more. */
uint16_t wire_asker(uint64_t name);

#define WIRE_HINT_SIZE 16u

/* Whom the answering node believes to own the shard. */
struct wire_hint {
    uint64_t owner; /* Replica id; 0: unknown. */
    uint64_t epoch; /* Under which it does; 0: unknown. */
};

/* Appends WIRE_HINT_SIZE bytes: owner, epoch, little-endian. */
void wire_hint_encode(const struct wire_hint *hint, struct buf *out);
/* An empty body is an unknown owner. ERR_CORRUPT: any other size than 0 or WIRE_HINT_SIZE;
 * *ret_hint is then untouched. */
NODISCARD err wire_hint_decode(struct slice body, struct wire_hint *ret_hint);

#endif
