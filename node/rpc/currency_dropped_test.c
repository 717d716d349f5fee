/* The policy loses a currency between a request's check and its entry: the entry is refused, and
 * the refusal is stored, of every method that moves currencies. */
#include "holdfast/internal/v1/transaction.pb-c.h"
#include "holdfast/v1/mailbox.pb-c.h"
#include "node/rpc/fixture.h"

/* Gold is declared no more. */
static void drop_gold(struct fixture *f)
{
    Holdfast__V1__CurrencyPolicy gems = HOLDFAST__V1__CURRENCY_POLICY__INIT;
    Holdfast__V1__CurrencyPolicy *currencies[] = { &gems };
    Holdfast__V1__Policy policy = HOLDFAST__V1__POLICY__INIT;
    Holdfast__Internal__V1__ApplyPolicyRequest request =
        HOLDFAST__INTERNAL__V1__APPLY_POLICY_REQUEST__INIT;

    gems.name = text_lend("gems");
    policy.version = applier_meta(f->applier)->policy.version + 1;
    policy.currencies = currencies;
    policy.n_currencies = 1;
    policy.items_max = 200;
    policy.mailbox_max = 300;
    request.policy = &policy;
    assert_non_null(fixture_mutate(f, METHOD_APPLY_POLICY, &request.base));
}

static void refuses(struct fixture *f, uint32_t method, const ProtobufCMessage *request,
                    const char *op_id)
{
    struct buf body = { 0 };

    assert_non_null(fixture_grant(f, "ann", "unheld", 10));
    assert_true(fixture_prepare(f, method, request, &body));
    drop_gold(f);
    fixture_commit(f, buf_slice(&body));
    assert_int_equal(f->outcome.kind, OUTCOME_REFUSED);
    const Holdfast__Internal__V1__OperationRecord *record = fixture_operation(f, "ann", op_id);
    assert_int_equal(record->state, OPERATION(REFUSED));
    assert_int_equal(record->refusal->code, ERROR(INVALID_ARGUMENT));
    assert_string_equal(record->refusal->limit, "a declared currency: gems");
    assert_string_equal(record->refusal->value, "gold");
    buf_deinit(&body);
}

/* A request of ann, who is held by no server, about one piece of gold. */
#define REQUEST(f, request, op)                                                                    \
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;                       \
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };                                           \
    char *op = fixture_op_id(f);                                                                   \
    gold.currency = text_lend("gold");                                                             \
    gold.amount = 1;                                                                               \
    (request).player_id = text_lend("ann");                                                        \
    (request).op_id = op;                                                                          \
    (request).authority = fixture_authority(f, "unheld");                                          \
    (request).currencies = amounts;                                                                \
    (request).n_currencies = 1

static void a_grant_is_refused(void **state)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;

    REQUEST((struct fixture *)*state, request, op_id);
    request.authority = fixture_authority(*state, "system:payments");
    refuses(*state, METHOD_GRANT, &request.base, op_id);
}

static void a_spend_is_refused(void **state)
{
    Holdfast__V1__SpendRequest request = HOLDFAST__V1__SPEND_REQUEST__INIT;

    REQUEST((struct fixture *)*state, request, op_id);
    refuses(*state, METHOD_SPEND, &request.base, op_id);
}

static void a_transfer_is_refused(void **state)
{
    Holdfast__V1__TransferCurrenciesRequest request =
        HOLDFAST__V1__TRANSFER_CURRENCIES_REQUEST__INIT;

    REQUEST((struct fixture *)*state, request, op_id);
    request.to_player_id = text_lend("bob");
    refuses(*state, METHOD_TRANSFER_CURRENCIES, &request.base, op_id);
}

static void a_reservation_is_refused(void **state)
{
    Holdfast__V1__ReserveCurrenciesRequest request = HOLDFAST__V1__RESERVE_CURRENCIES_REQUEST__INIT;

    REQUEST((struct fixture *)*state, request, op_id);
    request.expires_in_ms = 60000;
    refuses(*state, METHOD_RESERVE_CURRENCIES, &request.base, op_id);
}

static void mail_is_refused(void **state)
{
    Holdfast__V1__SendMailRequest request = HOLDFAST__V1__SEND_MAIL_REQUEST__INIT;

    REQUEST((struct fixture *)*state, request, op_id);
    request.to_player_id = text_lend("bob");
    refuses(*state, METHOD_SEND_MAIL, &request.base, op_id);
}

static void a_swap_is_refused(void **state)
{
    Holdfast__Internal__V1__SwapGoodsRequest request =
        HOLDFAST__INTERNAL__V1__SWAP_GOODS_REQUEST__INIT;

    REQUEST((struct fixture *)*state, request, op_id);
    request.other_player_id = text_lend("bob");
    request.other_authority = fixture_authority(*state, "unheld");
    refuses(*state, METHOD_SWAP_GOODS, &request.base, op_id);
}

/* Of a cluster with one shard: all players are its own. */
static int setup(void **state)
{
    int failed = fixture_setup(state);

    if (failed != 0)
        return failed;
    fixture_deinit(*state);
    fixture_init_shard(*state, 0, 1);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_grant_is_refused),       TEST(a_spend_is_refused), TEST(a_transfer_is_refused),
        TEST(a_reservation_is_refused), TEST(mail_is_refused),    TEST(a_swap_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
