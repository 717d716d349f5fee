/* load_stat: what a load run measures: latencies in a histogram of bounded error, and processor
 * time of the servers under load, from /proc. */
#ifndef TESTS_BENCH_LOAD_STAT_H
#define TESTS_BENCH_LOAD_STAT_H

#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_STEPS   64u /* In each power of two: an error of at most 1.6 %. */
#define HISTOGRAM_BUCKETS (40u * HISTOGRAM_STEPS)

struct histogram {
    uint64_t buckets[HISTOGRAM_BUCKETS];
    uint64_t count;
    uint64_t max_ns;
};

uint64_t clock_ns(void);
void histogram_add(struct histogram *histogram, uint64_t ns);
/* In milliseconds; fraction 0 to 1. 0 when nothing was added. */
double histogram_ms(const struct histogram *histogram, double fraction);

/* Processor seconds so far of the processes in `pids` (comma-separated), their descendants, and
 * children those have reaped. */
double server_cpu_s(const char *pids);
double own_cpu_s(void);
/* Of every process and of interrupts, since the machine started. 0 when /proc does not tell. */
double machine_cpu_s(void);

#endif
