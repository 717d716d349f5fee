/*
 * shard_snapshot: a shard's rows at one vector, from a replica whose log no longer reaches back to
 * another that is behind. docs/membership.md has the protocol; DESIGN section 4, Catch-up.
 *
 * A source hands out parts of one view of its database, one at a time, as they are pulled and no
 * faster than its limit. A target pulls, checks the chain, has the rows put aside, and asks for
 * the installation at the end. Either may stop at any time: the target begins again.
 */
#ifndef NODE_CORE_SHARD_SHARD_SNAPSHOT_H
#define NODE_CORE_SHARD_SHARD_SNAPSHOT_H

#include "node/core/player/meta.h"
#include "node/core/replication/rep_message.h"
#include "node/core/rows/state.h"

/* What a step asks of its shell; all of it may be set at once. Emptied by clear. */
struct snapshot_actions {
    bool close; /* Source: release the view, if there is one. Before `read`. */
    bool read;  /* Source: SHARD_SNAPSHOT_PAGE with rows above `after`, about bytes_max of them; */
    bool fresh; /* ... of a view taken now, with its meta row. */
    struct buf after;
    uint32_t bytes_max;
    bool drop; /* Target: forget what was put aside. Before `store`; without it, on a full disk too,
                  and then SHARD_SNAPSHOT_DROPPED. */
    bool store;      /* Target: put `rows` aside, then SHARD_SNAPSHOT_STORED. */
    struct buf rows; /* snapshot_rows_next reads them. */
    bool install;    /* Target: steps 6 to 9, with `meta_row`. The shard takes no further step. */
    struct buf meta_row;
};
void snapshot_actions_clear(struct snapshot_actions *actions);
void snapshot_actions_deinit(struct snapshot_actions *actions);

/* The shard's own row comes first, before the rows of a snapshot. */
bool snapshot_is_carried_apart(struct slice key);
/* False: there are no more, or (reader->bad) they are malformed. */
bool snapshot_rows_next(struct reader *reader, struct slice *ret_key, struct slice *ret_value);

struct snapshot_source {
    bool open;
    bool viewed; /* The shell holds a view. */
    bool reading;
    bool wanted; /* The next part was asked for. */
    bool ended;  /* The last part was made. */
    uint64_t id;
    uint64_t to;
    uint32_t parts; /* Made so far; `sent` is the last of them. */
    struct buf sent;
    struct hash128 chain_before, chain; /* Without and with it. */
    struct buf after;                   /* Key of its last row. */
    uint64_t index;                     /* Of the view. */
    uint64_t ready_ms;                  /* No page is read earlier. */
    uint64_t pulled_ms;
    uint64_t hold_ms; /* Until then the log keeps what follows `index`. */
};

/* What of earlier attempts, of earlier lives too, may be left aside. */
enum snapshot_leftover {
    LEFTOVER_SOME,    /* It is to be dropped: from the first step on, and whenever it failed. */
    LEFTOVER_DROPPED, /* The shell is at it. */
    LEFTOVER_NONE     /* But for what an attempt puts aside that goes on. */
};

struct snapshot_target {
    bool active;
    bool storing;
    bool complete; /* The part being stored is the last. */
    uint64_t from;
    uint64_t id;   /* 0: none was opened for us yet. */
    uint32_t part; /* Wanted next, or being stored. */
    struct hash128 chain;
    uint64_t index; /* The snapshot's. */
    struct hash128 hash;
    struct buf meta_row;
    uint64_t asked_ms;
    uint64_t heard_ms;
    uint64_t needed_ms; /* When a snapshot was last called for. */
};

struct snapshot_stats {
    uint64_t given;     /* Views opened for another replica. */
    uint64_t parts;     /* Sent, repeats included. */
    uint64_t taken;     /* Snapshots installed, or about to be. */
    uint64_t abandoned; /* Begun and given up. */
    uint64_t dropped;   /* Rows and log gone, since the replica was removed. */
};

#endif
