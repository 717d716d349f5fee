/*
 * new_mail: mail from the system: new goods and a text, into the mailbox of an operation's own
 * player. It has no sender, and does not expire.
 */
#ifndef NODE_RPC_NEW_MAIL_H
#define NODE_RPC_NEW_MAIL_H

#include "holdfast/v1/mailbox.pb-c.h"
#include "node/core/handler/handler.h"

struct new_mail {
    size_t currency_count; /* Of `currencies`; borrowed. */
    Holdfast__V1__CurrencyAmount **currencies;
    size_t item_count; /* Of `items`; borrowed. */
    Holdfast__V1__ItemSpec **items;
    char *text;
    char *reason;
};

struct new_mail_made {
    uint64_t ledger_seq; /* 0: a text alone has no entry. */
    size_t item_count;
    Holdfast__V1__Item **items; /* In the order of the request; of the context's arena. */
    char *mail_id;
};

/* Before the log. ERR_INVALID: *context->refusal says why. Attributes become canonical. */
NODISCARD err new_mail_check(struct check_context *context, const struct new_mail *mail);
void new_mail_footprint(const struct op *op, struct need *keys);
/* ERR_CONFLICT: no room in the mailbox, or for that many places in one operation. */
NODISCARD err new_mail_put(struct apply_context *context, const struct new_mail *mail,
                           struct new_mail_made *ret_made);

#endif
