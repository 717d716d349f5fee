/*
 * large_reads: what one caller may have on its way in large answers (DESIGN section 11). How large
 * an answer is shows only when it comes, so a read is expected to be as large as those that its
 * caller got lately by the same method. Past the caller's share a read is refused before a node is
 * asked for it: the room for answers, at nodes and here, stays open to other callers. Pure.
 */
#ifndef RUNTIME_BASE_LARGE_READS_H
#define RUNTIME_BASE_LARGE_READS_H

#include <stdbool.h>
#include <stdint.h>

#define LARGE_READ_BYTES 65536u /* Shorter answers are not counted. */

struct large_reads;

struct large_read {
    uint64_t caller;
    uint32_t method;
    uint32_t expected_bytes; /* Set by large_reads_begin. */
};

struct large_reads *large_reads_new(void);
/* CHECK: none is under way. NULL is allowed. */
void large_reads_free(struct large_reads *reads);
/* False: with it the caller would have more than `share_bytes` on their way. One who has none may
 * always read. */
bool large_reads_begin(struct large_reads *reads, struct large_read *read, uint64_t share_bytes);
/* It is answered, and its bytes wait to leave: from now on what came is held, and not what was
 * expected. Goes past the share, since the bytes are there. large_reads_end follows, with 0. */
void large_reads_answered(struct large_reads *reads, struct large_read *read, uint64_t came_bytes);
/* Once for each that began. `came_bytes` is what it was answered with; 0: with no data. */
void large_reads_end(struct large_reads *reads, const struct large_read *read, uint64_t came_bytes);
/* What that caller has on its way. */
uint64_t large_reads_held(const struct large_reads *reads, uint64_t caller);
/* CHECKs what each caller holds, and what is remembered of methods. For tests. */
void large_reads_check(const struct large_reads *reads);

#endif
