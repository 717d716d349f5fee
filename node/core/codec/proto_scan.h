/*
 * proto_scan: single fields out of protobuf bytes, without decoding the rest: for routing, for
 * reading options and for the audit's totals on the hot path. Source: protobuf's encoding
 * specification.
 */
#ifndef NODE_CORE_CODEC_PROTO_SCAN_H
#define NODE_CORE_CODEC_PROTO_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/buf.h"

/* The last occurrence counts, as in a full decode. False: the field is not there, or the bytes
 * are malformed; the outputs are untouched. */
bool proto_scan_bytes(struct slice message, uint32_t field, struct slice *ret_bytes);
bool proto_scan_varint(struct slice message, uint32_t field, uint64_t *ret_number);

/* One field after the other, in the order of the bytes. */
struct proto_field {
    uint32_t number;
    bool is_bytes;      /* Of type bytes, string or message; else: */
    bool is_varint;     /* ... or of a fixed size. */
    struct slice bytes; /* is_bytes. */
    uint64_t varint;    /* is_varint. */
};
/* False: there is none left (proto_scan_ended), or the bytes are malformed. */
bool proto_scan_next(struct reader *message, struct proto_field *ret_field);
/* Every field was read, and none was malformed. */
bool proto_scan_ended(const struct reader *message);

#endif
