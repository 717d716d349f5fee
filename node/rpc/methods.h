/*
 * methods: the handler of each method that a shard carries out, <service>_<name>_handler in the
 * file <service>_<name>.c. Declared from the one table, idl/method.h.
 */
#ifndef NODE_RPC_METHODS_H
#define NODE_RPC_METHODS_H

#include "idl/method.h"
#include "node/core/handler/handler.h"

/* HANDLED_<route>(text): `text` if methods of that route have a handler here, else nothing. */
#define HANDLED_ROUTER(...)
#define HANDLED_STREAM(...)
#define HANDLED_SCATTER(...)
#define HANDLED_GATHER(...)      __VA_ARGS__
#define HANDLED_MUTATION(...)    __VA_ARGS__
#define HANDLED_READ(...)        __VA_ARGS__
#define HANDLED_SHARD(...)       __VA_ARGS__
#define HANDLED_SHARD_WRITE(...) __VA_ARGS__
#define HANDLED_SHARD_VIEW(...)
#define HANDLED_NODE(...)
#define HANDLED_OWNER(...) __VA_ARGS__
#define HANDLED_COORDINATOR(...)

#define HANDLER_EXTERN(number, enumerator, package, service, method, name, route, ...)             \
    HANDLED_##route(extern const struct handler service##_##name##_handler;)
METHOD_TABLE(HANDLER_EXTERN)
#undef HANDLER_EXTERN

#endif
