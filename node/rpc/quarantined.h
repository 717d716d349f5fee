/* quarantined: a player who is held back, as ListQuarantined and GetQuarantine tell it. */
#ifndef NODE_RPC_QUARANTINED_H
#define NODE_RPC_QUARANTINED_H

#include "holdfast/v1/admin.pb-c.h"
#include "node/core/player/meta.h"
#include "runtime/base/arena.h"

Holdfast__V1__Quarantined *quarantined_message(struct arena *arena, const struct quarantined *held);

#endif
