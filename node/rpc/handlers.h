/*
 * handlers: the one table of what a shard does for each method, in .proto order. Handlers are
 * pure: they see a request and the rows, and say what becomes of them. See
 * node/core/handler/handler.h.
 */
#ifndef NODE_RPC_HANDLERS_H
#define NODE_RPC_HANDLERS_H

#include "node/core/handler/handler.h"

/* Static. */
const struct handler_table *node_handlers(void);

#endif
