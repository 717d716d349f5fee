/*
 * pull: the source's side of totals: which partial counts changed, for the homes that ask.
 * Everything up to the dot that a home names is left out; what changed more than once is told once,
 * as it stands. What the source keeps of a target without edges goes once its home has logged that:
 * before, the home would never hear of it; and what a late copy of an older pull says lies below
 * what the home has logged.
 */
#ifndef NODE_CORE_TOP_PULL_H
#define NODE_CORE_TOP_PULL_H

#include "holdfast/internal/v1/node.pb-c.h"
#include "node/core/top/pull_item.h"

/* Appends a part for each home of `homes` that there is room for; and, where they can be told
 * apart, for each of `wanted` for which something changed since then. ERR_NEED: rows are noted,
 * `out` is as it was. ERR_INVALID: the homes make no sense. What cannot be read is left out and
 * told. */
struct pull_asked {
    struct slice homes;  /* As pull_home_encode makes them. */
    struct slice wanted; /* A bit for each home; empty: those of `homes` alone. */
    struct source_dot
        since; /* Up to which those of them that are not in `homes` have logged all. */
};
NODISCARD err pull_read(struct read_context *context, const struct pull_asked *asked,
                        struct buf *out, bool *ret_follows);

/* Before the log. ERR_INVALID. */
NODISCARD err pull_forget_check(struct check_context *context,
                                const Holdfast__Internal__V1__ForgetPartialsRequest *request);
/* At apply: at most FORGET_TARGETS_MAX targets, those of the first homes first. ERR_NEED. */
NODISCARD err pull_forget(struct apply_context *context,
                          const Holdfast__Internal__V1__ForgetPartialsRequest *request,
                          Holdfast__Internal__V1__ForgetPartialsResponse *response);

#endif
