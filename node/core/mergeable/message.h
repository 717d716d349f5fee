/*
 * message: what replicas of a mergeable shard say to each other. Every message has a head: u8 kind,
 * u64 generation, shard, from, boot, actor, config; then its body.
 *
 *   REPORT  u64 sent_ms, u8 syncing, u64 ready_config, u64 view, u64 now_ms, u64 hash of the
 *           receiver's clock as the sender has it, u64 hash of its own, u8 has clock, clock if the
 *           receiver has another one: what the sender's disk has, as of now_ms
 *   WRITE   u64 actor, u64 counter, u8 wants an answer, key, record with its full context
 *   ACK     u64 actor, u64 counter: the sender has that write on disk
 *   PULL    u64 boot asked, u64 id, u8 full, u8 has after, after key, the asker's clock
 *   CHUNK   u64 boot asking, u64 id, u8 full, u8 last, u8 syncing, the sender's clock, compact
 *           count; for each record: key, record stripped of that very clock, compact count, its
 *           dots (u64, u64)
 *   ASK     u64 id, key: a read of a majority
 *   TELL    u64 id, key, record with its full context
 *   LATER   u64 boot: of a later process of the receiver's member than the one that reported
 */
#ifndef NODE_CORE_MERGEABLE_MESSAGE_H
#define NODE_CORE_MERGEABLE_MESSAGE_H

#include "node/core/mergeable/replica.h"

enum merge_kind {
    MERGE_REPORT = 1,
    MERGE_WRITE,
    MERGE_ACK,
    MERGE_PULL,
    MERGE_CHUNK,
    MERGE_ASK,
    MERGE_TELL,
    MERGE_LATER,
    MERGE_KIND_END
};

struct merge_head {
    enum merge_kind kind;
    uint64_t generation, shard, from, boot, actor, config;
};

/* Begins a message to a peer; the caller appends the body. `after_log`: as of struct merge_message.
 */
struct buf *merge_message_begin(struct merge_replica *replica, enum merge_kind kind, uint64_t to,
                                uint64_t after_log);
/* ERR_CORRUPT: malformed. */
NODISCARD err merge_head_decode(struct reader *reader, struct merge_head *ret_head);

/* The shell sends it now, by its wall clock: a report waits for the disk, and that wait must not
 * look like a clock that is behind. */
void merge_message_stamp(struct buf *message, uint64_t now_ms);

/* A step of a pull: which shard's, of which process of the asker, its number. A PULL asks for it,
 * and a CHUNK answers it. ERR_NOT_FOUND: another message, or a malformed one. */
struct merge_step {
    uint64_t shard, boot, id;
};
NODISCARD err merge_step_decode(struct slice message, struct merge_step *ret_step);

/* The dot of a write, as it stands in messages and in the log. ERR_CORRUPT: actor or counter is 0.
 */
void merge_dot_encode(struct merge_dot dot, struct buf *out);
NODISCARD err merge_dot_decode(struct reader *reader, struct merge_dot *ret_dot);

/* A write, with its record as it is now, to all peers. */
void merge_send_write(struct merge_replica *replica, struct merge_key *key, struct merge_dot dot,
                      bool wants_ack);
/* A question of a majority's read to all members. */
void merge_send_ask(struct merge_replica *replica, const struct merge_key *key, uint64_t id);
/* The record as this replica has it, its context filled; empty when it has none. Free it. */
void merge_record_full(const struct merge_replica *replica, const struct merge_key *key,
                       struct merge_record *ret_record);

#endif
