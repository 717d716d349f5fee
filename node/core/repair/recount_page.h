/*
 * recount_page: what the two kinds of recounts have in common (recount.h): where a step stands, the
 * pages of rows that it looks at, and what it tells of what differs.
 */
#ifndef NODE_CORE_REPAIR_RECOUNT_PAGE_H
#define NODE_CORE_REPAIR_RECOUNT_PAGE_H

#include "holdfast/v1/admin.pb-c.h"
#include "node/core/favorite/recount_row.h"

#define RECOUNT_ROWS_MAX    512u
#define RECOUNT_TOLD_MAX    64u
#define RECOUNT_KEYS_DAMAGE "keys of the rows of targets cannot be read"

struct recount {
    struct arena *arena;
    struct state *state;
    struct need *need;
    struct apply_context *context; /* NULL: a read. */
    uint32_t shard_count, hour;
    uint32_t rows;                        /* Of each kind, 1 to RECOUNT_ROWS_MAX. */
    struct recount_row *row;              /* Where it stands: moves on. Texts live in the arena. */
    Holdfast__V1__CountDifference **told; /* Of this step; room for RECOUNT_TOLD_MAX. */
    size_t told_count;
};

/* A page of a table's rows, in order, in the arena. */
struct recount_page {
    struct slice *keys, *values;
    uint32_t count, at;
    bool more; /* There may be rows behind it. */
};
/* ERR_NEED. */
NODISCARD err recount_page_read(struct recount *recount, const struct state_range *range,
                                struct recount_page *ret_page);
/* How a target compares with another one, in the order of rows. */
int recount_compare(uint64_t number, struct slice target, uint64_t other, struct slice of_other);
/* A target was found to differ. */
void recount_tell(struct recount *recount, const Holdfast__V1__CountDifference *difference);
/* Whether two lists of hours say the same of all hours that no owner's clock has left behind. */
bool recount_hours_equal(const struct recount *recount, const struct hours *a,
                         const struct hours *b);

#endif
