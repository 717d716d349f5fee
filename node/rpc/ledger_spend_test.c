#include "node/rpc/fixture.h"

static void *spend_as(struct fixture *f, char *op_id, const char *currency, int64_t amount)
{
    Holdfast__V1__SpendRequest request = HOLDFAST__V1__SPEND_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount taken = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &taken };

    taken.currency = text_lend(currency);
    taken.amount = amount;
    request.player_id = (char *)"ann";
    request.op_id = op_id;
    request.authority = fixture_authority(f, "unheld");
    request.currencies = amounts;
    request.n_currencies = 1;
    return fixture_mutate(f, METHOD_SPEND, &request.base);
}

static void *spend(struct fixture *f, const char *currency, int64_t amount)
{
    return spend_as(f, fixture_op_id(f), currency, amount);
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

/* Stored with the refusal, so that a duplicate gets them, too. */
static void want_of_funds_tells_what_there_is_and_what_it_takes(void **state)
{
    struct fixture *f = *state;

    assert_non_null(fixture_grant(f, "ann", "unheld", 10));
    assert_null(spend(f, "gold", 11));
    assert_string_equal(f->error->funds->currency, "gold");
    assert_int_equal(f->error->funds->balance, 10);
    assert_int_equal(f->error->funds->needed, 11);
    assert_non_null(spend(f, "debt", 45));
    char *op_id = fixture_op_id(f);
    assert_null(spend_as(f, op_id, "debt", 6)); /* The minimum is -50. */
    assert_string_equal(f->error->funds->currency, "debt");
    assert_int_equal(f->error->funds->balance, -45);
    assert_int_equal(f->error->funds->needed, -44);
    const Holdfast__Internal__V1__OperationRecord *record = fixture_operation(f, "ann", op_id);
    assert_int_equal(record->refusal->funds->needed, -44);
}

/* Replicas of the version before store none. */
static void facts_wait_for_the_version_that_stores_them(void **state)
{
    struct fixture *f = *state;
    struct meta *meta = (struct meta *)(uintptr_t)applier_meta(f->applier);

    meta->apply_version = 2;
    assert_null(spend(f, "gold", 11));
    assert_int_equal(f->error->code, ERROR(INSUFFICIENT_FUNDS));
    assert_null(f->error->funds);
    meta->apply_version = APPLY_VERSION;
    assert_null(spend(f, "gold", 11));
    assert_non_null(f->error->funds);
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
    assert_string_equal(f->error->field, "currencies[\"gold\"].amount");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(a_spend_never_takes_a_balance_below_its_minimum),
        FIXTURE_TEST(want_of_funds_tells_what_there_is_and_what_it_takes),
        FIXTURE_TEST(facts_wait_for_the_version_that_stores_them),
        FIXTURE_TEST(a_spend_of_nothing_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
