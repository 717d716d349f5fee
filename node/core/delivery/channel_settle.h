/*
 * channel_settle: what the sender of a transfer does with the receiver's decision: the record
 * leaves the outbox, and what it held goes on or comes back. DESIGN section 7.
 */
#ifndef NODE_CORE_DELIVERY_CHANNEL_SETTLE_H
#define NODE_CORE_DELIVERY_CHANNEL_SETTLE_H

#include "holdfast/internal/v1/channel.pb-c.h"
#include "node/core/handler/handler.h"

/* From here on a reservation's post that came back is told as such. */
#define CAME_BACK_APPLY_VERSION 10u

/* Applies decisions, then moves the watermark over all that are settled. ERR_NEED. */
NODISCARD err channel_settle(struct apply_context *context,
                             const Holdfast__Internal__V1__SettleRequest *request);
/* The rows that channel_settle will touch. */
void channel_settle_footprint(const Holdfast__Internal__V1__SettleRequest *request,
                              struct need *keys);

/* For repairs: one open record leaves the outbox as if it were settled, and nothing else changes.
 * ERR_NEED; ERR_CONFLICT: QUARANTINED, the channel's row cannot be read, or there is none. */
NODISCARD err channel_record_drop(struct apply_context *context, uint32_t destination,
                                  uint64_t seq);

/* APPLIED, REJECTED or CANCELLED: the record can be settled by it. */
bool channel_result_decides(const Holdfast__Internal__V1__ChannelResult *result);

#endif
