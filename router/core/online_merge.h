/*
 * online_merge: one page of who is online, of what nodes say of their shards, and where the next
 * one begins. Pure.
 *
 * A list goes down from those who were set last. Who is set again meanwhile goes up, past a reader
 * that has not come to the player yet: so a list of several pages ends with those who were set
 * again since it began, upwards, where they cannot pass the reader.
 */
#ifndef ROUTER_CORE_ONLINE_MERGE_H
#define ROUTER_CORE_ONLINE_MERGE_H

#include "holdfast/internal/v1/node.pb-c.h"
#include "runtime/base/arena.h"
#include "runtime/base/err.h"

#define ONLINE_LIMIT_MAX     1000u
#define ONLINE_LIMIT_DEFAULT 100u
/* Nodes' clocks are within it: the way up begins so long before the list did. */
#define ONLINE_CLOCK_MS 1000

/* Where a page begins. */
struct online_cursor {
    bool upwards;
    int64_t begun_ms; /* By the nodes' clocks; 0: this is the first page. */
    uint64_t at;      /* As in ListNodeOnlineRequest. */
    const char *player_id;
};
/* `text` empty: the first page. In the arena. ERR_INVALID: no cursor of this list. */
NODISCARD err online_cursor_parse(const char *text, struct arena *arena,
                                  struct online_cursor *ret_cursor);
char *online_cursor_print(const struct online_cursor *cursor, struct arena *arena);

struct online_merge {
    struct arena *arena;
    struct online_cursor cursor;
    uint32_t limit;
    const Holdfast__Internal__V1__OnlineRow **rows;
    size_t count, capacity;
    bool more; /* Not all nodes looked to the end: none is missing up to this place. */
    uint64_t at;
    const char *player_id;
    int64_t now_ms; /* The earliest clock. 0: nothing was said. */
    uint64_t players;
    int64_t counted_ms;
};

/* Nodes are asked for one row more than the limit, which may be 0: so the last page is known. */
void online_merge_init(struct online_merge *merge, const struct online_cursor *cursor,
                       uint32_t limit, struct arena *arena);
/* `said` has to outlive the merge. ERR_CORRUPT: it makes no sense; nothing was added. */
NODISCARD err online_merge_add(struct online_merge *merge,
                               const Holdfast__Internal__V1__ListNodeOnlineResponse *said);
/* Leaves the rows of the page, in order. */
enum online_end {
    ONLINE_MORE, /* The next page begins at *ret_next. */
    ONLINE_TURN, /* That was the last one down: the list goes on upwards at *ret_next. */
    ONLINE_END
};
enum online_end online_merge_finish(struct online_merge *merge, struct online_cursor *ret_next);

#endif
