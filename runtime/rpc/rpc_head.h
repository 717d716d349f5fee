/*
 * rpc_head: what is asked of the head of any request, whatever it calls, and what of it is kept
 * once the request is with its handler. Private to runtime/rpc.
 */
#ifndef RUNTIME_RPC_RPC_HEAD_H
#define RUNTIME_RPC_RPC_HEAD_H

#include "runtime/rpc/rpc_call.h"

/* Headers that say who asks for what come once, and Host is a name of ours. False: answered with
 * 400 INVALID_ARGUMENT that names the header, or with 403 PERMISSION_DENIED. */
bool rpc_head_check(struct rpc_call *call);
/* Whether `host` ("localhost:7400", "[::1]") is one of the names, comma-separated; "*" is any. */
bool rpc_head_host_is(const char *names, struct slice host);
/* Who calls and what for, as slices into the head. */
void rpc_head_read(struct rpc_call *call);
/* The request is decoded: frees what of the head neither handler nor answer needs. */
void rpc_head_shrink(struct rpc_call *call);

#endif
