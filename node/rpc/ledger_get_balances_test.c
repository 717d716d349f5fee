#include "node/rpc/fixture.h"

static void balances_are_sorted_and_only_those_ever_held(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest grant = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount gems = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold, &gems };
    Holdfast__V1__GetBalancesRequest request = HOLDFAST__V1__GET_BALANCES_REQUEST__INIT;

    gold.currency = (char *)"gold";
    gold.amount = 3;
    gems.currency = (char *)"gems";
    gems.amount = 4;
    grant.player_id = (char *)"ann";
    grant.op_id = fixture_op_id(f);
    grant.authority = fixture_authority(f, "unheld");
    grant.currencies = amounts;
    grant.n_currencies = 2;
    assert_non_null(fixture_mutate(f, METHOD_GRANT, &grant.base));
    fixture_restart(f);
    request.player_id = (char *)"ann";
    Holdfast__V1__GetBalancesResponse *response =
        fixture_read(f, METHOD_GET_BALANCES, &request.base);
    assert_int_equal(response->n_balances, 2);
    assert_string_equal(response->balances[0]->currency, "gems");
    assert_int_equal(response->balances[1]->amount, 3);
    assert_int_equal(response->version, 1);
    assert_int_equal(fixture_as_of(f, response->as_of).counter, f->counter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(balances_are_sorted_and_only_those_ever_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
