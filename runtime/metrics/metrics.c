#include "runtime/metrics/metrics.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"

enum family_type { FAMILY_COUNTER, FAMILY_GAUGE, FAMILY_HISTOGRAM };

enum series_kind { SERIES_COUNTER, SERIES_GAUGE, SERIES_HISTOGRAM, SERIES_CALLBACK };

struct series {
    struct series *next;
    char *labels; /* `name="value",...`, escaped; "" for none. */
    enum series_kind kind;
    struct counter counter;
    struct gauge gauge;
    struct histogram histogram;
    double (*read)(void *context);
    void *context;
};

struct family {
    struct family *next;
    char *name;
    char *help;
    enum family_type type;
    struct series *first, *last;
    uint32_t series_count;
};

struct metrics {
    pthread_mutex_t lock; /* Registration against scrapes; updates take none. */
    struct family *first, *last;
    uint32_t family_count;
};

const struct histogram_shape histogram_latency_us = { 64, 20, 1e-6 };

struct metrics *metrics_new(void)
{
    struct metrics *metrics = mem_zalloc(sizeof *metrics);

    CHECK(pthread_mutex_init(&metrics->lock, NULL) == 0);
    return metrics;
}

static void series_free(struct series *series)
{
    free(series->labels);
    free(series);
}

static void family_free(struct family *family)
{
    while (family->first != NULL) {
        struct series *series = family->first;
        family->first = series->next;
        series_free(series);
    }
    free(family->name);
    free(family->help);
    free(family);
}

void metrics_free(struct metrics *metrics)
{
    if (metrics == NULL)
        return;
    while (metrics->first != NULL) {
        struct family *family = metrics->first;
        metrics->first = family->next;
        family_free(family);
    }
    pthread_mutex_destroy(&metrics->lock);
    free(metrics);
}

/* ---- Registration ---- */

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text);
    size_t end_length = strlen(end);

    return length > end_length && strcmp(text + length - end_length, end) == 0;
}

static bool name_valid(const char *name)
{
    size_t length = strlen(name);

    return length > 0 && length < 128 && (name[0] < '0' || name[0] > '9') &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz_0123456789") == length;
}

/* As inside of the quotes of a label: backslash, quote and newline escaped. */
static void put_label_value(const char *value, struct buf *out)
{
    for (const char *c = value; *c != '\0'; c++) {
        if (*c == '\n')
            buf_printf(out, "\\n");
        else if (*c == '"' || *c == '\\')
            buf_printf(out, "\\%c", *c);
        else
            buf_put_u8(out, (uint8_t)*c);
    }
}

static char *labels_print(const struct metric_label *labels)
{
    struct buf out = { 0 };
    size_t count = 0;

    for (; labels != NULL && labels[count].name != NULL; count++) {
        CHECK(count < METRICS_LABELS_MAX);
        CHECK(name_valid(labels[count].name));
        CHECK(strcmp(labels[count].name, "le") != 0);
        buf_printf(&out, "%s%s=\"", count > 0 ? "," : "", labels[count].name);
        put_label_value(labels[count].value, &out);
        buf_put_u8(&out, '"');
    }
    buf_put_u8(&out, 0);
    return (char *)out.data;
}

static struct family *family_get(struct metrics *metrics, const struct metric_info *info,
                                 enum family_type type)
{
    struct family *family = metrics->first;

    while (family != NULL && strcmp(family->name, info->name) != 0)
        family = family->next;
    if (family != NULL) {
        CHECK(family->type == type);
        CHECK(strcmp(family->help, info->help) == 0);
        return family;
    }
    CHECK(metrics->family_count < METRICS_FAMILIES_MAX);
    CHECK(name_valid(info->name));
    CHECK((type == FAMILY_COUNTER) == ends_with(info->name, "_total"));
    CHECK(info->help[0] != '\0' && strpbrk(info->help, "\n\\") == NULL);
    family = mem_zalloc(sizeof *family);
    family->name = strdup(info->name);
    family->help = strdup(info->help);
    family->type = type;
    if (metrics->last != NULL)
        metrics->last->next = family;
    else
        metrics->first = family;
    metrics->last = family;
    metrics->family_count++;
    return family;
}

static struct series *series_new(struct metrics *metrics, const struct metric_info *info,
                                 enum family_type type, struct series *series)
{
    CHECK(pthread_mutex_lock(&metrics->lock) == 0);
    struct family *family = family_get(metrics, info, type);
    CHECK(family->series_count < METRICS_SERIES_MAX);
    series->labels = labels_print(info->labels);
    for (struct series *s = family->first; s != NULL; s = s->next)
        CHECK(strcmp(s->labels, series->labels) != 0); /* Registered twice. */
    if (family->last != NULL)
        family->last->next = series;
    else
        family->first = series;
    family->last = series;
    family->series_count++;
    CHECK(pthread_mutex_unlock(&metrics->lock) == 0);
    return series;
}

struct counter *metrics_counter(struct metrics *metrics, const struct metric_info *info)
{
    struct series *series = mem_zalloc(sizeof *series);

    series->kind = SERIES_COUNTER;
    return &series_new(metrics, info, FAMILY_COUNTER, series)->counter;
}

struct gauge *metrics_gauge(struct metrics *metrics, const struct metric_info *info)
{
    struct series *series = mem_zalloc(sizeof *series);

    series->kind = SERIES_GAUGE;
    return &series_new(metrics, info, FAMILY_GAUGE, series)->gauge;
}

struct histogram *metrics_histogram(struct metrics *metrics, const struct metric_info *info,
                                    const struct histogram_shape *shape)
{
    struct series *series = mem_zalloc(sizeof *series);

    CHECK(shape->first > 0);
    CHECK(shape->bucket_count > 0 && shape->bucket_count <= METRICS_BUCKETS_MAX);
    CHECK(shape->first <= UINT64_MAX >> (shape->bucket_count - 1));
    series->kind = SERIES_HISTOGRAM;
    series->histogram.first = shape->first;
    series->histogram.bucket_count = shape->bucket_count;
    series->histogram.scale = shape->scale;
    return &series_new(metrics, info, FAMILY_HISTOGRAM, series)->histogram;
}

static void register_callback(struct metrics *metrics, const struct metric_info *info,
                              enum family_type type, double (*read)(void *context), void *context)
{
    struct series *series = mem_zalloc(sizeof *series);

    series->kind = SERIES_CALLBACK;
    series->read = read;
    series->context = context;
    series_new(metrics, info, type, series);
}

void metrics_gauge_callback(struct metrics *metrics, const struct metric_info *info,
                            double (*read)(void *context), void *context)
{
    register_callback(metrics, info, FAMILY_GAUGE, read, context);
}

void metrics_counter_callback(struct metrics *metrics, const struct metric_info *info,
                              double (*read)(void *context), void *context)
{
    register_callback(metrics, info, FAMILY_COUNTER, read, context);
}

/* ---- Exposition ---- */

/* name{labels} or name, and a space. `more` is a label to add behind the others; "" for none. */
static void put_name(const struct family *family, const char *suffix, const struct series *series,
                     const char *more, struct buf *out)
{
    bool both = series->labels[0] != '\0' && more[0] != '\0';
    bool any = series->labels[0] != '\0' || more[0] != '\0';

    buf_printf(out, "%s%s%s%s%s%s%s ", family->name, suffix, any ? "{" : "", series->labels,
               both ? "," : "", more, any ? "}" : "");
}

static void put_histogram(const struct family *family, const struct series *series, struct buf *out)
{
    const struct histogram *h = &series->histogram;
    uint64_t count = 0;
    char le[48];

    for (uint32_t i = 0; i <= h->bucket_count; i++) {
        /* The total is the sum of the buckets read here, so that the two always agree. */
        count += atomic_load_explicit(&h->buckets[i], memory_order_relaxed);
        if (i < h->bucket_count)
            snprintf(le, sizeof le, "le=\"%.9g\"", (double)(h->first << i) * h->scale);
        else
            snprintf(le, sizeof le, "le=\"+Inf\"");
        put_name(family, "_bucket", series, le, out);
        buf_printf(out, "%" PRIu64 "\n", count);
    }
    put_name(family, "_sum", series, "", out);
    uint64_t sum = atomic_load_explicit(&h->sum, memory_order_relaxed);
    buf_printf(out, "%.15g\n", (double)sum * h->scale);
    put_name(family, "_count", series, "", out);
    buf_printf(out, "%" PRIu64 "\n", count);
}

static void put_series(const struct family *family, const struct series *series, struct buf *out)
{
    switch (series->kind) {
    case SERIES_COUNTER:
        put_name(family, "", series, "", out);
        buf_printf(out, "%" PRIu64 "\n", counter_get(&series->counter));
        break;
    case SERIES_GAUGE:
        put_name(family, "", series, "", out);
        buf_printf(out, "%" PRId64 "\n", gauge_get(&series->gauge));
        break;
    case SERIES_CALLBACK:
        put_name(family, "", series, "", out);
        buf_printf(out, "%.15g\n", series->read(series->context));
        break;
    case SERIES_HISTOGRAM:
        put_histogram(family, series, out);
        break;
    }
}

void metrics_write(struct metrics *metrics, struct buf *out)
{
    static const char *const words[] = { "counter", "gauge", "histogram" };

    CHECK(pthread_mutex_lock(&metrics->lock) == 0);
    for (const struct family *f = metrics->first; f != NULL; f = f->next) {
        buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", f->name, f->help, f->name, words[f->type]);
        for (const struct series *s = f->first; s != NULL; s = s->next)
            put_series(f, s, out);
    }
    CHECK(pthread_mutex_unlock(&metrics->lock) == 0);
}
