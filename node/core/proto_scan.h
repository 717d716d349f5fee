/*
 * proto_scan: single fields out of protobuf bytes, without decoding the rest: for routing and for
 * reading options on the hot path. Source: protobuf's encoding specification.
 */
#ifndef NODE_CORE_PROTO_SCAN_H
#define NODE_CORE_PROTO_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/buf.h"

/* The last occurrence counts, as in a full decode. False: the field is not there, or the bytes
 * are malformed; the outputs are untouched. */
bool proto_scan_bytes(struct slice message, uint32_t field, struct slice *ret_bytes);
bool proto_scan_varint(struct slice message, uint32_t field, uint64_t *ret_number);

#endif
