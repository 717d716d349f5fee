#include "node/rpc/fixture.h"

#define EXPIRES_IN_MS 5000
#define RESERVE_SEQ   2u /* The grant is the first entry of the ledger. */

static void reserve(struct fixture *f)
{
    Holdfast__V1__ReserveCurrenciesRequest request = HOLDFAST__V1__RESERVE_CURRENCIES_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };

    gold.currency = (char *)"gold";
    gold.amount = 70;
    request.player_id = (char *)"ann";
    request.op_id = (char *)"claim:bid";
    request.authority = fixture_authority(f, "unheld");
    request.currencies = amounts;
    request.n_currencies = 1;
    request.expires_in_ms = EXPIRES_IN_MS;
    assert_non_null(fixture_grant(f, "ann", "unheld", 100));
    assert_non_null(fixture_mutate(f, METHOD_RESERVE_CURRENCIES, &request.base));
    assert_int_equal(fixture_balance(f, "ann", "gold"), 30);
}

/* As an owner whose clock runs ahead, or that lost the race with a Post, would log it. */
static void log_due(struct fixture *f, uint64_t ledger_seq)
{
    Holdfast__Internal__V1__ReservationDueRequest request =
        HOLDFAST__INTERNAL__V1__RESERVATION_DUE_REQUEST__INIT;
    struct buf body = { 0 };

    request.player_id = (char *)"ann";
    request.ledger_seq = ledger_seq;
    owner_op_encode(METHOD_RESERVATION_DUE, SLICE_LITERAL("player:ann"), &request.base, &body);
    fixture_commit(f, buf_slice(&body));
    buf_deinit(&body);
}

static void what_is_due_comes_back_by_itself(void **state)
{
    struct fixture *f = *state;
    struct fixture_sums sums;

    reserve(f);
    assert_int_equal(fixture_pass(f, EXPIRES_IN_MS - 1), 0);
    assert_int_equal(fixture_balance(f, "ann", "gold"), 30);
    assert_int_equal(fixture_pass(f, 1), 1);
    assert_int_equal(f->outcome.method, METHOD_RESERVATION_DUE);
    assert_int_equal(fixture_balance(f, "ann", "gold"), 100);
    fixture_audit(f, "ann", "gold", &sums);
    assert_int_equal(sums.entries, 3);
    assert_int_equal(sums.reserved, 0);
}

static void what_is_not_due_stays_reserved(void **state)
{
    struct fixture *f = *state;

    reserve(f);
    log_due(f, RESERVE_SEQ);
    assert_int_equal(fixture_balance(f, "ann", "gold"), 30);
    log_due(f, RESERVE_SEQ + 1);
    assert_int_equal(fixture_balance(f, "ann", "gold"), 30);
}

static void what_came_back_does_not_come_back_twice(void **state)
{
    struct fixture *f = *state;
    struct fixture_sums sums;

    reserve(f);
    assert_int_equal(fixture_pass(f, EXPIRES_IN_MS), 1);
    log_due(f, RESERVE_SEQ);
    assert_int_equal(fixture_balance(f, "ann", "gold"), 100);
    fixture_audit(f, "ann", "gold", &sums);
    assert_int_equal(sums.entries, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(what_is_due_comes_back_by_itself),
        FIXTURE_TEST(what_is_not_due_stays_reserved),
        FIXTURE_TEST(what_came_back_does_not_come_back_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
