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
 *
 * If neither end can be read, the sender's is made first, from the records that have rows of their
 * own: at the sender those that are open; at the receiver those that were decided and that the
 * sender has not told to be settled. All below the lowest open one are settled, and each above it
 * has a row at one of them, so the highest of both is the last that was opened. If none has a row,
 * all are settled: a number that no channel reaches (the time in milliseconds) is then as good as
 * the last one. The receiver's end is made from the sender's, as ever.
 */
#ifndef NODE_CORE_REPAIR_CHANNEL_REPAIR_H
#define NODE_CORE_REPAIR_CHANNEL_REPAIR_H

#include "holdfast/v1/admin.pb-c.h"
#include "node/core/channel/channel_row.h"
#include "node/core/handler/handler.h"
#include "node/core/repair/record_find.h"
#include "node/core/rows/rows.h"

#define CHANNEL_REPAIR_VERSION  4u /* Apply version from which replicas know this repair. */
#define CHANNEL_REPAIR_SEQ_MAX  (UINT64_MAX / 4)
#define CHANNEL_REPAIR_SPAN_MAX CHANNEL_SPAN_MAX

/* A key of TABLE_CHANNEL as row_key_channel makes it. False: it is none. */
NODISCARD bool channel_key_parse(const struct row_key *key, bool *ret_outgoing,
                                 uint32_t *ret_shard);
/* `other` can be what the channel's other shard knows; NULL is not. The next function asks for it.
 */
NODISCARD bool channel_repair_sound(const struct row_key *key,
                                    const Holdfast__V1__ChannelEnd *other);
/* The lowest and the highest record of a channel that has a row of its own here (TABLE_OUTBOX if
 * `outgoing`, else TABLE_INBOX), readable or not; 0: none has. `look->seq` is not used. ERR_NEED.
 */
NODISCARD err channel_rows_span(const struct record_look *look, bool outgoing, uint64_t *ret_lowest,
                                uint64_t *ret_highest);
/* Makes the row again. *ret_now: what it says. ERR_NEED: rows are missing, and noted. */
NODISCARD err channel_repair(struct apply_context *context, const struct row_key *key,
                             const Holdfast__V1__ChannelEnd *other,
                             Holdfast__V1__ChannelEnd *ret_now);

#endif
