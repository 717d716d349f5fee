/* rpc_error: the body of an error, in each protocol. Private to runtime/rpc. */
#ifndef RUNTIME_RPC_RPC_ERROR_H
#define RUNTIME_RPC_RPC_ERROR_H

#include "runtime/rpc/rpc_call.h"

/* {"code":..., "message":..., "details":[...]}, with Connect's name of the code. Plain JSON has
 * "error": {...} instead of details. */
void rpc_error_json(struct rpc_call *call, const char *code,
                    const Holdfast__V1__ErrorDetail *detail, struct buf *out);
/* Texts that are not UTF-8, such as a caller's header, are escaped: no decoder would take them.
 * Long ones are cut: gRPC has them in headers, of which clients take 8 KiB. */
void rpc_error_clean(struct rpc_call *call, Holdfast__V1__ErrorDetail *detail);
/* google.rpc.Status */
void rpc_error_status(const Holdfast__V1__ErrorDetail *detail, struct buf *out);

#endif
