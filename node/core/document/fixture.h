/* fixture: for tests of calls: two members of one shard, each without a disk, and what they send to
 * each other. Not a part of the node. */
#ifndef NODE_CORE_DOCUMENT_FIXTURE_H
#define NODE_CORE_DOCUMENT_FIXTURE_H

#include "node/core/mergeable/replica.h"

/* A member of shard 1, of members 1 and 2; merge_free it. */
struct merge_replica *fixture_member(uint64_t member);
/* What each has for the other arrives, and what that brings about. */
void fixture_exchange(struct merge_replica *const replicas[2], uint64_t now_ms);

#endif
