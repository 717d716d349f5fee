/*
 * transfer: what InventoryService.TransferItems, LedgerService.TransferCurrencies and
 * MailboxService.SendMail share: goods leave a player and go to another player's mailbox, in one
 * entry on the same shard, through the outbox to another. DESIGN section 7, docs/transfers.md.
 */
#ifndef NODE_RPC_TRANSFER_H
#define NODE_RPC_TRANSFER_H

#include "holdfast/v1/ledger.pb-c.h"
#include "node/core/goods/ledger.h"
#include "node/core/handler/handler.h"

/* Borrowed from the request. */
struct transfer {
    const char *player_id;
    const char *to_player_id;
    size_t currency_count;
    Holdfast__V1__CurrencyAmount *const *currencies;
    size_t uid_count;
    char *const *uids;
    const char *text;
    const char *reason;
    uint64_t expires_in_ms;
};

/* What it came to, before it arrives. */
struct transfer_taken {
    struct ledger_change changes[LEDGER_CHANGES_MAX];
    struct item_row rows[LEDGER_ITEMS_MAX];
    Holdfast__V1__Item **items; /* As many as uids. */
    uint64_t ledger_seq;        /* 0: no goods. */
};

/* Before the log. ERR_INVALID or ERR_CONFLICT with context->refusal. */
NODISCARD err transfer_check(struct check_context *context, const struct transfer *transfer);
/* Text, reason and expiry alone. */
NODISCARD err transfer_text_check(struct check_context *context, const struct transfer *transfer);
void transfer_footprint(const struct op *op, const struct transfer *transfer, struct need *keys);

/* Takes the goods from context->player, with a ledger entry. ERR_NEED, ERR_CONFLICT, ERR_INVALID.
 */
NODISCARD err transfer_take(struct apply_context *context, const struct transfer *transfer,
                            struct transfer_taken *ret_taken);
/* Sends them. On this shard *ret_mail_id is set and the operation is done; to another, it is
 * PENDING, and `response` is what its caller will be told, with the mail's id. */
NODISCARD err transfer_send(struct apply_context *context, const struct transfer *transfer,
                            const struct transfer_taken *taken, const ProtobufCMessage *response,
                            char **ret_mail_id);

#endif
