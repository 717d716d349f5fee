/*
 * row_check: whether a row of any table can be read, by the decoders that apply itself uses, and
 * whose it is. For who looks for damage, and for who repairs it (docs/containment.md).
 */
#ifndef NODE_CORE_REPAIR_ROW_CHECK_H
#define NODE_CORE_REPAIR_ROW_CHECK_H

#include "node/core/rows/state.h"
#include "runtime/base/arena.h"

struct row_check {
    bool readable;
    const char *why;     /* Static; NULL: it can be read. */
    struct slice entity; /* Whose it is, by its key: "player:42". Empty: the shard's. */
};

/* `arena` is for decoding; what is left in it means nothing. */
void row_check(struct arena *arena, struct slice key, struct slice value,
               struct row_check *ret_check);

#endif
