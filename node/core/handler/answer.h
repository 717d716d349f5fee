/*
 * answer: what the caller of a mutation gets: the handler's response, and before it the WriteInfo
 * (field 1 of every mutation's response) that only the owner knows. DESIGN section 6.
 */
#ifndef NODE_CORE_HANDLER_ANSWER_H
#define NODE_CORE_HANDLER_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "node/core/entry/entry.h"
#include "runtime/base/buf.h"

struct answer {
    uint32_t method;
    uint32_t shard;
    bool duplicate;            /* The operation had been carried out before. */
    uint64_t version;          /* The entity's, after the first commit. */
    struct dot dot;            /* Of the first commit. */
    struct slice body;         /* The response, without its WriteInfo. Borrowed. */
    uint32_t replicas_fsynced; /* How many hold it on their disks, as far as the owner knows. */
    bool tells_dot;            /* As up to apply version 3: with the dot in place of `as_of`. */
};

void answer_encode(const struct answer *answer, struct buf *out);
/* Appends one field that is a message: fields of a message may stand in any order. */
void answer_put_message(struct buf *out, uint32_t field, const ProtobufCMessage *message);

#endif
