/*
 * channel_in: the destination's side of the channel between shards, at apply: each record is
 * decided once, here and nowhere else, and the decision is kept in the inbox until the source's
 * watermark has passed it. DESIGN section 7, docs/transfers.md.
 */
#ifndef NODE_CORE_DELIVERY_CHANNEL_IN_H
#define NODE_CORE_DELIVERY_CHANNEL_IN_H

#include "node/core/channel/channel_row.h"

/* A credit that is not sound is logged without what it says, and held: its sender asks again, and
 * what came with it is decided. Before it the whole batch was refused. */
#define CREDIT_HELD_APPLY_VERSION 10u

/* Takes in the watermark, then decides on credits and cancels. ERR_NEED. */
NODISCARD err channel_deliver(struct apply_context *context,
                              const Holdfast__Internal__V1__DeliverRequest *request,
                              Holdfast__Internal__V1__DeliverResponse *response);
/* The rows that channel_deliver will touch. */
void channel_deliver_footprint(const Holdfast__Internal__V1__DeliverRequest *request,
                               struct need *keys);

#endif
