/*
 * record_repair: a record of the outbox that cannot be read, made again from what the sender's
 * other rows say of it and from what a person states, so that its goods are neither lost nor paid
 * twice.
 *
 * Whatever it was, only its receiver knows whether it was applied. So the record that is made asks
 * for itself to be cancelled: the receiver tells what it has decided, or decides that it never
 * applies it, and the sender settles by that as ever (channel_settle.h). What was to be sent need
 * not be known for this, only what the sender gets back.
 *
 * - MAIL: the ledger entry of the operation says what was taken; or a person does, or gives it up.
 * - PREPARE: the transaction's row says all that is needed.
 * - RECEIPT: nothing was taken. The record goes, and with it the operation's PENDING outcome: its
 *   caller's next try is a first one, and finds the receipt bound to itself if it was bound.
 * - FINISH: says again how the transaction was decided, in a new record: to learn it twice does
 *   nothing. Its outcome says how; a conflict leaves none, and others are pruned: then a person
 *   does.
 * - RETURNED_MAIL: no row knows what it was; a person states it, or gives it up.
 */
#ifndef NODE_CORE_REPAIR_RECORD_REPAIR_H
#define NODE_CORE_REPAIR_RECORD_REPAIR_H

#include "node/core/repair/record_find.h"
#include "node/core/rows/rows.h"

#define RECORD_CHANNEL_LIMIT "of a channel whose own row (table c) can be read: repair that first"

/* Apply version from which a person may state how a transaction was decided. */
#define DECISION_STATED_APPLY_VERSION 10u

struct record_repair {
    uint32_t other; /* The channel's other shard, and the record: of the row's key. */
    uint64_t seq;
    const channel_record_told *stated; /* NULL: nothing. */
    bool give_up;
    const char *reason;
    channel_record_told *told; /* Filled. */
    bool dropped;              /* Set: no row stands in its place. */
};

/* A key of TABLE_OUTBOX or TABLE_INBOX as row_key_outbox makes it. False: it is none. */
NODISCARD bool record_key_parse(const struct row_key *key, uint32_t *ret_other, uint64_t *ret_seq);

/* What a person states of goods: before the log, and again at apply. ERR_INVALID: refused. */
NODISCARD err record_goods_check(struct arena *arena, struct refusal *refusal,
                                 const struct policy *policy, const channel_record_told *stated);
/* ERR_NEED; ERR_CONFLICT, ERR_INVALID: refused. */
NODISCARD err record_repair(struct apply_context *context, struct record_repair *repair);

/* decision_repair: the same of a decision in the inbox: other rows of the receiver say what was
 * decided, or a person does. `stated`: what the sender tells of the record. */
NODISCARD err decision_repair(struct apply_context *context, struct record_repair *repair);
/* One that a repair has made, and which may be repaired once more: it can be read. */
bool decision_is_repaired(struct arena *arena, struct slice value);

#endif
