#include "node/rpc/fixture.h"

#include <string.h>

#include "node/core/goods/ledger.h"
#include "node/core/handler/refusal.h"
#include "node/core/player/meta.h"

static Holdfast__V1__GrantRequest request_of(struct fixture *f, const char *authority)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;

    request.player_id = (char *)"ann";
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, authority);
    request.reason = (char *)"purchase";
    return request;
}

static void a_grant_adds_currencies_and_mints_items_in_one_entry(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest request = request_of(f, "system:payments");
    Holdfast__V1__CurrencyAmount gems = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold, &gems };
    Holdfast__V1__ItemSpec sword = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[] = { &sword, &sword };

    gold.currency = (char *)"gold";
    gold.amount = 40;
    gems.currency = (char *)"gems";
    gems.amount = 2;
    sword.kind = (char *)"sword";
    sword.attributes = (char *)"{\"b\":1, \"a\":2.50}";
    request.currencies = amounts;
    request.n_currencies = 2;
    request.items = items;
    request.n_items = 2;
    Holdfast__V1__GrantResponse *response = fixture_mutate(f, METHOD_GRANT, &request.base);

    assert_non_null(response);
    assert_int_equal(response->ledger_seq, 1);
    assert_int_equal(response->n_balances, 2);
    assert_string_equal(response->balances[0]->currency, "gems"); /* Sorted, as in the log. */
    assert_int_equal(response->balances[0]->amount, 2);
    assert_int_equal(response->balances[1]->amount, 40);
    assert_int_equal(response->n_item_uids, 2);
    assert_string_not_equal(response->item_uids[0], response->item_uids[1]);
    assert_int_equal(response->write->version, 1);
    assert_int_equal(response->write->replicas_fsynced, 2);
    assert_false(response->write->duplicate);
    assert_int_equal(fixture_as_of(f, response->write->as_of).epoch, 1);
}

static void wrong_requests_are_refused_before_the_log_naming_field_limit_and_value(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest request = request_of(f, "unheld");
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold, &gold };
    Holdfast__V1__ItemSpec sword = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[] = { &sword };

    assert_null(fixture_mutate(f, METHOD_GRANT, &request.base));
    assert_string_equal(f->error->field, "currencies");
    request.currencies = amounts;
    request.n_currencies = 1;
    gold.currency = (char *)"silver";
    gold.amount = 1;
    assert_null(fixture_mutate(f, METHOD_GRANT, &request.base));
    assert_int_equal(f->error->code, ERROR(INVALID_ARGUMENT));
    assert_string_equal(f->error->field, "currencies[\"silver\"].currency");
    assert_string_equal(f->error->limit, "a declared currency: debt gems gold");
    assert_string_equal(f->error->value, "silver");
    assert_null(strstr(f->error->message, "did you mean"));
    gold.currency = (char *)"glod";
    assert_null(fixture_mutate(f, METHOD_GRANT, &request.base));
    assert_string_equal(f->error->message,
                        "currencies[\"glod\"].currency: expected a declared currency: debt gems "
                        "gold, got \"glod\"; did you mean gold?");
    assert_string_equal(f->error->value, "glod");
    gold.currency = (char *)"gold";
    const int64_t wrong[] = { 0, -1, AMOUNT_MAX + 1, INT64_MIN };
    for (size_t i = 0; i < 4; i++) {
        gold.amount = wrong[i];
        assert_null(fixture_mutate(f, METHOD_GRANT, &request.base));
        assert_string_equal(f->error->field, "currencies[\"gold\"].amount");
        assert_string_equal(f->error->limit, "1 to 9007199254740991");
        assert_false(f->error->final);
    }
    gold.amount = 1;
    request.n_currencies = 2;
    assert_null(fixture_mutate(f, METHOD_GRANT, &request.base));
    assert_string_equal(f->error->field, "currencies[\"gold\"]");
    assert_string_equal(f->error->limit, "once");
    request.n_currencies = 0;
    request.items = items;
    request.n_items = 1;
    assert_null(fixture_mutate(f, METHOD_GRANT, &request.base));
    assert_string_equal(f->error->field, "items[0].kind");
    sword.kind = (char *)"sword";
    sword.attributes = (char *)"[1]";
    assert_null(fixture_mutate(f, METHOD_GRANT, &request.base));
    assert_string_equal(f->error->field, "items[0].attributes");
    sword.attributes = (char *)"[]";
    assert_non_null(fixture_mutate(f, METHOD_GRANT, &request.base));
}

static void a_balance_never_passes_its_maximum_and_nothing_is_kept_of_the_refused(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest request = request_of(f, "unheld");
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount gems = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold, &gems };

    gold.currency = (char *)"gold";
    gold.amount = 5;
    gems.currency = (char *)"gems";
    gems.amount = 1001;
    request.currencies = amounts;
    request.n_currencies = 2;
    assert_null(fixture_mutate(f, METHOD_GRANT, &request.base));
    assert_int_equal(f->error->code, ERROR(CAPACITY_FULL));
    assert_string_equal(f->error->capacity->what, "balance");
    assert_int_equal(f->error->capacity->max, 1000);
    assert_string_equal(f->error->field, "currencies[\"gems\"].amount");
    assert_string_equal(f->error->limit, "1000");
    assert_true(f->error->final);
    assert_int_equal(fixture_balance(f, "ann", "gold"), 0);
    request.op_id = fixture_op_id(f);
    gems.amount = 1000;
    assert_non_null(fixture_mutate(f, METHOD_GRANT, &request.base));
    request.op_id = fixture_op_id(f);
    gems.amount = 1;
    assert_null(fixture_mutate(f, METHOD_GRANT, &request.base));
    assert_int_equal(fixture_balance(f, "ann", "gold"), 5);
}

/* The log has currencies sorted, and the callers may each have another order. */
static void a_stored_refusal_names_a_currency_whatever_the_order(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest request = request_of(f, "unheld");
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount gems = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *orders[][2] = { { &gold, &gems }, { &gems, &gold } };

    gold.currency = (char *)"gold";
    gold.amount = 5;
    gems.currency = (char *)"gems";
    gems.amount = 1001;
    request.n_currencies = 2;
    for (size_t i = 0; i < 3; i++) {
        if (i == 2)
            fixture_restart(f);
        request.authority = fixture_authority(f, "unheld");
        request.currencies = orders[i % 2];
        assert_null(fixture_mutate(f, METHOD_GRANT, &request.base));
        assert_true(f->error->final);
        assert_int_equal(f->error->code, ERROR(CAPACITY_FULL));
        assert_string_equal(f->error->field, "currencies[\"gems\"].amount");
    }
    /* What is refused before the log is named by the same rule. */
    gold.amount = -1;
    gems.amount = 1;
    request.op_id = fixture_op_id(f);
    for (size_t i = 0; i < 2; i++) {
        request.authority = fixture_authority(f, "unheld");
        request.currencies = orders[i];
        assert_null(fixture_mutate(f, METHOD_GRANT, &request.base));
        assert_string_equal(f->error->field, "currencies[\"gold\"].amount");
    }
    gems.currency = (char *)"gold";
    gold.amount = 1;
    request.authority = fixture_authority(f, "unheld");
    assert_null(fixture_mutate(f, METHOD_GRANT, &request.base));
    assert_string_equal(f->error->message, "currencies[\"gold\"]: the name is there twice");
    assert_string_equal(f->error->field, "currencies[\"gold\"]");
    assert_string_equal(f->error->limit, "once");
}

/* Entries of before are replayed to the outcome that they had. */
static void places_stay_in_what_earlier_versions_stored(void **state)
{
    struct fixture *f = *state;

    applier_set_version_max(f->applier, ENTRY_KEYS_APPLY_VERSION - 1);
    ((struct meta *)(uintptr_t)applier_meta(f->applier))->apply_version =
        ENTRY_KEYS_APPLY_VERSION - 1;
    assert_non_null(fixture_grant(f, "ann", "unheld", AMOUNT_MAX));
    assert_null(fixture_grant(f, "ann", "unheld", AMOUNT_MAX));
    assert_string_equal(f->error->field, "currencies[0].amount");
}

static void items_beyond_the_policy_are_refused(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest request = request_of(f, "system:match");
    Holdfast__V1__ItemSpec item = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[64];

    item.kind = (char *)"potion";
    for (size_t i = 0; i < 64; i++)
        items[i] = &item;
    request.items = items;
    request.n_items = 64;
    for (int i = 0; i < 3; i++) {
        request.op_id = fixture_op_id(f);
        assert_non_null(fixture_mutate(f, METHOD_GRANT, &request.base));
    }
    request.op_id = fixture_op_id(f);
    assert_null(fixture_mutate(f, METHOD_GRANT, &request.base));
    assert_int_equal(f->error->code, ERROR(CAPACITY_FULL));
    assert_string_equal(f->error->capacity->what, "items");
    assert_string_equal(f->error->limit, "200");
    assert_string_equal(f->error->value, "256");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(a_grant_adds_currencies_and_mints_items_in_one_entry),
        FIXTURE_TEST(wrong_requests_are_refused_before_the_log_naming_field_limit_and_value),
        FIXTURE_TEST(a_balance_never_passes_its_maximum_and_nothing_is_kept_of_the_refused),
        FIXTURE_TEST(a_stored_refusal_names_a_currency_whatever_the_order),
        FIXTURE_TEST(places_stay_in_what_earlier_versions_stored),
        FIXTURE_TEST(items_beyond_the_policy_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
