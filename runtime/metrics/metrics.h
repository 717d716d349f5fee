/*
 * metrics: a process's counters, gauges and histograms, written out in Prometheus' text format
 * 0.0.4. Label values come from bounded sets known when the program starts: never a player, a
 * key or an address from outside. No I/O, no threads of its own.
 *
 * Registration happens at start; it takes a lock and CHECKs its arguments. Updates take none: each
 * is a relaxed atomic add from any thread, or for a value that one thread alone writes the _owned
 * form, which is a plain load, add and store. A scrape reads values one by one, so two
 * counters of one scrape may differ by the updates made in between.
 */
#ifndef RUNTIME_METRICS_METRICS_H
#define RUNTIME_METRICS_METRICS_H

#include <stdatomic.h>
#include <stdint.h>

#include "runtime/base/buf.h"

enum {
    METRICS_FAMILIES_MAX = 512,
    METRICS_SERIES_MAX = 4096, /* Per family. */
    METRICS_LABELS_MAX = 4,
    METRICS_BUCKETS_MAX = 32
};

struct metrics;

/* An array of these ends with a NULL name. Copied at registration. */
struct metric_label {
    const char *name;
    const char *value;
};

/* Names follow Prometheus: base units, counters end in _total. The same name may be registered
 * again with other label values (same help, same type): one more series. */
struct metric_info {
    const char *name;
    const char *help;
    const struct metric_label *labels; /* NULL for none. */
};

struct counter {
    _Atomic uint64_t value;
};

struct gauge {
    _Atomic int64_t value;
};

/* Bucket i counts values up to first * 2^i; one more counts all above. */
struct histogram {
    uint64_t first;
    uint32_t bucket_count;
    double scale;
    _Atomic uint64_t sum;
    _Atomic uint64_t buckets[METRICS_BUCKETS_MAX + 1];
};

/* Values are observed as integers in a small unit and printed times `scale`: microseconds with
 * scale 1e-6 give a family in seconds. */
struct histogram_shape {
    uint64_t first;        /* Upper bound of the first bucket; above 0. */
    uint32_t bucket_count; /* 1 to METRICS_BUCKETS_MAX; first << (count - 1) must fit. */
    double scale;
};

/* 64 us to about 34 s, observed in microseconds. */
extern const struct histogram_shape histogram_latency_us;

struct metrics *metrics_new(void);
void metrics_free(struct metrics *metrics);

/* All live as long as the registry. */
struct counter *metrics_counter(struct metrics *metrics, const struct metric_info *info);
struct gauge *metrics_gauge(struct metrics *metrics, const struct metric_info *info);
struct histogram *metrics_histogram(struct metrics *metrics, const struct metric_info *info,
                                    const struct histogram_shape *shape);
/* `read` is called at each scrape, on the scraping thread. */
void metrics_gauge_callback(struct metrics *metrics, const struct metric_info *info,
                            double (*read)(void *context), void *context);
void metrics_counter_callback(struct metrics *metrics, const struct metric_info *info,
                              double (*read)(void *context), void *context);

/* Appends every family in the order of registration. */
void metrics_write(struct metrics *metrics, struct buf *out);

/* process_resident_memory_bytes, process_cpu_seconds_total, process_open_fds, process_max_fds,
 * process_start_time_seconds, and holdfast_build_info{version}, from /proc. */
void metrics_process_register(struct metrics *metrics, const char *version);

static inline void counter_add(struct counter *counter, uint64_t n)
{
    atomic_fetch_add_explicit(&counter->value, n, memory_order_relaxed);
}

/* Only if no other thread ever writes this counter. */
static inline void counter_add_owned(struct counter *counter, uint64_t n)
{
    uint64_t value = atomic_load_explicit(&counter->value, memory_order_relaxed);
    atomic_store_explicit(&counter->value, value + n, memory_order_relaxed);
}

static inline uint64_t counter_get(const struct counter *counter)
{
    return atomic_load_explicit(&counter->value, memory_order_relaxed);
}

static inline void gauge_set(struct gauge *gauge, int64_t value)
{
    atomic_store_explicit(&gauge->value, value, memory_order_relaxed);
}

static inline void gauge_add(struct gauge *gauge, int64_t n)
{
    atomic_fetch_add_explicit(&gauge->value, n, memory_order_relaxed);
}

static inline int64_t gauge_get(const struct gauge *gauge)
{
    return atomic_load_explicit(&gauge->value, memory_order_relaxed);
}

static inline uint32_t histogram_bucket(const struct histogram *histogram, uint64_t value)
{
    if (value <= histogram->first)
        return 0;
    uint32_t bucket = 64u - (uint32_t)__builtin_clzll((value - 1) / histogram->first);
    return bucket < histogram->bucket_count ? bucket : histogram->bucket_count;
}

static inline void histogram_observe(struct histogram *histogram, uint64_t value)
{
    uint32_t bucket = histogram_bucket(histogram, value);
    atomic_fetch_add_explicit(&histogram->buckets[bucket], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&histogram->sum, value, memory_order_relaxed);
}

/* The count in each bucket, up to the last that is not 0; how many those are. `room` is enough with
 * bucket_count + 1. */
static inline size_t histogram_copy(const struct histogram *histogram, uint64_t *ret_buckets,
                                    size_t room)
{
    size_t used = 0;

    for (size_t i = 0; i <= histogram->bucket_count && i < room; i++) {
        ret_buckets[i] = atomic_load_explicit(&histogram->buckets[i], memory_order_relaxed);
        used = ret_buckets[i] != 0 ? i + 1 : used;
    }
    return used;
}

/* Only if no other thread ever writes this histogram. */
static inline void histogram_observe_owned(struct histogram *histogram, uint64_t value)
{
    _Atomic uint64_t *bucket = &histogram->buckets[histogram_bucket(histogram, value)];
    uint64_t count = atomic_load_explicit(bucket, memory_order_relaxed);
    uint64_t sum = atomic_load_explicit(&histogram->sum, memory_order_relaxed);

    atomic_store_explicit(bucket, count + 1, memory_order_relaxed);
    atomic_store_explicit(&histogram->sum, sum + value, memory_order_relaxed);
}

#endif
