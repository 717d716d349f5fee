/*
 * top: totals of targets, in the shard that is their home, and the lists of the highest of them.
 * Each shard's partial is kept as it was pulled (a share); a total is the sum of its shares and
 * changes in the same entry. Exactly once: an item is a whole partial under a dot of its source,
 * and what is not above the last dot that was logged changes nothing.
 *
 * A list is a table in order. A target's place in the lists of 24 hours and 7 days is an upper
 * bound, since time takes edges out of a window without an entry: a reader looks at the tally
 * behind each place, and reads on until no bound could bring in another. sweep() brings the places
 * up to date.
 */
#ifndef NODE_CORE_TOP_TOP_H
#define NODE_CORE_TOP_TOP_H

#include "holdfast/internal/v1/node.pb-c.h"
#include "node/core/top/pull_item.h"
#include "node/core/top/top_row.h"

#define TOP_LIMIT_MAX 1000u

/* ERR_INVALID: the shard's replicas cannot apply entries of totals yet. */
NODISCARD err top_version_check(struct check_context *context);
/* Before the log. ERR_INVALID. */
NODISCARD err top_take_check(struct check_context *context,
                             const Holdfast__Internal__V1__TakePartialsRequest *request);
void top_take_footprint(const Holdfast__Internal__V1__TakePartialsRequest *request,
                        struct need *keys);
/* At apply. ERR_NEED. What cannot be read is left out and told. */
NODISCARD err top_take(struct apply_context *context,
                       const Holdfast__Internal__V1__TakePartialsRequest *request,
                       Holdfast__Internal__V1__TakePartialsResponse *response);

struct top_entry {
    struct slice target; /* In the arena. */
    uint64_t count;
};

struct top_ask {
    uint64_t collection;
    char window;    /* enum top_window. */
    uint32_t limit; /* 1 to TOP_LIMIT_MAX. */
};
/* The highest of a collection, the highest first, at one count by target; room for `limit`.
 * ERR_NEED. ERR_CONFLICT: refused, since too many places would have to be looked at. */
NODISCARD err top_list(struct read_context *context, const struct top_ask *ask,
                       struct top_entry *ret_entries, uint32_t *ret_count);

/* Brings a tally's places in the lists up to what it says, and stores it; `was` is it as it stands
 * stored. */
void tally_store(struct apply_context *context, const struct top_key *of,
                 const struct tally_row *was, struct tally_row *row);

#endif
