/* "A repetition gets the answer of then, whatever became since" (docs/operations.md): a currency
 * that was dropped from the policy between an operation and its repetition. */
#include <string.h>

#include "holdfast/internal/v1/mailbox.pb-c.h"
#include "holdfast/internal/v1/node.pb-c.h"
#include "node/rpc/fixture.h"
#include "runtime/base/check.h"

static int setup(void **state)
{
    static struct fixture f;

    fixture_init_shard(&f, 0, 1);
    assert_non_null(fixture_grant(&f, "ann", "unheld", 100));
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    fixture_deinit(*state);
    return 0;
}

static void drop_all_currencies_but_gems(struct fixture *f)
{
    Holdfast__V1__CurrencyPolicy gems = HOLDFAST__V1__CURRENCY_POLICY__INIT;
    Holdfast__V1__CurrencyPolicy *currencies[] = { &gems };
    Holdfast__V1__Policy policy = HOLDFAST__V1__POLICY__INIT;
    Holdfast__Internal__V1__ApplyPolicyRequest request =
        HOLDFAST__INTERNAL__V1__APPLY_POLICY_REQUEST__INIT;

    gems.name = (char *)"gems";
    policy.version = applier_meta(f->applier)->policy.version + 1;
    policy.currencies = currencies;
    policy.n_currencies = 1;
    request.policy = &policy;
    assert_non_null(fixture_mutate(f, METHOD_APPLY_POLICY, &request.base));
}

/* A call of 5 gold; `op_id` and `authority` are its fields. */
struct call {
    const char *name;
    uint32_t method;
    const ProtobufCMessage *request;
    char **op_id, **authority;
};

static void *ask(struct fixture *f, const struct call *call)
{
    *call->authority =
        fixture_authority(f, call->method == METHOD_DELIVER_TO_PLAYER ? "system:admin" : "unheld");
    return fixture_mutate(f, call->method, call->request);
}

static void repeat_all(struct fixture *f, const struct call *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        *calls[i].op_id = fixture_op_id(f);
        if (ask(f, &calls[i]) == NULL)
            fail_msg("%s: %s", calls[i].name, f->error != NULL ? f->error->message : "pending");
        assert_false(f->outcome.duplicate);
    }
    drop_all_currencies_but_gems(f);
    for (size_t i = 0; i < count; i++) {
        if (ask(f, &calls[i]) == NULL)
            fail_msg("%s again: %s", calls[i].name, f->error->message);
        assert_true(f->outcome.duplicate);
    }
    for (size_t i = 0; i < count; i++) { /* What is no repetition meets the policy of now. */
        *calls[i].op_id = fixture_op_id(f);
        if (ask(f, &calls[i]) != NULL)
            fail_msg("%s was carried out", calls[i].name);
        assert_int_equal(f->error->code, ERROR(INVALID_ARGUMENT));
        assert_string_equal(f->error->field, "currencies[\"gold\"].currency");
    }
}

static void a_repetition_finds_its_outcome_after_its_currency_was_dropped(void **state)
{
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };
    Holdfast__V1__GrantRequest grant = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__SpendRequest spend = HOLDFAST__V1__SPEND_REQUEST__INIT;
    Holdfast__V1__ReserveCurrenciesRequest reserve = HOLDFAST__V1__RESERVE_CURRENCIES_REQUEST__INIT;
    Holdfast__V1__TransferCurrenciesRequest transfer =
        HOLDFAST__V1__TRANSFER_CURRENCIES_REQUEST__INIT;
    Holdfast__Internal__V1__DeliverToPlayerRequest deliver =
        HOLDFAST__INTERNAL__V1__DELIVER_TO_PLAYER_REQUEST__INIT;
    const struct call calls[] = {
        { "Grant", METHOD_GRANT, &grant.base, &grant.op_id, &grant.authority },
        { "Spend", METHOD_SPEND, &spend.base, &spend.op_id, &spend.authority },
        { "ReserveCurrencies", METHOD_RESERVE_CURRENCIES, &reserve.base, &reserve.op_id,
          &reserve.authority },
        { "TransferCurrencies", METHOD_TRANSFER_CURRENCIES, &transfer.base, &transfer.op_id,
          &transfer.authority },
        { "DeliverMail", METHOD_DELIVER_TO_PLAYER, &deliver.base, &deliver.op_id,
          &deliver.authority },
    };

    gold.currency = (char *)"gold";
    gold.amount = 5;
    grant.player_id = spend.player_id = reserve.player_id = transfer.player_id = deliver.player_id =
        (char *)"ann";
    grant.currencies = spend.currencies = reserve.currencies = transfer.currencies =
        deliver.currencies = amounts;
    grant.n_currencies = spend.n_currencies = reserve.n_currencies = transfer.n_currencies =
        deliver.n_currencies = 1;
    reserve.expires_in_ms = 3600000;
    transfer.to_player_id = (char *)"bob";
    repeat_all(*state, calls, ARRAY_SIZE(calls));
}

/* What apply relies on is looked at whether or not the currency is declared. */
static void a_malformed_amount_of_a_dropped_currency_is_refused_before_the_log(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount gems = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold, &gems };
    Holdfast__V1__GrantRequest grant = HOLDFAST__V1__GRANT_REQUEST__INIT;
    const struct call call = { "Grant", METHOD_GRANT, &grant.base, &grant.op_id, &grant.authority };

    drop_all_currencies_but_gems(f);
    gold.currency = (char *)"gold";
    gold.amount = 5;
    gems.currency = (char *)"gems";
    gems.amount = -5;
    grant.player_id = (char *)"ann";
    grant.op_id = fixture_op_id(f);
    grant.currencies = amounts;
    grant.n_currencies = 2;
    assert_null(ask(f, &call));
    assert_false(f->recorded);
    assert_string_equal(f->error->field, "currencies[\"gems\"].amount");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_repetition_finds_its_outcome_after_its_currency_was_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_malformed_amount_of_a_dropped_currency_is_refused_before_the_log, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
