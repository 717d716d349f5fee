/*
 * pull: anti-entropy. A replica that lacks dots of a peer walks over the records of those dots, or
 * over all records where the peer no longer knows which, and joins the peer's clock, as it was at
 * the first chunk, when the last one is stored. Each request has the asker's clock and the key up
 * to which it has come: the peer keeps the list of what the asker lacks, and makes it again where a
 * request is not the next one.
 */
#ifndef NODE_CORE_MERGEABLE_PULL_H
#define NODE_CORE_MERGEABLE_PULL_H

#include "node/core/mergeable/message.h"

/* Records of one chunk end after so many bytes, beside chunk_records_max. */
#define MERGE_CHUNK_BYTES_MAX (256u * 1024u)
/* Dots that one record of a log or message may come with. */
#define MERGE_CHUNK_DOTS_MAX (1u << 20)
/* Dots that are told with one record. The clock that the asker joins at the end has the others. */
#define MERGE_ITEM_DOTS_MAX 4096u

/* Begins one from a peer that has something to give, if none goes on. */
void merge_pull_begin(struct merge_replica *replica, struct merge_peer *peer, uint64_t now_ms);
/* Asks again for what got no answer, while the peer is heard, and forgets what no peer goes on
 * with. A walk keeps its place for as long as the peer's process lives. */
void merge_pull_tick(struct merge_replica *replica, uint64_t now_ms);

/* A part of that peer's answer has come. */
void merge_pull_moves(struct merge_replica *replica, uint64_t member, uint64_t now_ms);

/* A peer asks. ERR_CORRUPT: malformed. ERR_STALE_EPOCH: meant for an earlier process. */
NODISCARD err merge_pull_serve(struct merge_replica *replica, const struct merge_head *head,
                               struct reader *reader, uint64_t now_ms);
/* Asks for the chunk behind the key up to which the pull has come. */
void merge_pull_ask(struct merge_replica *replica, struct merge_peer *peer);

#endif
