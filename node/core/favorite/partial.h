/*
 * partial: how many edges of this shard lead to a target, or how much its players added to it in a
 * counter (node/core/counter), and since which hours; and the note, for
 * the target's home, that this changed. The home of a target is the shard that adds up what all
 * shards say of it (node/core/top). Values that are no such row are ERR_CORRUPT.
 */
#ifndef NODE_CORE_FAVORITE_PARTIAL_H
#define NODE_CORE_FAVORITE_PARTIAL_H

#include "node/core/favorite/favorite_row.h"
#include "node/core/favorite/partial_row.h"
#include "node/core/handler/handler.h"

/* Since which apply version partials know their hours and are noted for their homes. */
#define TOP_APPLY_VERSION 7u

/* The most counts that one entry changes: their homes get them together, in one part of an answer.
 */
#define ENTRY_COUNTS_MAX 16u
/* Since which apply version an entry may change more than one count of a home. */
#define ENTRY_COUNTS_APPLY_VERSION 9u

/* TABLE_CHANGED; and, where the count is 0, TABLE_EMPTIED. All of it stands in the key, and texts
 * point into that; the value is this byte. */
#define CHANGED_ROW_VALUE 1u
struct changed_row {
    uint32_t home;
    struct source_dot dot;
    uint64_t collection;
    struct slice target;
};
void changed_key(struct row_key *key, const struct changed_row *row);
void emptied_key(struct row_key *key, const struct changed_row *row);
/* Behind all that is noted for a home up to that dot. */
void changed_key_after(struct row_key *key, uint32_t home, struct source_dot dot);
NODISCARD err changed_row_decode(struct slice key, struct slice value, struct changed_row *ret_row);
/* The key alone, of either table. */
NODISCARD err changed_key_parse(struct slice key, struct changed_row *ret_row);

/* TABLE_NEWEST, of a home: no note for it has a higher dot. So that a home for which nothing has
 * changed costs no look at a range: of those, memory keeps only a few apart (state_row.h). */
void newest_row_encode(struct source_dot dot, struct buf *out);
NODISCARD err newest_row_decode(struct slice key, struct slice value, struct source_dot *ret_dot);
/* Zero if there is none. ERR_NEED; ERR_CORRUPT. */
NODISCARD err newest_find(struct state *state, uint32_t home, struct need *need,
                          struct source_dot *ret_dot);

/* The most that one shard may say of a target, so that what all say comes to at most 2^63 - 1. */
uint64_t partial_max(uint32_t shard_count);
/* The shard that adds up what all shards say of a target. */
uint32_t target_home(uint64_t collection, struct slice target, uint32_t shard_count);

/* All zero if there is none. ERR_NEED; ERR_CORRUPT: the row cannot be read. */
NODISCARD err partial_find(struct state *state, const struct favorite_key *edge, struct need *need,
                           struct partial_row *ret_row);
/* As changed by the entry that is applied, for what the edge's entity does: the home is told, and a
 * rebuild that has counted the edge follows (recount_row.h). Without an entity: as it was computed.
 * ERR_NEED: nothing was stored. */
NODISCARD err partial_store(struct apply_context *context, const struct favorite_key *edge,
                            struct partial_row *row);
/* Where the count itself cannot be read, for what the edge's entity does: a rebuild alone follows.
 * ERR_NEED. */
NODISCARD err partial_follow(struct apply_context *context, const struct favorite_key *edge,
                             const struct partial_row *before, const struct partial_row *after);

/* ---- forgetting ---- */
/* The homes with targets that are without edges, and since when the first of them is: at most as
 * many as there is room for, of the first EMPTIED_LOOK_MAX targets. ERR_NEED. */
#define EMPTIED_LOOK_MAX 1024u
struct emptied_home {
    uint32_t home;
    struct source_dot first;
};
NODISCARD err partials_emptied(struct read_context *context, struct emptied_home *ret_homes,
                               uint32_t room, uint32_t *ret_count);
/* Removes what is kept of targets that are without edges since `upto` or before, which their home
 * has logged: at most `limit`. ERR_NEED. */
NODISCARD err partials_forget(struct apply_context *context, uint32_t home, struct source_dot upto,
                              uint32_t limit, uint32_t *ret_forgotten);

#endif
