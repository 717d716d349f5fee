/*
 * read: a record as this member has it, or as a majority has it; at least as far as the caller saw.
 */
#ifndef NODE_CORE_MERGEABLE_READ_H
#define NODE_CORE_MERGEABLE_READ_H

#include "node/core/mergeable/replica.h"
#include "node/core/mergeable/write.h"

/* The record with its context full; empty when there is none. Free it with merge_record_deinit;
 * show it with merge_view_init. ERR_NEED: this member lacks something that the token saw (NOT_YET).
 * ERR_INVALID, ERR_STALE_EPOCH: as of merge_token_open. ERR_UNAVAILABLE: it is taking everything
 * in. */
NODISCARD err merge_read(const struct merge_replica *replica, const struct merge_key *key,
                         struct slice token, struct merge_record *ret_record);
/* Asks the members; the answer comes in merge_out, merged from a majority and stored here.
 * ERR_UNAVAILABLE: syncing, no member, or no majority is in reach. ERR_FULL: too many
 * wait, or too many bytes (merge_pending_full). Others as of merge_read; ERR_NEED comes with the
 * answer: the token saw what no majority has. */
NODISCARD err merge_read_majority(struct merge_replica *replica, uint64_t now_ms,
                                  struct merge_key *key, struct slice token, uint64_t *ret_ticket);
/* Appends the token of what a read showed, `before` that the caller came with (empty: none)
 * included. ERR_FULL: more than MERGE_TOKEN_ENTRIES_MAX actors wrote it lately; then there is none.
 */
NODISCARD err merge_token_of(const struct merge_replica *replica, const struct merge_key *key,
                             const struct merge_record *record, struct slice before,
                             struct buf *out);
/* The same after a write that was taken under `dot`: what its caller came with, and that write. The
 * record as it is now has more, which the caller was not shown. ERR_FULL also: more than
 * MERGE_TOKEN_OWN_MAX writes of the caller's own have not come here. */
NODISCARD err merge_token_written(const struct merge_replica *replica,
                                  const struct merge_write *write,
                                  const struct merge_record *record, struct merge_dot dot,
                                  struct buf *out);

#endif
