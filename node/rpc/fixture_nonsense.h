/*
 * fixture_nonsense: rows that can be decoded and hold what no program wrote: texts that are too
 * long, numbers that overflow. What apply makes of them must not stop it. For tests only.
 */
#ifndef NODE_RPC_FIXTURE_NONSENSE_H
#define NODE_RPC_FIXTURE_NONSENSE_H

#include <protobuf-c/protobuf-c.h>

#include "runtime/base/buf.h"

/* Every row has fewer ways than this. */
#define NONSENSE_WAYS_MAX 400u

/* The row with one thing in it changed; each way is another thing. False: that was all of them. */
bool nonsense_make(struct slice key, struct slice row, uint32_t way, struct buf *out);
/* The same of a message, packed. */
bool nonsense_message(const ProtobufCMessageDescriptor *descriptor, struct slice packed,
                      uint32_t way, struct buf *out);

#endif
