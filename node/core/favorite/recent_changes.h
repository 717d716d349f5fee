/*
 * recent_changes: for the homes of which targets an entry has changed a count, as far back as is
 * kept. Not a part of the state: each replica keeps it for itself as it applies, so that a source
 * that is asked for what changed since an entry need not look at every home. What is not known is
 * told as such; then each home is looked at.
 */
#ifndef NODE_CORE_FAVORITE_RECENT_CHANGES_H
#define NODE_CORE_FAVORITE_RECENT_CHANGES_H

#include "node/core/favorite/partial_row.h"

#define RECENT_CHANGES_MAX 256u

struct recent_change {
    struct source_dot dot; /* Of the entry. */
    uint32_t home;
};

/* All zero: of a shard that has applied nothing. */
struct recent_changes {
    struct source_dot from;   /* What notes came before is not known: rows were put as they are. */
    struct source_dot passed; /* Of the last change that is kept no more. */
    struct recent_change *ring;
    uint32_t room, first, count;
};
void recent_changes_deinit(struct recent_changes *recent);

/* Rows of any age may have been put, up to that entry. */
void recent_changes_forget(struct recent_changes *recent, struct source_dot dot);
/* More often for one entry, or for one that is refused, does no harm. */
void recent_changes_note(struct recent_changes *recent, struct source_dot dot, uint32_t home);

/* Sets the bit of each home (bit home % 8 of byte home / 8) that may have a note above `since`, of
 * `homes` homes. False: there may be notes up to `since` that were put later; `bits` is untouched.
 */
bool recent_changes_since(const struct recent_changes *recent, struct source_dot since,
                          uint32_t homes, uint8_t *bits);

#endif
