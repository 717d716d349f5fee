#include "runtime/rpc/rpc_status.h"

#include "idl/error_code.h"
#include "runtime/base/check.h"

#define GRPC_FAILED_PRECONDITION 9u

/* clang-format off */
/*    ErrorCode               HTTP gRPC Connect                                               */
#define STATUS_TABLE(X)                                                                        \
    X(UNSPECIFIED,            500,  2, "unknown")                                              \
    X(INVALID_ARGUMENT,       400,  3, "invalid_argument")                                     \
    X(NOT_FOUND,              404,  5, "not_found")                                            \
    X(SESSION_LOCKED,         409, 10, "aborted")                                              \
    X(SESSION_LOST,           400,  9, "failed_precondition")                                  \
    X(VERSION_CONFLICT,       409, 10, "aborted")                                              \
    X(INSUFFICIENT_FUNDS,     400,  9, "failed_precondition")                                  \
    X(ITEM_NOT_HELD,          400,  9, "failed_precondition")                                  \
    X(CAPACITY_FULL,          400,  9, "failed_precondition")                                  \
    X(THROTTLED,              429,  8, "resource_exhausted")                                   \
    X(SCHEMA_TOO_NEW,         400,  9, "failed_precondition")                                  \
    X(QUARANTINED,            400,  9, "failed_precondition")                                  \
    X(OPERATION_ID_MISMATCH,  409,  6, "already_exists")                                       \
    X(OPERATION_EXPIRED,      400,  9, "failed_precondition")                                  \
    X(OPERATION_ABORTED,      409, 10, "aborted")                                              \
    X(TXN_CONFLICT,           409, 10, "aborted")                                              \
    X(VERSION_LOST,           500, 15, "data_loss")                                            \
    X(OUTCOME_UNKNOWN,        500,  2, "unknown")                                              \
    X(UNAVAILABLE,            503, 14, "unavailable")                                          \
    X(UNAUTHENTICATED,        401, 16, "unauthenticated")                                      \
    X(PERMISSION_DENIED,      403,  7, "permission_denied")                                    \
    X(UNIMPLEMENTED,          501, 12, "unimplemented")                                        \
    X(INTERNAL,               500, 13, "internal")                                             \
    X(DEADLINE_EXCEEDED,      504,  4, "deadline_exceeded")                                    \
    X(SERVER_EXPIRED,         400,  9, "failed_precondition")                                  \
    X(ALREADY_REVERSED,       400,  9, "failed_precondition")                                  \
    X(NOT_REVERSIBLE,         400,  9, "failed_precondition")                                  \
    X(RESERVATION_CLOSED,     400,  9, "failed_precondition")                                  \
    X(RESERVATION_EXPIRED,    400,  9, "failed_precondition")                                  \
    X(TOO_LARGE,              413,  8, "resource_exhausted")                                   \
    X(CANCELED,               499,  1, "canceled")                                             \
    X(OUT_OF_RANGE,           400, 11, "out_of_range")

static const struct rpc_status statuses[] = {
#define STATUS_ROW(code, http_status, grpc_status, connect_code) \
    [HOLDFAST__V1__ERROR_CODE__ERROR_CODE_##code] = { http_status, grpc_status, connect_code },
    STATUS_TABLE(STATUS_ROW)
#undef STATUS_ROW
};
/* clang-format on */

const struct rpc_status *rpc_status_get(Holdfast__V1__ErrorCode code)
{
    if ((unsigned)code >= ARRAY_SIZE(statuses) || statuses[code].connect == NULL)
        return &statuses[HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNSPECIFIED];
    return &statuses[code];
}

unsigned rpc_status_rest(Holdfast__V1__ErrorCode code, bool has_if_match)
{
    const struct rpc_status *status = rpc_status_get(code);

    if (code == CODE(VERSION_CONFLICT) && has_if_match)
        return 412;
    return status->grpc == GRPC_FAILED_PRECONDITION ? 409 : status->http;
}
