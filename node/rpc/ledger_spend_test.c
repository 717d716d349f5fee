#include "node/rpc/fixture.h"

static void *spend(struct fixture *f, const char *currency, int64_t amount)
{
    Holdfast__V1__SpendRequest request = HOLDFAST__V1__SPEND_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount taken = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &taken };

    taken.currency = (char *)(uintptr_t)currency;
    taken.amount = amount;
    request.player_id = (char *)"ann";
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "unheld");
    request.currencies = amounts;
    request.n_currencies = 1;
    return fixture_mutate(f, METHOD_SPEND, &request.base);
}

static void a_spend_never_takes_a_balance_below_its_minimum(void **state)
{
    struct fixture *f = *state;

    assert_non_null(fixture_grant(f, "ann", "unheld", 10));
    assert_null(spend(f, "gold", 11));
    assert_int_equal(f->error->code, ERROR(INSUFFICIENT_FUNDS));
    assert_string_equal(f->error->limit, "0");
    assert_string_equal(f->error->value, "-11");
    Holdfast__V1__SpendResponse *response = spend(f, "gold", 10);
    assert_non_null(response);
    assert_int_equal(response->balances[0]->amount, 0);
    assert_int_equal(response->ledger_seq, 2);
    assert_non_null(spend(f, "debt", 50));
    assert_null(spend(f, "debt", 1));
    assert_int_equal(fixture_balance(f, "ann", "debt"), -50);
}

static void a_spend_of_nothing_is_refused(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__SpendRequest request = HOLDFAST__V1__SPEND_REQUEST__INIT;

    request.player_id = (char *)"ann";
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "unheld");
    assert_null(fixture_mutate(f, METHOD_SPEND, &request.base));
    assert_string_equal(f->error->field, "currencies");
    assert_null(spend(f, "gold", 0));
    assert_string_equal(f->error->field, "currencies[0].amount");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(a_spend_never_takes_a_balance_below_its_minimum),
        FIXTURE_TEST(a_spend_of_nothing_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
