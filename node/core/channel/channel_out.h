/*
 * channel_out: the source's side of the channel between shards, at apply: a record is opened with
 * the debit, in one entry; settled or refunded only by a decision that is durable at its
 * destination; and the watermark follows. DESIGN section 7, docs/transfers.md.
 */
#ifndef NODE_CORE_CHANNEL_CHANNEL_OUT_H
#define NODE_CORE_CHANNEL_CHANNEL_OUT_H

#include "node/core/channel/channel_row.h"

/* What is to be sent. Everything is borrowed. */
struct channel_send {
    const char *to_player_id;
    Holdfast__V1__Mail *mail;
    struct slice response; /* For the caller, without mail_id. */
    bool mail_return;      /* No caller waits; a refund goes to context->player's mailbox. */
};

/* A record of any kind, to be opened. Everything is borrowed. */
struct channel_record {
    const char *to_player_id;
    const char *player_id; /* Whose operation it belongs to. */
    const char *op_id;
    const char *authority;
    uint32_t method, attempt;
    struct slice response;
    bool mail_return;
    /* One of these. */
    Holdfast__V1__Mail *mail;
    Holdfast__Internal__V1__TxnPrepare *prepare;
    Holdfast__Internal__V1__TxnFinish *finish; /* No caller waits; there is always room. */
    Holdfast__Internal__V1__ReceiptBind *receipt;
    struct slice operation; /* ... that it pays for. */
    /* Of a FINISH: what it will do to goods. May be NULL. */
    Holdfast__Internal__V1__TxnDelta *delta;
};

/* The shard of a player's mailbox. */
uint32_t channel_shard_of(struct arena *arena, const char *player_id, uint32_t shard_count);

/* Before the log: THROTTLED when the outbox is full. Returns ERR_OK or ERR_CONFLICT. */
NODISCARD err channel_check_room(struct arena *arena, struct refusal *refusal,
                                 const struct meta *meta);

/*
 * Opens a record with the next seq; without mail_return the operation is PENDING from here on.
 * ERR_NEED; ERR_CONFLICT: THROTTLED, not to be stored as the outcome.
 */
NODISCARD err channel_open(struct apply_context *context, uint32_t destination,
                           const struct channel_send *send);

/* Opens a record of any kind. Whether anybody waits is for the caller to say. Errors as above. */
NODISCARD err channel_record_open(struct apply_context *context, uint32_t destination,
                                  const struct channel_record *record, uint64_t *ret_seq);
/* The seq that the next record to a destination will get. ERR_NEED. */
NODISCARD err channel_next_seq(struct apply_context *context, uint32_t destination,
                               uint64_t *ret_seq);
/* Asks for an open record to be cancelled. ERR_NEED. */
NODISCARD err channel_record_cancel(struct apply_context *context, uint32_t destination,
                                    uint64_t seq);

/* A seal of a PENDING operation: asks for its record (`pending`: the outcome row's body) to be
 * cancelled; context->channel says which. ERR_NEED. */
NODISCARD err channel_cancel(struct apply_context *context, struct slice pending);

/* What an APPLIED transfer's caller is answered, without WriteInfo. Arena memory. */
struct slice channel_answer_body(struct arena *arena, const Holdfast__Internal__V1__OutboxRow *row,
                                 const char *mail_id);

#endif
