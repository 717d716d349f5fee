/*
 * rpc_status: the one map from holdfast.v1.ErrorCode to Connect codes, gRPC statuses and HTTP
 * statuses. idl/holdfast/v1/error.proto states the gRPC status in each code's comment; HTTP
 * statuses follow the Connect protocol's table (connectrpc.com/docs/protocol), with one exception:
 * what is too large is 413, which no HTTP client sends again, and not 429, which some do.
 */
#ifndef RUNTIME_RPC_RPC_STATUS_H
#define RUNTIME_RPC_RPC_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/v1/error.pb-c.h"

struct rpc_status {
    uint16_t http;       /* For Connect unary. */
    uint8_t grpc;        /* google.rpc.Code.   */
    const char *connect; /* "failed_precondition" */
};

/* Codes outside the table, as of newer nodes, are UNSPECIFIED: unknown. */
const struct rpc_status *rpc_status_get(Holdfast__V1__ErrorCode code);
/* Of a REST answer: as above, but 409 where the state of things refused the request, and 412 where
 * the version did that it named by If-Match. */
unsigned rpc_status_rest(Holdfast__V1__ErrorCode code, bool has_if_match);

#endif
