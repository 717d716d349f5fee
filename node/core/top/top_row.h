/*
 * top_row: the rows of totals, in the home of a target: what each shard's partial was when it was
 * pulled (a share), the sum of those (a tally), where a tally stands in the top lists (a rank), and
 * how far each source has been logged. Values that are no such row are ERR_CORRUPT.
 */
#ifndef NODE_CORE_TOP_TOP_ROW_H
#define NODE_CORE_TOP_TOP_ROW_H

#include "node/core/favorite/partial.h"

#define PULLED_DAMAGE  "how far a shard's counts were pulled cannot be read"
#define CHANGED_DAMAGE "a note that a count changed cannot be read"
#define SHARE_DAMAGE   "what a shard adds to a total cannot be read"
#define TALLY_DAMAGE   "the total of a target cannot be read"
#define RANK_DAMAGE    "a target's place in a top list cannot be read"

/* The lists. Of the first two the present hour counts in full. */
enum top_window { TOP_DAY = 'd', TOP_WEEK = 'w', TOP_ALL = 'a' };

/* What the keys of shares, tallies and ranks name; texts point into the key. */
struct top_key {
    uint64_t collection;
    struct slice target;
    uint32_t source; /* Of a share. */
    char window;     /* Of a rank. */
    uint64_t count;
};
/* Of TABLE_SHARE, TABLE_TALLY or TABLE_RANK. */
NODISCARD err top_key_parse(struct slice key, struct top_key *ret_key);

/* TABLE_PULLED. */
void pulled_row_encode(struct source_dot dot, struct buf *out);
NODISCARD err pulled_row_decode(struct slice key, struct slice value, uint32_t *ret_source,
                                struct source_dot *ret_dot);

/* TABLE_SHARE. */
struct share_row {
    uint64_t count;
    struct hours hours;
};
void share_row_encode(const struct share_row *row, struct buf *out);
NODISCARD err share_row_decode(struct slice value, struct share_row *ret_row);

/* TABLE_TALLY. Under which counts it stands in the lists of a day and of a week: time alone lowers
 * what is counted, so these are never below that; 0: it does not stand there. */
struct tally_row {
    uint64_t count;
    uint64_t day, week;
    struct hours hours;
};
void tally_row_encode(const struct tally_row *row, struct buf *out);
NODISCARD err tally_row_decode(struct slice value, struct tally_row *ret_row);

/* TABLE_RANK: all of it stands in the key. */
void rank_row_encode(struct buf *out);
NODISCARD err rank_row_decode(struct slice key, struct slice value, struct top_key *ret_key);

/* All zero if there is none. ERR_NEED; ERR_CORRUPT. */
NODISCARD err pulled_find(struct state *state, uint32_t source, struct need *need,
                          struct source_dot *ret_dot);
NODISCARD err share_find(struct state *state, const struct top_key *of, struct need *need,
                         struct share_row *ret_row);
NODISCARD err tally_find(struct state *state, const struct top_key *of, struct need *need,
                         struct tally_row *ret_row);

#endif
