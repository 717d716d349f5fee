/*
 * policy: what a write replaces in a record, and what a read shows of it. Merging knows no policy.
 */
#ifndef NODE_CORE_MERGEABLE_POLICY_H
#define NODE_CORE_MERGEABLE_POLICY_H

#include "node/core/mergeable/record.h"

#define MERGE_EDITS_MAX    64u
#define MERGE_SIBLINGS_MAX 16u

struct merge_edit {
    struct slice path;   /* Empty: the whole value, of LWW and VECTOR. */
    struct slice value;  /* At most MERGE_VALUE_BYTES_MAX. */
    uint64_t expires_ms; /* 0: never. */
    bool remove;         /* What is at the path goes; `value` does not matter. */
    bool exact;          /* With MERGE: what is inside of the path, or around it, stays. */
    int64_t delta;       /* Of COUNTER, instead of a value: at most MERGE_DELTA_MAX either way. */
};

struct merge_edits {
    uint32_t count;                /* At most MERGE_EDITS_MAX. */
    const struct merge_edit *list; /* Borrowed; no two at one path. */
    bool whole;                    /* Everything that is there goes first. No edits: a delete. */
    /* What the caller had seen. With VECTOR a write replaces just that; with a write of the whole
     * it also covers what has not come here yet, but for counters, whose resets have to know the
     * operations that they take away. Elsewhere it does not matter. NULL: nothing. */
    const struct causal *seen;
    uint32_t own_count;
    const struct merge_dot
        *own;             /* Earlier writes of the caller's own: VECTOR replaces these too. */
    const bool *swept;    /* Of COUNTER: goes too, one flag a cell; NULL: none. */
    struct merge_dot dot; /* Of the write. */
    uint64_t hlc, op;
};

/* What is wrong with a write: the field, its limit and its value, for the caller's message. */
struct merge_refusal {
    const char *field;
    uint64_t limit, value;
    uint32_t edit;    /* Of a "delta" or "path": the place of the edit. */
    uint64_t open_ms; /* Of "increments": Unix time of the earliest that is open. */
};

/* A path of MERGE is inside of another one: "a/b" of "a". */
bool merge_path_is_inside(struct slice path, struct slice above);
/* ERR_INVALID: not for this policy, or twice one path. ERR_TOO_LARGE: over a limit. */
NODISCARD err merge_edits_check(enum merge_policy policy, const struct merge_edits *edits,
                                struct merge_refusal *ret_refusal);
/* What the write would leave: values, those that it adds, bytes of paths and values. */
struct merge_left {
    uint32_t cells, added;
    uint64_t bytes;
};
struct merge_left merge_edits_left(const struct merge_record *record,
                                   const struct merge_edits *edits);
/* What the write would leave behind is within limits; ERR_FULL: too many siblings, cells or bytes.
 */
NODISCARD err merge_edits_fit(const struct merge_record *record, const struct merge_edits *edits,
                              struct merge_refusal *ret_refusal);
/* An attempt of that operation was taken in, and a value of it still stands: another one changes
 * nothing. False of op 0. Counters know more (merge_counter_knows). */
bool merge_edits_stand(const struct merge_record *record, uint64_t op);
/* Of a counter: an attempt of edits->op is known that asked for something else, another amount at
 * one of the paths or other paths. What was folded, or taken away, is not compared. */
bool merge_edits_differ(const struct merge_record *record, const struct merge_edits *edits);
/* Carries a checked write out. The record's context is full and does not have the dot. */
void merge_edits_apply(struct merge_record *record, const struct merge_edits *edits);

/* Cells of a record, borrowed, in its order. */
struct merge_view {
    uint32_t count;
    const struct merge_cell **cells;
};
/* What a read at `now_ms` shows; of counters just where there is one that is not 0. Who wins is
 * decided first, and what has expired is left out then: an expired value must not bring an older
 * one back. Free with merge_view_deinit. */
void merge_view_init(struct merge_view *view, const struct merge_record *record, uint64_t now_ms);
void merge_view_deinit(struct merge_view *view);
/* The paths whose winning value expired before `before_ms`, as removals of all that is there: the
 * sweep. What such a value hides goes before it, or it would come back. At most MERGE_EDITS_MAX,
 * which borrow from the record; how many. For VECTOR 0 or 1: all of its siblings have to be
 * expired. */
uint32_t merge_expired_edits(const struct merge_record *record, uint64_t before_ms,
                             struct merge_edit *ret_edits);

#endif
