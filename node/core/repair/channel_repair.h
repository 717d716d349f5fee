/*
 * channel_repair: a channel's row that cannot be read, made again from what the other shard knows
 * and from the records that are still open here, so that nothing is lost or decided twice. While
 * the row cannot be read, nothing of the channel is settled here, and nothing is decided.
 *
 * To another shard (last_seq, watermark): the receiver's watermark was told by this shard, so all
 * up to it is settled. Above what the receiver decided nothing was settled, so the records opened
 * since stand in the outbox without a gap: the last of them is the last that was opened.
 *
 * From another shard (decided, watermark): the sender's watermark is at or above the one that was
 * lost, and what it settled is never asked about again, but by late copies, which are told so. It
 * opened no more than its last_seq, so nothing above was decided.
 */
#ifndef NODE_CORE_REPAIR_CHANNEL_REPAIR_H
#define NODE_CORE_REPAIR_CHANNEL_REPAIR_H

#include "holdfast/v1/admin.pb-c.h"
#include "node/core/handler/handler.h"
#include "node/core/rows/rows.h"

#define CHANNEL_REPAIR_VERSION 4u /* Apply version from which replicas know this repair. */

/* A key of TABLE_CHANNEL as row_key_channel makes it. False: it is none. */
NODISCARD bool channel_key_parse(const struct row_key *key, bool *ret_outgoing,
                                 uint32_t *ret_shard);
/* Makes the row again. *ret_now: what it says. ERR_NEED: rows are missing, and noted. */
NODISCARD err channel_repair(struct apply_context *context, const struct row_key *key,
                             const Holdfast__V1__ChannelEnd *other,
                             Holdfast__V1__ChannelEnd *ret_now);

#endif
