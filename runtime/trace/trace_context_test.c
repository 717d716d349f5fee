#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/check.h"
#include "runtime/trace/trace_context.h"

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN  "00f067aa0ba902b7"
#define ZEROS "00000000000000000000000000000000"

static bool parses(const char *text, struct trace_parent *ret_parent)
{
    return trace_parent_parse(slice_from_text(text), ret_parent);
}

static void a_traceparent_gives_trace_span_and_flags(void **state)
{
    struct trace_parent parent;
    char text[TRACE_TEXT_SIZE], span[SPAN_TEXT_SIZE];

    (void)state;
    assert_true(parses("00-" TRACE "-" SPAN "-01", &parent));
    trace_print(parent.trace_id, text);
    trace_span_print(parent.span, span);
    assert_string_equal(text, TRACE);
    assert_string_equal(span, SPAN);
    assert_int_equal(parent.flags, 1);
    /* Flags that this version knows nothing of are let through. */
    assert_true(parses("00-" TRACE "-" SPAN "-ff", &parent));
}

static void what_is_malformed_is_refused_and_changes_nothing(void **state)
{
    static const char *const bad[] = {
        "",
        "00",
        "00-" TRACE "-" SPAN,
        "00-" TRACE "-" SPAN "-",
        "00-" TRACE "-" SPAN "-0",
        "00-" TRACE "-" SPAN "-0g",
        "00-" TRACE "-" SPAN "-0A",
        "00-" TRACE "-" SPAN "-01 ",
        " 00-" TRACE "-" SPAN "-01",
        "00-" TRACE "-" SPAN "-01-",
        "00-" TRACE "-" SPAN "-01-extra",
        "0-" TRACE "-" SPAN "-001",
        "0x-" TRACE "-" SPAN "-01",
        "00_" TRACE "-" SPAN "-01",
        "00-" TRACE "_" SPAN "-01",
        "00-" TRACE "-" SPAN "_01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN "-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473-" SPAN "-011",
        "00-" TRACE "-00F067AA0BA902B7-01",
        "00-" ZEROS "-" SPAN "-01",
        "00-" TRACE "-0000000000000000-01",
        "ff-" TRACE "-" SPAN "-01",
    };
    struct trace_parent before, parent;

    (void)state;
    memset(&before, 0x5a, sizeof before);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        memcpy(&parent, &before, sizeof parent);
        if (parses(bad[i], &parent))
            fail_msg("\"%s\" was taken", bad[i]);
        assert_memory_equal(&parent, &before, sizeof parent);
    }
}

/* Section 3.2.4 of the recommendation. */
static void a_later_version_is_read_as_far_as_it_is_known(void **state)
{
    struct trace_parent parent;

    (void)state;
    assert_true(parses("01-" TRACE "-" SPAN "-01", &parent));
    assert_true(parses("fe-" TRACE "-" SPAN "-09-what-the-future-brings", &parent));
    assert_int_equal(parent.flags, 9);
    assert_false(parses("01-" TRACE "-" SPAN "-01.extra", &parent));
    assert_false(parses("01-" TRACE "-" SPAN "-01extra", &parent));
    assert_false(parses("01-" TRACE "-" SPAN, &parent));
    assert_false(parses("01-" ZEROS "-" SPAN "-01-x", &parent));
}

static void begun_traces_differ_and_are_never_zero(void **state)
{
    uint8_t a[TRACE_ID_SIZE], b[TRACE_ID_SIZE];
    static const uint8_t none[TRACE_ID_SIZE];
    uint64_t random = 1;

    (void)state;
    trace_id_init(a, &random);
    trace_id_init(b, &random);
    assert_true(trace_is_set(a) && trace_is_set(b));
    assert_memory_not_equal(a, b, sizeof a);
    assert_false(trace_is_set(none));
}

static void both_sides_of_a_call_find_the_same_span(void **state)
{
    uint8_t a[TRACE_ID_SIZE] = { 1 }, b[TRACE_ID_SIZE] = { 2 };

    (void)state;
    assert_true(trace_span(a, 17) == trace_span(a, 17));
    assert_true(trace_span(a, 17) != trace_span(a, 18));
    assert_true(trace_span(a, 17) != trace_span(b, 17));
    assert_true(trace_span(a, 17) != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_traceparent_gives_trace_span_and_flags),
        cmocka_unit_test(what_is_malformed_is_refused_and_changes_nothing),
        cmocka_unit_test(a_later_version_is_read_as_far_as_it_is_known),
        cmocka_unit_test(begun_traces_differ_and_are_never_zero),
        cmocka_unit_test(both_sides_of_a_call_find_the_same_span),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
