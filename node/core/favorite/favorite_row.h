/*
 * favorite_row: the rows of edges from players to targets, and the keys of those of counters
 * (node/core/counter/counter_row.h), which are alike. An edge has a row of its own; while it
 * stands, one in its player's list and one with its target; once it is gone, one in the list of
 * what is gone. All keys name the collection by its number. Values that are no such row are
 * ERR_CORRUPT.
 */
#ifndef NODE_CORE_FAVORITE_FAVORITE_ROW_H
#define NODE_CORE_FAVORITE_FAVORITE_ROW_H

#include "node/core/rows/rows.h"

#define FAVORITE_DAMAGE  "an edge of the player to a target cannot be read"
#define FAVORITES_DAMAGE "the count of the player's edges in a collection cannot be read"
#define FAVORED_DAMAGE   "the list of the player's edges cannot be read"
#define FAVORER_DAMAGE   "who favorited a target cannot be read"
#define PARTIAL_DAMAGE   "how many edges lead to a target cannot be read"
#define TARGET_ID_MAX    128u

/* FlagReason of favorites.proto: why an edge waits for a review. */
enum edge_flag { FLAG_NONE, FLAG_ACCOUNT_AGE, FLAG_VELOCITY, FLAG_MODERATION, FLAG_REJECTED };

/* TABLE_FAVORITE. `ver` 0: there is no row. */
struct favorite_row {
    bool favorited;
    uint64_t ver;
    uint64_t at_ms; /* Since when it is so. */
    /* enum edge_flag. Of an edge that stands: why it waits for a review; 0: it counts. Of one that
     * is gone: why it is flagged if it is made again; 0: rules decide. */
    uint8_t flag;
    uint64_t flagged_at_ms; /* Of one that stands and is flagged: since when it waits. */
};
/* Whether counts, hours and top lists have the edge in them. */
static inline bool favorite_edge_counts(const struct favorite_row *row)
{
    return row->favorited && row->flag == 0;
}
void favorite_row_encode(const struct favorite_row *row, struct buf *out);
NODISCARD err favorite_row_decode(struct slice value, struct favorite_row *ret_row);

/* TABLE_FAVORITES, of one player and collection; of a counter `edges` are the targets to which the
 * player added. */
struct favorites_row {
    uint32_t edges;
    uint32_t gone;    /* Edges that are gone, and remembered. */
    uint32_t flagged; /* Of the edges, those that wait for a review. */
};
void favorites_row_encode(const struct favorites_row *row, struct buf *out);
NODISCARD err favorites_row_decode(struct slice value, struct favorites_row *ret_row);

/* What the keys of these tables name; texts point into the key. */
struct favorite_key {
    struct slice entity;
    uint64_t collection;
    char part;      /* Of TABLE_FAVORED. */
    uint64_t at_ms; /* Of TABLE_FAVORED. */
    struct slice target;
};
/* Whether it could be a target's id. */
bool target_is_sound(struct slice target);
/* TABLE_REVIEW: an edge that stands and is flagged, by its key; why, and since when it stands, by
 * its value. */
#define REVIEW_DAMAGE "why an edge waits for a review cannot be read"
struct review_row {
    struct favorite_key edge; /* `at_ms`: since when it waits. */
    uint8_t flag;
    uint64_t made_at_ms;
};
void review_key(struct row_key *key, const struct favorite_key *edge, uint64_t flagged_at_ms);
NODISCARD err review_key_parse(struct slice key, struct favorite_key *ret_edge);
void review_row_encode(const struct favorite_row *edge, struct buf *out);
NODISCARD err review_row_decode(struct slice key, struct slice value, struct review_row *ret_row);
/* Of TABLE_FAVORITE, TABLE_FAVORITES, TABLE_FAVORED, TABLE_FAVORER, TABLE_PARTIAL, TABLE_ADDED or
 * TABLE_ADDER. */
NODISCARD err favorite_key_parse(struct slice key, struct favorite_key *ret_key);

/* TABLE_FAVORED: the edge's `ver`. */
void favored_row_encode(uint64_t ver, struct buf *out);
NODISCARD err favored_row_decode(struct slice key, struct slice value, struct favorite_key *ret_key,
                                 uint64_t *ret_ver);
/* TABLE_FAVORER: since when, and whether it is flagged: all of the edge but its `ver`. */
void favorer_row_encode(const struct favorite_row *edge, struct buf *out);
NODISCARD err favorer_row_read(struct slice key, struct slice value, struct favorite_key *ret_key,
                               struct favorite_row *ret_edge);
/* Since when alone. */
NODISCARD err favorer_row_decode(struct slice key, struct slice value, struct favorite_key *ret_key,
                                 uint64_t *ret_at_ms);

#endif
