#include "router/core/refusal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "idl/error_code.h"

static void a_field_is_told_with_its_limit_and_a_short_value(void **state)
{
    static const char value[] =
        "0123456789012345678901234567890123456789012345678901234567890\xc3\xa4"
        "\xc3\xa4";
    Holdfast__V1__ErrorDetail detail;
    struct arena arena = { 0 };
    (void)state;

    refusal_make_field(&arena, &detail,
                       &(struct refusal_field){ "name", "1 to 60 bytes", SLICE_LITERAL(value) },
                       "too long");
    assert_int_equal(detail.code, CODE(INVALID_ARGUMENT));
    assert_string_equal(detail.field, "name");
    assert_string_equal(detail.limit, "1 to 60 bytes");
    assert_int_equal(strlen(detail.value), 63); /* No character is cut. */
    assert_non_null(strstr(detail.message, "name: too long: expected 1 to 60 bytes, got \"0123"));
    arena_deinit(&arena);
}

static void an_earlier_answer_stands_in_for_a_shard_that_is_away(void **state)
{
    (void)state;

    assert_true(refusal_may_be_stale(CODE(UNAVAILABLE)));
    assert_true(refusal_may_be_stale(CODE(DEADLINE_EXCEEDED)));
    assert_true(refusal_may_be_stale(CODE(THROTTLED)));
    assert_false(refusal_may_be_stale(CODE(INTERNAL))); /* What is wrong is told. */
    assert_false(refusal_may_be_stale(CODE(NOT_FOUND)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_field_is_told_with_its_limit_and_a_short_value),
        cmocka_unit_test(an_earlier_answer_stands_in_for_a_shard_that_is_away),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
