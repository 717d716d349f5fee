/*
 * recount_row: how far a rebuild of counts or totals has come in this shard (docs/rebuild.md). It
 * goes by targets in order, some rows an entry. A target with more rows than an entry looks at is
 * under way for several: what has been counted of it stands here, and each change of an edge that
 * has been counted changes that, too, in the entry of the edge. Values that are no such row are
 * ERR_CORRUPT.
 */
#ifndef NODE_CORE_FAVORITE_RECOUNT_ROW_H
#define NODE_CORE_FAVORITE_RECOUNT_ROW_H

#include "node/core/favorite/favorite_row.h"
#include "node/core/favorite/partial_row.h"
#include "node/core/handler/handler.h"

/* Since which apply version counts are computed again. */
#define RECOUNT_APPLY_VERSION 9u
#define RECOUNT_DAMAGE        "how far a rebuild of counts has come cannot be read"
#define RECOUNT_ID_MAX        64u
#define RECOUNT_KEY_MAX       256u

enum recount_part {
    RECOUNT_COUNTS = 1, /* Partials, from edges and from what was added. */
    RECOUNT_TOTALS,     /* Tallies, from shares. */
    RECOUNT_PLACES      /* Places in top lists: after the totals, in the same rebuild. */
};

/* TABLE_RECOUNT. */
struct recount_row {
    struct slice id; /* Texts point into the row's value. */
    uint64_t step;   /* The next. */
    enum recount_part part;
    bool dry_run, done;
    uint64_t only_number;     /* Of this collection or counter alone; 0: of all. */
    struct slice only_target; /* This target alone; empty: all. */
    uint64_t rows, targets, different, left_alone;
    /* All up to this target have been looked at; or it is under way. Of places: 0 and empty. */
    uint64_t number; /* 0: none yet. */
    struct slice target;
    struct slice place; /* Of RECOUNT_PLACES: the key that was looked at last. */
    bool under_way;
    /* Of the target under way: in which table its rows stand, and which was counted last. */
    char table; /* TABLE_FAVORER, TABLE_ADDER. */
    struct slice entity;
    bool unreadable; /* One of its rows: it is left alone. */
    uint64_t count;
    struct hours hours;
    struct source_dot began; /* The dot that its partial had then. */
};
void recount_row_encode(const struct recount_row *row, struct buf *out);
NODISCARD err recount_row_decode(struct slice value, struct recount_row *ret_row);

/* All zero if there is none. ERR_NEED; ERR_CORRUPT. */
NODISCARD err recount_find(struct state *state, struct need *need, struct recount_row *ret_row);
void recount_store(struct apply_context *context, const struct recount_row *row);

/* Whether the target of `edge` is under way, and what its entity has of it has been counted.
 * ERR_NEED.
 */
NODISCARD err recount_has_counted(struct apply_context *context, const struct favorite_key *edge,
                                  bool *ret_counted);
/* Then: the entry that is applied changes the target's partial for what that entity does, and what
 * has been counted changes by as much. */
void recount_follow(struct apply_context *context, const struct partial_row *before,
                    const struct partial_row *after);

#endif
