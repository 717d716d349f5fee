/*
 * mail_page: a page of a mailbox, for ListMail and for reads that include mail.
 */
#ifndef NODE_CORE_GOODS_MAIL_PAGE_H
#define NODE_CORE_GOODS_MAIL_PAGE_H

#include "holdfast/v1/mailbox.pb-c.h"
#include "node/core/handler/handler.h"

#define MAIL_PAGE_DEFAULT   50u
#define MAIL_PAGE_MAX       100u
#define MAIL_PAGE_BYTES_MAX (1024u * 1024u)

struct mail_page {
    uint32_t size;        /* 1 to MAIL_PAGE_MAX. */
    size_t bytes_max;     /* The page ends with the piece that passes this; its cursor goes on. */
    const uint8_t *after; /* Of ITEM_UID_BYTES: the page begins behind it. NULL: the first page. */
};

/* Fills all of `response` but its `as_of`; texts in the arena. Mail that cannot be read is told by
 * its id. ERR_NEED: the page's rows are noted. ERR_CONFLICT: QUARANTINED, the count of the mail
 * cannot be read. */
NODISCARD err mail_page_read(struct read_context *context, const struct mail_page *page,
                             Holdfast__V1__ListMailResponse *response);

#endif
