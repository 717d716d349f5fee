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

/* `body`: the message of that kind. Uses context->scratch. Does nothing below that version. */
void event_add(struct apply_context *context, Holdfast__V1__EventKind kind, struct slice entity,
               const ProtobufCMessage *body);

#endif
