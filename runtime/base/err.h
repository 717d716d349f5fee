/*
 * err: every error that crosses a module border inside a process, and what the caller may do
 * about it. Errors that cross the public API are holdfast.v1.ErrorCode (idl/), not these.
 */
#ifndef RUNTIME_BASE_ERR_H
#define RUNTIME_BASE_ERR_H

/* What a caller may do. RETRY_UNKNOWN_OUTCOME: the work may or may not have been done, and
 * may still be done later; only repeating the same idempotent call can tell. */
enum retry { RETRY_NEVER, RETRY_SAME, RETRY_OTHER_NODE, RETRY_UNKNOWN_OUTCOME };

/* clang-format off */
/*    code               retry                  text                                       */
#define ERR_TABLE(X)                                                                         \
    X(ERR_NO_MEMORY,     RETRY_SAME,            "out of memory")                             \
    X(ERR_INVALID,       RETRY_NEVER,           "invalid argument")                          \
    X(ERR_TOO_LARGE,     RETRY_NEVER,           "over a size limit")                         \
    X(ERR_CORRUPT,       RETRY_NEVER,           "checksum or format does not match")         \
    X(ERR_NOT_FOUND,     RETRY_NEVER,           "not found")                                 \
    X(ERR_EXISTS,        RETRY_NEVER,           "exists already")                            \
    X(ERR_CONFLICT,      RETRY_NEVER,           "a compared value differs")                  \
    X(ERR_TOO_NEW,       RETRY_NEVER,           "written by a newer version of this program") \
    X(ERR_PERMISSION,    RETRY_NEVER,           "not permitted")                             \
    X(ERR_IO,            RETRY_NEVER,           "input or output failed")                    \
    X(ERR_FULL,          RETRY_SAME,            "a bounded queue is full")                   \
    X(ERR_NEED,          RETRY_SAME,            "rows must be loaded first")                 \
    X(ERR_CLOSED,        RETRY_SAME,            "closed before the call was sent")           \
    X(ERR_UNAVAILABLE,   RETRY_SAME,            "not reachable; the call was not carried out") \
    X(ERR_NOT_OWNER,     RETRY_OTHER_NODE,      "this node does not own the shard")          \
    X(ERR_STALE_EPOCH,   RETRY_OTHER_NODE,      "a newer epoch exists")                      \
    X(ERR_CANCELLED,     RETRY_UNKNOWN_OUTCOME, "cancelled; outcome unknown")                \
    X(ERR_TIMEOUT,       RETRY_UNKNOWN_OUTCOME, "no answer in time; outcome unknown")        \
    X(ERR_DISCONNECTED,  RETRY_UNKNOWN_OUTCOME, "connection lost after sending; outcome unknown")
/* clang-format on */

#define ERR_ENUM(code, retry, text) code,
typedef enum err { ERR_OK, ERR_TABLE(ERR_ENUM) ERR_COUNT } err;
#undef ERR_ENUM

#define NODISCARD __attribute__((warn_unused_result))

/* Static text, never NULL. */
const char *err_text(err e);
/* The code's own name ("ERR_TIMEOUT"), for logs and tests. */
const char *err_name(err e);
enum retry err_retry(err e);

#endif
