/*
 * entry_target: the ledger entry that a request names by the operation that wrote it: to reverse,
 * post or void it. Each is undone or closed at most once: a row beside it says by which entry.
 */
#ifndef NODE_RPC_ENTRY_TARGET_H
#define NODE_RPC_ENTRY_TARGET_H

#include "holdfast/v1/ledger.pb-c.h"
#include "node/core/handler/handler.h"

/* Borrowed from the request. */
struct entry_target {
    const char *op_id;
    uint64_t seq; /* 0: found by the operation's stored outcome. */
    const char *op_id_field, *seq_field;
    /* Without `seq`, and where no stored outcome of this player says which entry it is (what
     * another player's operation wrote here, or an outcome that is kept no more): the newest
     * entries are looked through for the op_id. */
    bool searched;
};
#define ENTRY_SEARCH_MAX           64u
#define ENTRY_SEARCH_APPLY_VERSION 10u

/* Before the log: the id becomes canonical. ERR_INVALID. */
NODISCARD err entry_target_check(struct check_context *context, const char *field, char **op_id);
void entry_target_footprint(const struct op *op, const struct entry_target *target,
                            struct need *keys);
/* The entry, in the arena, and by which entry it was undone or closed (0: by none). ERR_NEED;
 * ERR_CONFLICT: NOT_FOUND, or QUARANTINED. ERR_INVALID: an older entry than those looked through
 * may have that op_id, so the request must say its seq. */
NODISCARD err entry_target_read(struct apply_context *context, const struct entry_target *target,
                                Holdfast__V1__LedgerEntry **ret_entry, uint64_t *ret_undone_by);
/* Any entry of context->player that is there. ERR_NEED; ERR_CONFLICT: QUARANTINED, it cannot be
 * read.
 */
NODISCARD err entry_read(struct apply_context *context, uint64_t seq,
                         Holdfast__V1__LedgerEntry **ret_entry);
/* By which entry that one was undone, closed or refunded; 0: by none. Errors as above. */
NODISCARD err entry_undone_read(struct apply_context *context, uint64_t seq,
                                uint64_t *ret_undone_by);
/* The newest entry of context->player undoes or closes that one. */
void entry_target_mark(struct apply_context *context, uint64_t seq);

#endif
