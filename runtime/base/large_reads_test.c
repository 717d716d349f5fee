#include "runtime/base/large_reads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define MIB    1048576u
#define GREEDY 11u
#define MODEST 13u
#define METHOD 7u

static struct large_reads *reads;

static int set_up(void **state)
{
    (void)state;
    reads = large_reads_new();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    large_reads_check(reads);
    large_reads_free(reads);
    return 0;
}

static struct large_read read_of(uint64_t caller, uint32_t method)
{
    return (struct large_read){ .caller = caller, .method = method };
}

/* One that is answered at once. */
static void answered(uint64_t caller, uint32_t method, uint64_t bytes)
{
    struct large_read read = read_of(caller, method);

    assert_true(large_reads_begin(reads, &read, 4 * MIB));
    large_reads_end(reads, &read, bytes);
}

static uint32_t expected(uint64_t caller, uint32_t method)
{
    struct large_read read = read_of(caller, method);

    assert_true(large_reads_begin(reads, &read, UINT64_MAX));
    large_reads_end(reads, &read, 0);
    return read.expected_bytes;
}

static void a_caller_has_its_share_and_others_theirs(void **state)
{
    struct large_read under_way[4], one_more = read_of(GREEDY, METHOD);
    struct large_read other = read_of(MODEST, METHOD), small = read_of(GREEDY, METHOD + 1);

    (void)state;
    answered(GREEDY, METHOD, MIB);
    answered(MODEST, METHOD, MIB);
    for (int i = 0; i < 4; i++) {
        under_way[i] = read_of(GREEDY, METHOD);
        assert_true(large_reads_begin(reads, &under_way[i], 4 * MIB));
    }
    assert_false(large_reads_begin(reads, &one_more, 4 * MIB));
    assert_false(large_reads_begin(reads, &one_more, 5 * MIB - 1)); /* It has 4 MiB, */
    assert_true(large_reads_begin(reads, &one_more, 5 * MIB));      /* no more and no less. */
    large_reads_end(reads, &one_more, 0);
    assert_true(large_reads_begin(reads, &small, 4 * MIB)); /* Its answers are short. */
    large_reads_end(reads, &small, 100);
    assert_true(large_reads_begin(reads, &other, 4 * MIB));
    large_reads_check(reads);
    large_reads_end(reads, &other, MIB);
    large_reads_end(reads, &under_way[0], MIB);
    assert_true(large_reads_begin(reads, &under_way[0], 4 * MIB));
    for (int i = 0; i < 4; i++)
        large_reads_end(reads, &under_way[i], MIB);
}

static void one_that_is_larger_than_the_share_passes_alone(void **state)
{
    struct large_read first = read_of(GREEDY, METHOD), second = read_of(GREEDY, METHOD);

    (void)state;
    answered(GREEDY, METHOD, 3 * MIB);
    assert_true(large_reads_begin(reads, &first, MIB));
    assert_false(large_reads_begin(reads, &second, MIB));
    large_reads_end(reads, &first, 3 * MIB);
}

static void what_is_expected_follows_what_comes(void **state)
{
    (void)state;
    assert_int_equal(expected(GREEDY, METHOD), 0);
    answered(GREEDY, METHOD, LARGE_READ_BYTES - 1);
    assert_int_equal(expected(GREEDY, METHOD), 0);
    answered(GREEDY, METHOD, 8 * LARGE_READ_BYTES);
    assert_int_equal(expected(GREEDY, METHOD), 8 * LARGE_READ_BYTES);
    assert_int_equal(expected(GREEDY, METHOD), 8 * LARGE_READ_BYTES); /* A refusal tells nothing. */
    answered(GREEDY, METHOD, 10);
    assert_int_equal(expected(GREEDY, METHOD), 7 * LARGE_READ_BYTES);
    answered(GREEDY, METHOD, 9 * LARGE_READ_BYTES);
    assert_int_equal(expected(GREEDY, METHOD), 9 * LARGE_READ_BYTES);
    for (int i = 0; i < 20; i++)
        answered(GREEDY, METHOD, 10);
    assert_int_equal(expected(GREEDY, METHOD), 0);
}

/* Answered, and not on the socket yet: what came counts, whatever was expected. */
static void what_came_counts_until_it_has_left(void **state)
{
    struct large_read surprise = read_of(GREEDY, METHOD), next = read_of(GREEDY, METHOD);

    (void)state;
    assert_true(large_reads_begin(reads, &surprise, 4 * MIB));
    assert_int_equal(large_reads_held(reads, GREEDY), 0); /* Not known to be large. */
    large_reads_answered(reads, &surprise, 5 * MIB);
    assert_int_equal(large_reads_held(reads, GREEDY), 5 * MIB);
    assert_false(large_reads_begin(reads, &next, 4 * MIB));
    large_reads_end(reads, &surprise, 0);
    assert_int_equal(large_reads_held(reads, GREEDY), 0);
    assert_true(large_reads_begin(reads, &next, 4 * MIB));
    assert_int_equal(next.expected_bytes, 5 * MIB);
    large_reads_answered(reads, &next, MIB);
    assert_int_equal(large_reads_held(reads, GREEDY), MIB);
    large_reads_end(reads, &next, 0);
    assert_int_equal(expected(GREEDY, METHOD), 5 * MIB - 5 * MIB / 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_caller_has_its_share_and_others_theirs, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(one_that_is_larger_than_the_share_passes_alone, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_is_expected_follows_what_comes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_came_counts_until_it_has_left, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
