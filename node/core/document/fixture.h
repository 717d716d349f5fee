/* fixture: for tests of calls: two members of one shard, each without a disk, and what they send to
 * each other. Not a part of the node. */
#ifndef NODE_CORE_DOCUMENT_FIXTURE_H
#define NODE_CORE_DOCUMENT_FIXTURE_H

#include "node/core/document/methods.h"
#include "node/core/mergeable/replica.h"

/* A member of shard 1, of members 1 and 2; merge_free it. */
struct merge_replica *fixture_member(uint64_t member);
/* What each has for the other arrives, and what that brings about. */
void fixture_exchange(struct merge_replica *const replicas[2], uint64_t now_ms);

/* Both, and what a call at either is told of: the game server 1-10 lives. */
struct pair {
    struct arena arena;
    struct document_rules rules;
    struct living living;
    struct merge_replica *replicas[2];
    bool full, bytes_full, erased;
    uint64_t now_ms;
    struct refusal refusal;      /* Of the last call, */
    struct document_begun begun; /* and what it began. */
};
#define PAIR_BEGINS_MS 1700000000000ull
void pair_init(struct pair *pair);
void pair_deinit(struct pair *pair);
/* For one call. */
struct document_context pair_context(struct pair *pair, int member);
err pair_call(struct pair *pair, int member, uint32_t method, const ProtobufCMessage *request);

#endif
