/*
 * scrub_pace: how fast a scrub goes, and when the next one is due. Pure: no clock, no I/O.
 *
 * Each step is paced by itself. So what a slow disk, or a machine that slept, took too long for is
 * not made up for by a burst afterwards.
 */
#ifndef NODE_IO_DISK_SCRUB_PACE_H
#define NODE_IO_DISK_SCRUB_PACE_H

#include <stdint.h>

#define SCRUB_STEP_BYTES_MIN 4096u
#define SCRUB_STEP_BYTES_MAX (1024u * 1024u)
#define SCRUB_FIRST_MS_MAX   600000u

/* What one step reads: an eighth of a second's worth, within the limits above. rate > 0. */
uint32_t scrub_pace_step_bytes(uint64_t rate_bytes_per_s);
/* To wait after a step that read `bytes` in `took_us`, so that it stays at the rate. 0: it was
 * slower than that. rate > 0. */
uint64_t scrub_pace_wait_us(uint64_t bytes, uint64_t took_us, uint64_t rate_bytes_per_s);
/* From a start of the node to its first pass: a sixteenth of the period, 10 min at most. A node
 * that is started again and again before a pass is over must come to one, and not at each start at
 * once.
 */
uint64_t scrub_pace_first_ms(uint64_t period_ms);
/* From the end of a pass that took `took_ms` to the next: the rest of the period. 0: it took longer
 * than that. */
uint64_t scrub_pace_rest_ms(uint64_t period_ms, uint64_t took_ms);

#endif
