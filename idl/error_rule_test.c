#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "idl/error_code.h"
#include "idl/error_rule.h"

/* error.proto: "0 when waiting does not help". */
static void what_may_pass_says_when_and_nothing_else_does(void **state)
{
    const ProtobufCEnumDescriptor *codes = &holdfast__v1__error_code__descriptor;
    (void)state;

    for (unsigned i = 0; i < codes->n_values; i++) {
        const struct error_rule *rule =
            error_rule_get((Holdfast__V1__ErrorCode)codes->values[i].value);
        assert_int_equal(rule->course == ERROR_REFUSED, rule->retry_after_ms == 0);
    }
    assert_int_equal(error_rule_get((Holdfast__V1__ErrorCode)999)->course, ERROR_UNKNOWN);
    assert_int_equal(error_rule_get((Holdfast__V1__ErrorCode)-1)->course, ERROR_UNKNOWN);
}

/* A new code without a row would have the zeros of ERROR_REFUSED. */
static void every_code_has_a_row(void **state)
{
    static const Holdfast__V1__ErrorCode rows[] = {
#define ROW_CODE(name, course, retry_after_ms, text) CODE(name),
        ERROR_RULES(ROW_CODE)
#undef ROW_CODE
    };
    const ProtobufCEnumDescriptor *codes = &holdfast__v1__error_code__descriptor;
    (void)state;

    assert_int_equal(sizeof rows / sizeof *rows, codes->n_values);
    for (unsigned i = 0; i < codes->n_values; i++)
        assert_int_equal(rows[i], codes->values[i].value);
}

static void only_what_is_missing_is_filled_in(void **state)
{
    Holdfast__V1__ErrorDetail detail = HOLDFAST__V1__ERROR_DETAIL__INIT;
    (void)state;

    detail.code = CODE(UNAVAILABLE);
    assert_int_equal(error_complete(&detail).retry_after_ms, 500);
    assert_int_equal(detail.retry_after_ms, 0);
    detail.retry_after_ms = 7;
    assert_int_equal(error_complete(&detail).retry_after_ms, 7);
    detail.code = CODE(SESSION_LOCKED);
    detail.retry_after_ms = 0;
    detail.final = true; /* As it was recorded. */
    assert_int_equal(error_complete(&detail).retry_after_ms, 0);
    detail.code = CODE(INSUFFICIENT_FUNDS);
    detail.final = false;
    assert_int_equal(error_complete(&detail).retry_after_ms, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_may_pass_says_when_and_nothing_else_does),
        cmocka_unit_test(every_code_has_a_row),
        cmocka_unit_test(only_what_is_missing_is_filled_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
