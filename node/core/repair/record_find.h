/*
 * record_find: what a shard's other rows say of one record of a channel whose own row cannot be
 * read. At its sender: the operation that waits for it, the transaction that it belongs to, the
 * ledger entry that took what it carries. At its receiver: mail that names it, players whom its
 * transaction holds, the receipt that it asked for. Pure; changes nothing.
 */
#ifndef NODE_CORE_REPAIR_RECORD_FIND_H
#define NODE_CORE_REPAIR_RECORD_FIND_H

#include "holdfast/internal/v1/transaction.pb-c.h"
#include "holdfast/v1/admin.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/mailbox.pb-c.h"
#include "node/core/handler/handler.h"
#include "node/core/handler/outcome_row.h"

#define RECORD_KIND(name)     HOLDFAST__V1__RECORD_KIND__RECORD_KIND_##name
#define RECORD_DECISION(name) HOLDFAST__V1__RECORD_DECISION__RECORD_DECISION_##name

typedef Holdfast__V1__ChannelRecord channel_record_told;

/* Where to look. */
struct record_look {
    struct arena *arena;
    struct state *state;
    struct need *need;
    uint32_t shard, other;
    uint64_t seq;
};

/* ---- at the sender: `shard` sends to `other` ---- */

struct record_sender {
    Holdfast__V1__RecordKind kind; /* MAIL, PREPARE, RECEIPT; UNSPECIFIED: no row tells. */
    const char *player_id, *op_id; /* Whose operation; empty: not told. */
    struct slice entity;
    struct op_id id;
    struct outcome_row outcome; /* Of MAIL and RECEIPT: PENDING. */
    struct txn_ref ref;         /* Of PREPARE. */
    Holdfast__Internal__V1__TxnRow *txn;
    /* Of MAIL. */
    bool goods_told;                  /* It is known what it carries: */
    Holdfast__V1__LedgerEntry *entry; /* ... what this entry took; NULL: nothing but a text. */
    Holdfast__V1__Mail *goods;        /* Currencies, items and reason of it. */
};

/* `stated`: player_id and op_id may be empty; they count only if that operation waits for this very
 * record. ERR_NEED. */
NODISCARD err record_sender_find(const struct record_look *look, const channel_record_told *stated,
                                 struct record_sender *ret_found);
/* Fields 3, 4, 7 and 9 to 11 of `told`. */
void record_sender_tell(const struct record_look *look, const struct record_sender *found,
                        channel_record_told *told);

/* ---- at the receiver: `other` sends to `shard` ---- */

struct record_receiver {
    Holdfast__V1__RecordDecision decision; /* UNSPECIFIED: no row tells. */
    const char *mail_id;
    Holdfast__Internal__V1__TxnVote *vote; /* Of a PREPARE that was applied. */
    const char *unreadable;                /* What else cannot be read, and could tell; NULL. */
};

/* `sent`: what the sender tells of it; `kind` is set. ERR_NEED. */
NODISCARD err record_receiver_find(const struct record_look *look, const channel_record_told *sent,
                                   struct record_receiver *ret_found);

/* What the receiver and the sender rely on: ids are ids, counts within their limits, and nothing is
 * missing that this kind of record has. NULL: it is sound; else the field that is not. */
const char *record_sent_unsound(const channel_record_told *sent);

#endif
