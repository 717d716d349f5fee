#include "tests/bench/load_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct load_outcome ONE_DONE = { .done = 1 };
static const struct load_outcome ONE_FAILED = { .failed = 1, .codes = { [LOAD_THROTTLED] = 1 } };

static void start(struct load_run *run, const struct load_options *options)
{
    *run = (struct load_run){ 0 };
    load_run_start(run, options);
    load_run_advance(run, run->begin_ns);
    assert_int_equal(run->phase, LOAD_MEASURE);
}

static void what_was_due_in_the_warm_up_counts_where_it_is_done_but_not_its_latency(void **unused)
{
    static const struct load_options options = { .seconds = 60, .pids = "", .aside_pids = "" };
    static struct load_run run;

    (void)unused;
    start(&run, &options);
    load_run_count(&run, run.begin_ns - 1, &ONE_DONE);
    load_run_count(&run, run.begin_ns - 1, &ONE_FAILED);
    assert_int_equal(run.operations, 1);
    assert_int_equal(run.errors, 1);
    assert_int_equal(run.codes[LOAD_THROTTLED], 1);
    assert_int_equal(run.unknown, 0);
    assert_int_equal(run.histogram.count, 0);
    load_run_count(&run, run.begin_ns, &ONE_DONE);
    assert_int_equal(run.operations, 2);
    assert_int_equal(run.histogram.count, 1);
}

static void what_is_answered_after_the_measured_time_is_acknowledged_and_no_more(void **unused)
{
    static const struct load_options options = { .seconds = 60, .pids = "", .aside_pids = "" };
    static struct load_run run;

    (void)unused;
    start(&run, &options);
    load_run_finish(&run);
    load_run_count(&run, run.begin_ns, &ONE_DONE);
    assert_int_equal(run.operations, 0);
    assert_int_equal(run.histogram.count, 0);
    assert_int_equal(run.acknowledged, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_due_in_the_warm_up_counts_where_it_is_done_but_not_its_latency),
        cmocka_unit_test(what_is_answered_after_the_measured_time_is_acknowledged_and_no_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
