#include "node/rpc/fixture.h"

#include "holdfast/debug/v1/debug.pb-c.h"

static void *inject(struct fixture *f, const char *scope, const char *currency, int64_t amount)
{
    Holdfast__Debug__V1__InjectRequest request = HOLDFAST__DEBUG__V1__INJECT_REQUEST__INIT;

    request.player_id = (char *)"ann";
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, scope);
    request.currency = text_lend(currency);
    request.amount = amount;
    return fixture_mutate(f, METHOD_DEBUG_INJECT, &request.base);
}

static void currency_comes_out_of_nothing_for_an_admin_alone(void **state)
{
    struct fixture *f = *state;

    assert_non_null(fixture_grant(f, "ann", "unheld", 5));
    assert_null(inject(f, "system:payments", "gold", 3));
    assert_int_equal(f->error->code, ERROR(PERMISSION_DENIED));
    assert_int_equal(fixture_balance(f, "ann", "gold"), 5);
    assert_non_null(inject(f, "system:admin", "gold", 3));
    assert_int_equal(fixture_balance(f, "ann", "gold"), 8);
}

static void a_currency_that_is_unknown_is_refused_before_the_log(void **state)
{
    struct fixture *f = *state;

    assert_null(inject(f, "system:admin", "shells", 3));
    assert_false(f->recorded);
    assert_string_equal(f->error->field, "currency");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(currency_comes_out_of_nothing_for_an_admin_alone),
        FIXTURE_TEST(a_currency_that_is_unknown_is_refused_before_the_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
