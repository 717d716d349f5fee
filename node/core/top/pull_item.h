/*
 * pull_item: one partial count on its way from its shard to the home of its target, and what a home
 * asks a source for. Little-endian:
 *
 *   dot of the change (epoch, counter: u64), collection (u64), target (u8 length, bytes), count
 * (u64), hours (hours.h)
 *
 * An item is the partial as a whole: to take it twice is to take it once. Pure; for untrusted
 * input.
 */
#ifndef NODE_CORE_TOP_PULL_ITEM_H
#define NODE_CORE_TOP_PULL_ITEM_H

#include "node/core/favorite/partial.h"

#define PULL_ITEM_BYTES_MAX 2048u
#define PULL_HOME_BYTES     18u
/* What one answer holds of one home, and in all; what one entry logs. */
#define PULL_PART_BYTES_MAX 32768u
#define PULL_BYTES_MAX      262144u
#define TAKE_BYTES_MAX      98304u
#define TAKE_ITEMS_MAX      1024u
#define TAKE_SWEEP_MAX      256u
/* For how many homes that have changes one answer looks at what these are: memory keeps as many
 * ranges and more at once, or none of them would ever be all there (COVERAGES_MAX). */
#define PULL_LOOKS_MAX 32u
/* For how many homes one entry forgets targets without edges, and how many of those. */
#define FORGET_HOMES_MAX   8u
#define FORGET_TARGETS_MAX 512u

struct pull_item {
    struct source_dot dot;
    uint64_t collection;
    struct slice target; /* Inside what was read. */
    uint64_t count;
    struct hours hours;
};
void pull_item_encode(const struct pull_item *item, struct buf *out);
/* False: there are no more, or `reader` is bad. */
bool pull_item_next(struct reader *reader, struct pull_item *ret_item);

struct pull_home {
    uint32_t home;
    struct source_dot after;
};
void pull_home_encode(const struct pull_home *home, struct buf *out);
bool pull_home_next(struct reader *reader, struct pull_home *ret_home);

struct pull_part {
    uint32_t home;
    bool more;
    bool emptied; /* Targets without edges, as far as the home has logged: pull_forget. */
    struct source_dot to;
    struct slice items; /* Inside what was read. */
};
void pull_part_encode(const struct pull_part *part, struct buf *out);
bool pull_part_next(struct reader *reader, struct pull_part *ret_part);

#endif
