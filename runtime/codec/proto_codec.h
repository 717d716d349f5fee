/*
 * proto_codec: protobuf's binary encoding of untrusted messages. protobuf-c 1.4.1 checks neither
 * UTF-8 nor nesting, and cuts a string at an embedded NUL, so the wire bytes are walked first
 * (DESIGN section 10).
 */
#ifndef RUNTIME_CODEC_PROTO_CODEC_H
#define RUNTIME_CODEC_PROTO_CODEC_H

#include "runtime/codec/codec_scope.h"

/*
 * Decodes `bytes` as a message of `type`; unknown fields are skipped.
 *
 * @ret_message  on ERR_OK, lives in scope->arena with all that it points to; `bytes` may go then.
 *               Untouched on error.
 *
 * ERR_INVALID: malformed, or a string that is not UTF-8 or holds a NUL; scope->error names the
 * field; or nested deeper than CODEC_DEPTH_MAX. ERR_TOO_LARGE: over one of the scope's limits.
 */
NODISCARD err proto_decode(const ProtobufCMessageDescriptor *type, struct slice bytes,
                           struct codec_scope *scope, ProtobufCMessage **ret_message);

/* Appends the encoding of `message`. */
void proto_encode(const ProtobufCMessage *message, struct buf *out);

#endif
