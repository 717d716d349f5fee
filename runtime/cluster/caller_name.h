/*
 * caller_name: who acts under `system:<scope>`, for ledgers: the id of an API key, or "cert:<name>"
 * of a native client's certificate. The router puts it behind the encoded request as one more
 * field, which no message of the API has; the node takes it off before it looks at the request. So
 * it is no part of what an op_id stands for, and no caller can say it: of several such fields the
 * last one counts, and the router writes the last one into every request that names a system. Pure.
 */
#ifndef RUNTIME_CLUSTER_CALLER_NAME_H
#define RUNTIME_CLUSTER_CALLER_NAME_H

#include <protobuf-c/protobuf-c.h>

#include "runtime/base/buf.h"
#include "runtime/base/err.h"

#define CALLER_NAME_BYTES_MAX    48u
#define CALLER_NAME_FIELD        2047u /* Its number; no message of the API may use it. */
#define CALLER_NAME_ENCODED_SIZE (3u + CALLER_NAME_BYTES_MAX) /* At most. */

/* 1 to CALLER_NAME_BYTES_MAX letters, digits, '.', '_', '-' and ':'. */
bool caller_name_is_good(struct slice name);

/* Writes the field; a name that is not good is written as an empty one: no name. Returns its size.
 */
size_t caller_name_put(struct slice name, uint8_t out[CALLER_NAME_ENCODED_SIZE]);

/* Takes every such field off a message that lives in an arena. *ret_name is the last one's, inside
 * the message's memory; empty: none. ERR_INVALID: it is no good name; all are taken off
 * nevertheless. */
NODISCARD err caller_name_take(ProtobufCMessage *message, struct slice *ret_name);

#endif
