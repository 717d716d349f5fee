/*
 * event: writes an event in the transaction of the entry that is applied, so it is there when the
 * change is, and not if the change is refused (docs/events.md). Nothing reads events at apply.
 */
#ifndef NODE_CORE_HANDLER_EVENT_H
#define NODE_CORE_HANDLER_EVENT_H

#include <protobuf-c/protobuf-c.h>

#include "holdfast/v1/events.pb-c.h"
#include "node/core/handler/handler.h"

/* Since which apply version there are events. */
#define EVENT_APPLY_VERSION 7u
/* Since which a shard counts those that it trims, and keeps consumers (node/core/consumer). */
#define CONSUMER_APPLY_VERSION 9u

/* That the ledger of context->player has the entry `seq`, which is written by this entry of the log
 * too, and never again: its row tells the rest (node/core/goods/ledger_event.h). Uses
 * context->scratch. Does nothing below that version. */
void event_add_entry(struct apply_context *context, uint64_t seq);
/* The same of what no row keeps as it was. `body`: the message of that kind. */
void event_add(struct apply_context *context, Holdfast__V1__EventKind kind, struct slice entity,
               const ProtobufCMessage *body);

#endif
