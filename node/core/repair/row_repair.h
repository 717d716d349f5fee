/*
 * row_repair: what becomes of a player's row that cannot be read, on every replica alike: it is
 * made again where other rows say what it was; else it is dropped, or something stands in its place
 * that says so. A row that can be read is never touched. docs/runbooks/HoldfastRowsUnreadable.md.
 */
#ifndef NODE_CORE_REPAIR_ROW_REPAIR_H
#define NODE_CORE_REPAIR_ROW_REPAIR_H

#include "holdfast/v1/admin.pb-c.h"
#include "node/core/handler/handler.h"
#include "node/core/rows/rows.h"

#define REPAIR_ROW_BYTES_TOLD 4096u

/* Keys in hex digits, lower case. ERR_INVALID: not that, or too long. */
NODISCARD err row_key_parse(struct slice text, struct row_key *ret_key);
/* Hex digits in the arena, of the first `bytes_max`. */
char *bytes_hex(struct arena *arena, struct slice bytes, size_t bytes_max);

/* Before the log, of any repair: replicas of an earlier build do not know it. ERR_INVALID or
 * ERR_CONFLICT: refused. */
NODISCARD err row_repair_check(struct check_context *context, const char *reason);
/* The same of a repair that came with a later apply version. */
NODISCARD err row_repair_check_version(struct check_context *context, uint32_t needed);

struct row_repair {
    struct slice key; /* Of context->op's entity. */
    struct slice reason;
    bool rebuilt;  /* The player's own row is to be made again in this entry. */
    bool readable; /* Set: it can be read, but for others that it relies on. */
    bool orphan;   /* Set: an intent that can be read, whose transaction is lost. */
    Holdfast__V1__RepairedRow *told; /* Filled. */
};

/* The order in which they are repaired: of some, others must be readable. For qsort. */
int row_repair_compare(const void *a, const void *b);
/* ERR_NEED; ERR_CONFLICT, ERR_INVALID: refused. */
NODISCARD err row_repair(struct apply_context *context, struct row_repair *repair);

/* What is told of a row that is about to change. */
Holdfast__V1__RepairedRow *repaired_row(struct arena *arena, struct slice key, struct slice value);

#endif
