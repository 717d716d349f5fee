/*
 * erasure_row: how far a player is erased from favourites and counters (docs/erasure.md), and what
 * that means for those who read its edges and additions, or write them. What carries an erasure
 * out is node/core/erasure. Values that are no such row are ERR_CORRUPT.
 */
#ifndef NODE_CORE_FAVORITE_ERASURE_ROW_H
#define NODE_CORE_FAVORITE_ERASURE_ROW_H

#include "holdfast/v1/erasure.pb-c.h"
#include "node/core/handler/handler.h"
#include "node/core/rows/rows.h"

/* Since which apply version players can be erased. */
#define ERASURE_APPLY_VERSION 9u
#define ERASURE_DAMAGE        "how far the player is erased cannot be read"

#define ERASURE_STATE(name) HOLDFAST__V1__ERASURE_STATE__ERASURE_STATE_##name

/* TABLE_ERASURE, of one player. It stays when the erasure is over, so that numbers rise. */
struct erasure_row {
    uint64_t number; /* 0: there is no row. */
    Holdfast__V1__ErasureState state;
    uint64_t erased_at_ms, purge_at_ms;
    uint64_t ended_at_ms; /* PURGED and RESTORED alone. */
    uint64_t due_ms;      /* When its next step is due, by its timer. 0: none is. */
    uint64_t rows_done;
    /* The last row that this state has dealt with: a key of TABLE_FAVORED or TABLE_ADDED, or what
     * all of the player's begin with. Empty: none yet. Borrowed as the value is. */
    struct slice cursor;
};
void erasure_row_encode(const struct erasure_row *row, struct buf *out);
NODISCARD err erasure_row_decode(struct slice key, struct slice value, struct erasure_row *ret_row);

/* All zero if there is none. The cursor is borrowed until the next put or evict. ERR_NEED;
 * ERR_CORRUPT. */
NODISCARD err erasure_find(struct state *state, struct slice entity, struct need *need,
                           struct erasure_row *ret_row);
/* Whether the player's edges and additions are told to no reader. */
bool erasure_hides(const struct erasure_row *row);

/* At apply: whether the operation's player may change edges or add. ERR_NEED; ERR_CONFLICT:
 * refused for the moment, as QUARANTINED, since the player is erased. */
NODISCARD err erasure_admit(struct apply_context *context);
/* A read: whether its player is erased. ERR_NEED; ERR_CONFLICT: the row cannot be read. */
NODISCARD err erasure_read(struct read_context *context, bool *ret_hidden);
/* Whether a list of several players' edges leaves this one out, since it is erased, or may be: the
 * row cannot be read. *result is ERR_NEED where the row is to be loaded, and else as it was. */
bool erasure_leaves_out(struct read_context *context, struct slice entity, err *result);

#endif
