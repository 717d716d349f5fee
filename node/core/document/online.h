/*
 * online: the players of one shard who have a presence, by the time at which it was set last: for
 * lists of who is online. It follows the records of the replica (merge_follower), and holds as many
 * players as the shard has presences. Who lives is judged when it is read, like by GetPresence.
 * Pure.
 */
#ifndef NODE_CORE_DOCUMENT_ONLINE_H
#define NODE_CORE_DOCUMENT_ONLINE_H

#include "holdfast/internal/v1/node.pb-c.h"
#include "node/core/document/living.h"
#include "node/core/document/presence.h"

/* Of a page of the list, and one more that says that there are more. */
#define ONLINE_ROWS_MAX 1001u
/* Rows that one question looks at; those of dead servers may be in the way. */
#define ONLINE_LOOKS_MAX 8192u

struct online_player;

struct online_slot {
    uint64_t at; /* Of the player. */
    struct online_player *player;
};

/* A zeroed one is valid and empty. */
struct online {
    uint32_t count, capacity;
    struct online_slot *slots; /* The earliest comes first; at one time the last player. */
};

/* When the store is gone, or is followed no more. */
void online_deinit(struct online *online);
/* Begins with the presences that the store has, and follows it; once, before anything else. */
void online_begin(struct online *online, struct merge_store *store);
/* How many have a connection that is shown at `now_ms`. `hides` says whom an erasure hides; NULL:
 * it hides no player. It walks over all. */
struct online_filter {
    const struct living *living; /* NULL: all game servers live. */
    uint64_t now_ms;
    bool (*hides)(void *user, struct slice entity);
    void *user;
};
uint64_t online_count(const struct online *online, const struct online_filter *filter);
/* CHECKs orders and counts. For tests: it walks all. */
void online_check(const struct online *online);

/* ---- pages ---- */

/* A place in the order of lists: the latest comes first, at one time by entity. */
struct online_place {
    uint64_t at;         /* Hybrid time. */
    struct slice entity; /* Empty: before all. */
};
/* One shard that is asked. */
struct online_part {
    const struct online *online;
    const struct merge_replica *replica;
    uint32_t next, end; /* The page's own: places of slots. */
};
struct online_ask {
    struct online_place behind;
    bool upwards; /* The opposite order, and only players who were set again since they came online.
                   */
    uint32_t limit;
    const struct online_filter *filter;
    struct arena *arena; /* Rows are made in it. */
};
/* Appends rows of these parts, in order, and says how far it came. The response's `rows` has room
 * for `limit`. */
void online_page(const struct online_ask *ask, struct online_part *parts, uint32_t count,
                 Holdfast__Internal__V1__ListNodeOnlineResponse *response);

#endif
