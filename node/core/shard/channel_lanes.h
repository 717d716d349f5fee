/*
 * channel_lanes: what an owner keeps in memory of its outbox: one lane for each destination, with
 * at most one batch on its way. Nothing here is state: a new owner finds it all again in its rows.
 * DESIGN section 7.
 */
#ifndef NODE_CORE_SHARD_CHANNEL_LANES_H
#define NODE_CORE_SHARD_CHANNEL_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/buf.h"

struct channel_lane {
    uint32_t destination;
    uint64_t sent_to;   /* Records up to here are on their way, decided or settled. */
    uint64_t told;      /* The watermark that the destination has logged, as far as is known. */
    uint64_t token;     /* Of the batch on its way; 0: none. */
    uint64_t lost_ms;   /* When that batch counts as lost. */
    uint64_t retry_ms;  /* Nothing leaves before. */
    uint64_t tell_ms;   /* When the watermark leaves alone. */
    uint64_t again_seq; /* The first record that its destination puts off; 0: none. */
    uint64_t held_ms; /* When records are sent again that wait for a repair, here or there; 0: there
                       * are none. */
    uint32_t failures;  /* In a row. */
    uint32_t batch_max; /* Records of the next batch: fewer after one without an answer. */
    uint32_t records;   /* In that batch. */
    bool blocked;       /* Rows are on their way. */
    bool idle;          /* Nothing to do until something happens to the channel. */
    bool telling;       /* ... or until tell_ms: the watermark alone is left. */
    struct buf settle;  /* Of that batch: a SettleRequest that lacks the decisions. */
};

/* Decisions that wait to be logged here, by one entry. */
struct channel_settles {
    struct buf bytes;      /* A SettleRequest. */
    uint32_t items;        /* 0: none. */
    uint64_t due_ms;       /* When they are logged. */
    uint64_t logged_index; /* The newest entry of such, perhaps not applied yet; 0: none. */
};

struct channel_lanes {
    struct channel_lane *list; /* By destination. */
    struct channel_settles settles;
    uint32_t count, capacity;
    uint64_t *woken; /* One bit for each destination: its lane is to be looked at. */
    uint32_t woken_words;
    uint32_t blocked;  /* Lanes that wait for rows. */
    uint32_t scanned;  /* Destinations looked at since this replica serves. */
    bool scan_blocked; /* Rows are on their way. */
    bool wanted;       /* Some lane has something to look at. */
    uint64_t tokens;   /* Given out; never again. */
    uint64_t retried;  /* Records sent again. */
    uint64_t oldest_ms, oldest_due_ms;
};

void channel_lanes_deinit(struct channel_lanes *lanes);
/* Forgets every lane; tokens and counts go on. */
void channel_lanes_clear(struct channel_lanes *lanes);
/* Lanes move when one is added, which is woken. */
struct channel_lane *channel_lanes_get(struct channel_lanes *lanes, uint32_t destination);
/* A token for the lane's batch that was never given out before. */
uint64_t channel_lanes_token(struct channel_lanes *lanes, const struct channel_lane *lane);
/* NULL: no lane waits for this token. */
struct channel_lane *channel_lanes_find_token(struct channel_lanes *lanes, uint64_t token);
/* Something happened to the channel: it is looked at with the next pass. */
void channel_lane_wake(struct channel_lanes *lanes, struct channel_lane *lane);
/* Takes the first that was woken, by destination; NULL: none is left. */
struct channel_lane *channel_lanes_take_woken(struct channel_lanes *lanes);
void channel_lane_set_blocked(struct channel_lanes *lanes, struct channel_lane *lane, bool blocked);
/* Its watermark has moved, and leaves alone at tell_ms; nothing else happened. */
void channel_lane_tell(struct channel_lane *lane, uint64_t tell_ms);
/* The same of every lane that has nothing on its way: watermarks may have moved. */
void channel_lanes_settled(struct channel_lanes *lanes, uint64_t tell_ms);
void channel_settles_clear(struct channel_settles *settles);
/* An entry opened records in several channels: looks at all there may be, as a new owner does. */
void channel_lanes_look_again(struct channel_lanes *lanes);
/* The record again_seq, and what follows it, is sent again at `retry_ms`. */
void channel_lane_again(struct channel_lanes *lanes, struct channel_lane *lane, uint64_t retry_ms);
/* The batch was not carried out, or may not have been: all that is open is sent again, later each
 * time. */
void channel_lane_fail(struct channel_lanes *lanes, struct channel_lane *lane, uint64_t now_ms);
/* Whether an answer to the batch came, whatever it says: the next one may be larger, or is smaller.
 */
void channel_lane_answered(struct channel_lane *lane, bool answered);

/* Walks the lanes, whose destinations are below `shard_count`: CHECKs that they fit together. */
void channel_lanes_check(const struct channel_lanes *lanes, uint32_t shard_count);

#endif
