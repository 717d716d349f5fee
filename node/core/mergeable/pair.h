/*
 * pair: two members of a mergeable shard under a test, whose disks keep all that they log. What one
 * sends the other gets at once, unless they are cut off from each other.
 */
#ifndef NODE_CORE_MERGEABLE_PAIR_H
#define NODE_CORE_MERGEABLE_PAIR_H

#include "node/core/mergeable/write.h"

#define PAIR        2u
#define PAIR_NOW_MS 1750000000000u

struct pair {
    struct merge_replica *replicas[PAIR];
    uint64_t boots[PAIR], lives, now_ms, bytes;
    size_t message_bytes_max; /* Of the largest that was sent. */
    struct buf logs[PAIR];
    struct merge_key *key;
    bool cut;
    bool mute[PAIR]; /* What it sends is lost. */
    /* A member's message is about to be delivered; NULL: nothing happens between. */
    void (*on_message)(struct pair *pair, uint32_t from, struct slice message);
};

/* Both have started and reported. Free with pair_deinit. */
void pair_init(struct pair *pair);
void pair_deinit(struct pair *pair);
/* The member's next process, with what its log has. `whole`: as of merge_start. */
void pair_start(struct pair *pair, uint32_t at, bool whole);
/* Logs what the member put out, and delivers it. */
void pair_drain(struct pair *pair, uint32_t at);
/* The time of a report passes, and both report. */
void pair_round(struct pair *pair);
/* The member writes one value of pair->key. */
void pair_write(struct pair *pair, uint32_t at);
/* pair->key is the one of that number from now on. */
void pair_name(struct pair *pair, uint32_t number);

#endif
