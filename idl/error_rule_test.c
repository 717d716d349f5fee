#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "idl/error_code.h"
#include "idl/error_rule.h"

#define OUTCOME(name) HOLDFAST__V1__OUTCOME__OUTCOME_##name
#define ACTION(name)  HOLDFAST__V1__ACTION__ACTION_##name

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
#define ROW_CODE(name, ...) CODE(name),
        ERROR_RULES(ROW_CODE)
#undef ROW_CODE
    };
    const ProtobufCEnumDescriptor *codes = &holdfast__v1__error_code__descriptor;
    (void)state;

    assert_int_equal(sizeof rows / sizeof *rows, codes->n_values);
    for (unsigned i = 0; i < codes->n_values; i++)
        assert_int_equal(rows[i], codes->values[i].value);
}

static bool may_wait(Holdfast__V1__Action action)
{
    return action == ACTION(RETRY_SAME) || action == ACTION(RAISE_ATTEMPT);
}

static void check_whole(const Holdfast__V1__ErrorDetail *whole, bool final)
{
    enum error_course course = error_rule_get(whole->code)->course;

    assert_int_not_equal(whole->outcome, OUTCOME(UNSPECIFIED));
    assert_int_not_equal(whole->action, ACTION(UNSPECIFIED));
    assert_int_equal(whole->outcome == OUTCOME(REFUSED), final);
    assert_int_equal(whole->outcome == OUTCOME(UNKNOWN), !final && course == ERROR_UNKNOWN);
    /* What may pass, or may have been done, is sent again; what is recorded never is. */
    assert_int_equal(whole->action == ACTION(RETRY_SAME), !final && course != ERROR_REFUSED);
    /* Only a recorded outcome is in the way of its attempt. */
    if (whole->action == ACTION(RAISE_ATTEMPT))
        assert_true(final);
    if (whole->action == ACTION(RETRY_SAME))
        assert_true(whole->retry_after_ms > 0);
    if (!may_wait(whole->action))
        assert_int_equal(whole->retry_after_ms, 0);
}

/* What a client relies on, whatever the code. */
static void every_error_has_an_outcome_and_an_action_that_fit(void **state)
{
    const ProtobufCEnumDescriptor *codes = &holdfast__v1__error_code__descriptor;
    (void)state;

    for (unsigned i = 0; i <= codes->n_values; i++) {
        for (int final = 0; final < 2; final++) {
            for (uint32_t retry_after_ms = 0; retry_after_ms < 2; retry_after_ms++) {
                Holdfast__V1__ErrorDetail detail = HOLDFAST__V1__ERROR_DETAIL__INIT;
                /* The last one is a code that this build does not know. */
                detail.code =
                    (Holdfast__V1__ErrorCode)(i < codes->n_values ? codes->values[i].value : 999);
                detail.retry_after_ms = retry_after_ms;
                if (final)
                    detail.outcome = OUTCOME(REFUSED);
                Holdfast__V1__ErrorDetail whole = error_complete(&detail);
                check_whole(&whole, final);
                Holdfast__V1__ErrorDetail twice = error_complete(&whole);
                assert_int_equal(twice.outcome, whole.outcome);
                assert_int_equal(twice.action, whole.action);
                assert_int_equal(twice.retry_after_ms, whole.retry_after_ms);
            }
        }
    }
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
    detail.outcome = OUTCOME(REFUSED); /* As it was recorded. */
    assert_int_equal(error_complete(&detail).retry_after_ms, 0);
    detail.retry_after_ms = 9;
    assert_int_equal(error_complete(&detail).retry_after_ms, 9);
    detail.code = CODE(VERSION_CONFLICT);
    assert_int_equal(error_complete(&detail).retry_after_ms, 0);
}

static void headers_have_short_words(void **state)
{
    Holdfast__V1__ErrorDetail detail = HOLDFAST__V1__ERROR_DETAIL__INIT;
    const ProtobufCEnumDescriptor *codes = &holdfast__v1__error_code__descriptor;
    (void)state;

    for (unsigned i = 0; i < codes->n_values; i++) {
        detail.code = (Holdfast__V1__ErrorCode)codes->values[i].value;
        assert_true(error_words_of(&detail).code[0] != 0);
    }
    detail.code = CODE(SESSION_LOCKED);
    detail = error_complete(&detail);
    assert_string_equal(error_words_of(&detail).code, "session_locked");
    assert_string_equal(error_words_of(&detail).action, "retry_same");
    detail.code = (Holdfast__V1__ErrorCode)999;
    assert_string_equal(error_words_of(&detail).code, "unspecified");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_may_pass_says_when_and_nothing_else_does),
        cmocka_unit_test(every_code_has_a_row),
        cmocka_unit_test(every_error_has_an_outcome_and_an_action_that_fit),
        cmocka_unit_test(headers_have_short_words),
        cmocka_unit_test(only_what_is_missing_is_filled_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
