/*
 * counter: records of the policy COUNTER. Each increment is a cell of its own, under the dot of its
 * write, so a reset takes away exactly the increments that it saw: what was counted meanwhile
 * elsewhere stays. (Cells that hold an actor's sum would come back whole from one increment that
 * the reset had not seen: Baquero, Almeida, Lerche: The problem with embedded CRDT counters, 2016.)
 *
 * A value is i64 delta; then, if there is more, u8 rank and u64 each the operations that a reset
 * took away. An operation counts once for each path, by its earliest cell, and no more once a reset
 * has seen one of its cells: a retry finds it spent.
 *
 * Cells would pile up, so each replica folds those that every member has into one: of one actor
 * those up to some dot (rank 1), of the ended actors of lower eras all of those up to some actor
 * (rank 2). It stands under the latest of their dots. Any two folds, of whichever replicas, are
 * nested or have nothing in common: a fold over eras never ends within an actor, and it stays one
 * at a replica that has not heard that its eras are over. So of two cells under one dot the one of
 * the higher rank says all that the other does, and what a fold covers is inside of it. A sum of 0
 * stays a cell: without it two replicas could fold the same to different dots, and each would take
 * the other's for removed. Such a cell goes with a sweep, which takes all of its path, as a reset
 * does.
 */
#ifndef NODE_CORE_MERGEABLE_COUNTER_H
#define NODE_CORE_MERGEABLE_COUNTER_H

#include "node/core/mergeable/record.h"
#include "node/core/mergeable/tally.h"

/* What a counter says at `now_ms`: the distinct operations that are there, not spent and not
 * expired. ERR_TOO_LARGE: the sum does not fit; *ret_sum untouched. */
NODISCARD err merge_counter_sum(const struct merge_record *record, struct slice path,
                                uint64_t now_ms, int64_t *ret_sum);
/* The operation has a cell at the path, or is spent there. */
bool merge_counter_knows(const struct merge_record *record, struct slice path, uint64_t op);
/* What a reset leaves of the cells that go (`gone`: one flag a cell): for each path a cell without
 * a value that names their operations, if they had any; `written` has its dot and time. As many as
 * record->count have room in ret_cells; the caller's references. False: some path has more than
 * MERGE_SPENT_MAX operations, and its cell is left out. */
bool merge_counter_notes(const struct merge_record *record, const bool *gone,
                         const struct merge_cell_form *written, struct merge_cell **ret_cells,
                         uint32_t *ret_count);
/* Unix time of the earliest increment that is told apart from its retries; 0: there is none. */
uint64_t merge_counter_open_ms(const struct merge_record *record);
struct merge_folding {
    uint16_t era;        /* All actors of lower eras have ended, and all members have their dots. */
    uint64_t retried_ms; /* All retries of what was written before it have come to every member. */
    /* Every member has that dot, and this one has all that any member had when it said so. */
    bool (*everywhere)(void *user, struct merge_dot dot);
    void *user;
};
/* The cells that a sweep may take away: `gone` gets one flag a cell; how many. Those that expired
 * before `before_ms`, with an operation only once no cell of it counts any more and no retry can
 * come; and all of a path that could be folded to 0. */
uint32_t merge_counter_swept(const struct merge_record *record, uint64_t before_ms,
                             const struct merge_folding *folding, bool *gone);
/* Folds what may be folded; what a read shows stays. True: something was. */
bool merge_counter_fold(struct merge_record *record, const struct merge_folding *folding);

#endif
