#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <pthread.h>

#include "runtime/metrics/metrics.h"

static struct metric_info info(const char *name)
{
    return (struct metric_info){ name, "What it says.", NULL };
}

static char *text_of(struct metrics *metrics)
{
    struct buf out = { 0 };

    metrics_write(metrics, &out);
    buf_put_u8(&out, 0);
    return (char *)out.data;
}

static void counters_and_gauges_are_written_with_labels(void **state)
{
    struct metrics *metrics = metrics_new();
    struct metric_label get[] = { { "method", "Get" }, { "code", "a\"b\\\n" }, { NULL, NULL } };
    struct metric_info labelled = { "holdfast_calls_total", "Calls.", get };
    struct metric_info size = info("holdfast_queue_entries");
    (void)state;

    struct counter *one = metrics_counter(metrics, &labelled);
    get[0].value = "Put";
    struct counter *two = metrics_counter(metrics, &labelled);
    struct gauge *gauge = metrics_gauge(metrics, &size);
    counter_add(one, 2);
    counter_add_owned(one, 3);
    counter_add(two, 1);
    gauge_set(gauge, 7);
    gauge_add(gauge, -9);
    char *text = text_of(metrics);
    assert_string_equal(text, "# HELP holdfast_calls_total Calls.\n"
                              "# TYPE holdfast_calls_total counter\n"
                              "holdfast_calls_total{method=\"Get\",code=\"a\\\"b\\\\\\n\"} 5\n"
                              "holdfast_calls_total{method=\"Put\",code=\"a\\\"b\\\\\\n\"} 1\n"
                              "# HELP holdfast_queue_entries What it says.\n"
                              "# TYPE holdfast_queue_entries gauge\n"
                              "holdfast_queue_entries -2\n");
    free(text);
    metrics_free(metrics);
}

static void histogram_buckets_are_cumulative_and_bounds_inclusive(void **state)
{
    struct metrics *metrics = metrics_new();
    struct metric_info latency = info("holdfast_wait_seconds");
    struct histogram_shape shape = { 100, 3, 1e-6 };
    (void)state;

    struct histogram *h = metrics_histogram(metrics, &latency, &shape);
    histogram_observe(h, 0);
    histogram_observe(h, 100);
    histogram_observe(h, 101);
    histogram_observe(h, 200);
    histogram_observe_owned(h, 201);
    histogram_observe_owned(h, 400);
    histogram_observe(h, 401);
    char *text = text_of(metrics);
    assert_string_equal(text, "# HELP holdfast_wait_seconds What it says.\n"
                              "# TYPE holdfast_wait_seconds histogram\n"
                              "holdfast_wait_seconds_bucket{le=\"0.0001\"} 2\n"
                              "holdfast_wait_seconds_bucket{le=\"0.0002\"} 4\n"
                              "holdfast_wait_seconds_bucket{le=\"0.0004\"} 6\n"
                              "holdfast_wait_seconds_bucket{le=\"+Inf\"} 7\n"
                              "holdfast_wait_seconds_sum 0.001403\n"
                              "holdfast_wait_seconds_count 7\n");
    free(text);
    metrics_free(metrics);
}

/* Every value falls into the first bucket whose bound is not below it. */
static void bucket_index_agrees_with_the_bounds(void **state)
{
    struct metrics *metrics = metrics_new();
    struct metric_info name = info("holdfast_x_bytes");
    struct histogram_shape shape = { 3, 32, 1 };
    struct histogram *h = metrics_histogram(metrics, &name, &shape);
    (void)state;

    for (uint32_t i = 0; i < 32; i++) {
        uint64_t bound = UINT64_C(3) << i;
        assert_int_equal(histogram_bucket(h, bound), i);
        assert_int_equal(histogram_bucket(h, bound + 1), i + 1);
        assert_int_equal(histogram_bucket(h, bound - 1), i);
    }
    assert_int_equal(histogram_bucket(h, UINT64_MAX), 32);
    metrics_free(metrics);
}

enum { THREADS = 4, ADDS = 100000 };

static void *add_many(void *context)
{
    for (int i = 0; i < ADDS; i++)
        counter_add(context, 1);
    return NULL;
}

static void adds_of_many_threads_are_all_counted(void **state)
{
    struct metrics *metrics = metrics_new();
    struct metric_info name = info("holdfast_adds_total");
    struct counter *counter = metrics_counter(metrics, &name);
    pthread_t threads[THREADS];
    (void)state;

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, counter), 0);
    for (int i = 0; i < 20; i++)
        free(text_of(metrics));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(counter_get(counter), THREADS * ADDS);
    metrics_free(metrics);
}

static double value_of(const char *text, const char *name)
{
    char start[128];

    snprintf(start, sizeof start, "\n%s ", name);
    const char *at = strstr(text, start);
    assert_non_null(at);
    return strtod(at + strlen(start), NULL);
}

static void process_metrics_are_plausible(void **state)
{
    struct metrics *metrics = metrics_new();
    (void)state;

    metrics_process_register(metrics, "0.1.0");
    char *text = text_of(metrics);
    double now = (double)time(NULL);
    assert_true(value_of(text, "process_resident_memory_bytes") > 100000);
    assert_true(value_of(text, "process_open_fds") >= 3);
    assert_true(value_of(text, "process_max_fds") >= value_of(text, "process_open_fds"));
    assert_true(value_of(text, "process_cpu_seconds_total") >= 0);
    double start = value_of(text, "process_start_time_seconds");
    assert_true(start <= now + 2 && start > now - 600);
    assert_non_null(strstr(text, "holdfast_build_info{version=\"0.1.0\"} 1\n"));
    free(text);
    metrics_free(metrics);
}

static double half(void *context)
{
    (void)context;
    return 0.5;
}

/* Prometheus' own judge. */
static void promtool_finds_nothing_to_complain_about(void **state)
{
    static const struct histogram_shape sizes = { 64, 18, 1.0 }, counts = { 1, 13, 1.0 };
    struct metrics *metrics = metrics_new();
    struct metric_info names[] = { info("holdfast_sent_total"), info("holdfast_answer_bytes"),
                                   info("holdfast_wait_seconds"), info("holdfast_load_ratio"),
                                   info("holdfast_batch_entries") };
    FILE *promtool;
    (void)state;

    metrics_process_register(metrics, "0.1.0");
    counter_add(metrics_counter(metrics, &names[0]), 1);
    histogram_observe(metrics_histogram(metrics, &names[1], &sizes), 5000);
    histogram_observe(metrics_histogram(metrics, &names[2], &histogram_latency_us), 70);
    metrics_gauge_callback(metrics, &names[3], half, NULL);
    histogram_observe(metrics_histogram(metrics, &names[4], &counts), 12);
    char *text = text_of(metrics);
    promtool = popen("promtool check metrics 2>&1", "we");
    assert_non_null(promtool);
    assert_int_equal(fwrite(text, 1, strlen(text), promtool), strlen(text));
    assert_int_equal(pclose(promtool), 0);
    free(text);
    metrics_free(metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_and_gauges_are_written_with_labels),
        cmocka_unit_test(histogram_buckets_are_cumulative_and_bounds_inclusive),
        cmocka_unit_test(bucket_index_agrees_with_the_bounds),
        cmocka_unit_test(adds_of_many_threads_are_all_counted),
        cmocka_unit_test(process_metrics_are_plausible),
        cmocka_unit_test(promtool_finds_nothing_to_complain_about),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
