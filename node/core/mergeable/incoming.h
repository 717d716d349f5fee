/*
 * incoming: a record with the dots of the writes that it carries, on its way into a replica.
 */
#ifndef NODE_CORE_MERGEABLE_INCOMING_H
#define NODE_CORE_MERGEABLE_INCOMING_H

#include "node/core/mergeable/key.h"
#include "node/core/mergeable/record.h"

struct merge_incoming {
    struct merge_key *key;
    const struct merge_record *record; /* Its context is full. */
    const struct merge_dot *dots;      /* Writes of this record, those that left no cell too. */
    uint32_t dot_count;
};

#endif
