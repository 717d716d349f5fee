/* said_refusal: with what a node or a coordinator refused a call. */
#ifndef ROUTER_RPC_CALL_SAID_REFUSAL_H
#define ROUTER_RPC_CALL_SAID_REFUSAL_H

#include <stdbool.h>

#include "holdfast/internal/v1/refusal.pb-c.h"
#include "runtime/base/arena.h"

/* In the arena. NULL: the bytes are no refusal. */
const Holdfast__Internal__V1__Refusal *said_refusal(struct slice bytes, struct arena *arena);
/* Nothing was done, and another member may do it (retry.h). */
bool said_refusal_passes(const Holdfast__Internal__V1__Refusal *refusal);

#endif
