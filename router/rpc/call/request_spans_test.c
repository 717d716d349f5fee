#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "router/rpc/call/request_spans.h"

#define MS UINT64_C(1000000)

static uint64_t sum(const struct request_spans *spans)
{
    return spans->wait_ms + spans->retry_ms + spans->link_ms + spans->node_ms + spans->lost_ms;
}

static void the_spans_of_an_answered_call_follow_one_another(void **state)
{
    const struct caller_call call = {
        .retry = { .sent = 2 },
        .trail = { .first_ns = 5 * MS,
                   .sent_ns = 312 * MS,
                   .nodes = { 17, 18 },
                   .at_ms = { 5, 312 },
                   .node_us = 40000,
                   .answered = true },
    };
    struct request_spans spans;
    char text[REQUEST_ROUTE_SIZE];

    (void)state;
    request_spans_get(&call, 400 * MS, &spans);
    assert_int_equal(spans.wait_ms, 5);
    assert_int_equal(spans.retry_ms, 307);
    assert_int_equal(spans.node_ms, 40);
    assert_int_equal(spans.link_ms, 48);
    assert_int_equal(sum(&spans), 400);
    request_route_print(&call, text);
    assert_string_equal(text, "17@5 18@312");
}

static void what_was_never_sent_only_waited(void **state)
{
    const struct caller_call call = { .retry = { .sent = 0 } };
    struct request_spans spans;
    char text[REQUEST_ROUTE_SIZE];

    (void)state;
    request_spans_get(&call, 10 * MS, &spans);
    assert_int_equal(spans.wait_ms, 10);
    assert_int_equal(sum(&spans), 10);
    request_route_print(&call, text);
    assert_string_equal(text, "");
}

static void a_lost_attempt_is_nobodys_time(void **state)
{
    const struct caller_call call = { .retry = { .sent = 1 } };
    struct request_spans spans;

    (void)state;
    request_spans_get(&call, 10 * MS, &spans);
    assert_int_equal(spans.lost_ms, 10);
    assert_int_equal(sum(&spans), 10);
}

/* A node's word is not measured here: whatever it says, the sum holds. */
static void spans_add_up_to_no_more_than_the_whole_whatever_a_node_says(void **state)
{
    const struct caller_call call = {
        .retry = { .sent = 9 },
        .trail = { .first_ns = 900 * MS,
                   .sent_ns = 500 * MS,
                   .nodes = { UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX },
                   .at_ms = { UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX },
                   .node_us = UINT32_MAX,
                   .answered = true },
    };
    struct request_spans spans;
    char text[REQUEST_ROUTE_SIZE];

    (void)state;
    request_spans_get(&call, 700 * MS, &spans);
    assert_true(sum(&spans) <= 700);
    request_spans_get(&call, 100 * MS, &spans);
    assert_true(sum(&spans) <= 100);
    request_route_print(&call, text);
    assert_int_equal(text[REQUEST_ROUTE_SIZE - 1] == 0 || text[0] != 0, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_spans_of_an_answered_call_follow_one_another),
        cmocka_unit_test(what_was_never_sent_only_waited),
        cmocka_unit_test(a_lost_attempt_is_nobodys_time),
        cmocka_unit_test(spans_add_up_to_no_more_than_the_whole_whatever_a_node_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
