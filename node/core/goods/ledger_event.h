/*
 * ledger_event: what an event of a ledger's entry tells. Its row only says which entry it is
 * (node/core/handler/event_row.h); the entry's row has the rest.
 */
#ifndef NODE_CORE_GOODS_LEDGER_EVENT_H
#define NODE_CORE_GOODS_LEDGER_EVENT_H

#include "holdfast/v1/events.pb-c.h"
#include "node/core/handler/handler.h"

enum ledger_event_result {
    LEDGER_EVENT_DONE,
    LEDGER_EVENT_NEED,       /* The row is not in memory, and is noted in context->need. */
    LEDGER_EVENT_LOST,       /* A repair has put another entry in that one's place. */
    LEDGER_EVENT_UNREADABLE, /* The entry is damaged... */
    LEDGER_EVENT_OF_NONE     /* ... or the event is: there is no such entry of its dot. */
};

/* Completes `event`, as event_tell made it, from the entry's row; texts in the arena. */
enum ledger_event_result ledger_event_complete(struct read_context *context,
                                               Holdfast__V1__Event *event);

#endif
