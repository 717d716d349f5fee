/*
 * mailbox: mail as rows: one for each piece, in the order of arrival, and a count for each
 * mailbox. A player's own row is not touched, so a session in progress is not disturbed.
 * DESIGN section 7.
 */
#ifndef NODE_CORE_GOODS_MAILBOX_H
#define NODE_CORE_GOODS_MAILBOX_H

#include "holdfast/v1/mailbox.pb-c.h"
#include "idl/limit.h"
#include "node/core/handler/handler.h"
#include "node/core/rows/rows.h"

#define MAIL_TEXT_BYTES_MAX LIMIT_MAIL_TEXT_BYTES
#define MAIL_ID_TEXT_SIZE   ITEM_UID_TEXT_SIZE

/*
 * Puts mail into an entity's mailbox under a new id, its `mail_id` from now on (arena text).
 * `place`: of the mail in this log entry, for an id that nothing else has.
 * ERR_NEED; ERR_CONFLICT: CAPACITY_FULL above `count_max`, or QUARANTINED if the mailbox's own row
 * cannot be read; nothing was written.
 */
NODISCARD err mailbox_put(struct apply_context *context, struct slice entity,
                          Holdfast__V1__Mail *mail, uint32_t place, uint32_t count_max);
/* Removes one. ERR_NEED; ERR_CONFLICT: NOT_FOUND, or QUARANTINED if it cannot be read. The mail
 * lives in the arena. */
NODISCARD err mailbox_take(struct apply_context *context, struct slice entity, const char *mail_id,
                           Holdfast__V1__Mail **ret_mail);
/* ERR_NEED; ERR_CORRUPT: the mailbox's own row cannot be read. */
NODISCARD err mailbox_count(struct state *state, struct slice entity, struct need *need,
                            uint32_t *ret_count);
/* A mailbox's own row. ERR_CORRUPT. */
NODISCARD err mailbox_row_decode(struct slice row, uint32_t *ret_count);
/* In the open transaction; 0: the row goes. */
void mailbox_count_store(struct apply_context *context, struct slice entity, uint32_t count);
#define MAIL_DAMAGE    "a piece of mail cannot be read"
#define MAILBOX_DAMAGE "the count of the player's mail cannot be read"
/* A row's value, in the arena. NULL: it cannot be read. */
Holdfast__V1__Mail *mail_decode(struct arena *arena, struct slice value);
/* Its counts are within what a ledger entry holds, its ids are ids. */
bool mail_is_sound(const Holdfast__V1__Mail *mail);

#endif
