#include "node/rpc/fixture.h"

#include <string.h>

static void *spend(struct fixture *f, const char *op_id, uint32_t attempt)
{
    Holdfast__V1__SpendRequest request = HOLDFAST__V1__SPEND_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };

    gold.currency = (char *)"gold";
    gold.amount = 10;
    request.player_id = (char *)"ann";
    request.op_id = text_lend(op_id);
    request.attempt = attempt;
    request.authority = fixture_authority(f, "unheld");
    request.currencies = amounts;
    request.n_currencies = 1;
    return fixture_mutate(f, METHOD_SPEND, &request.base);
}

static void a_packet_that_arrives_after_the_seal_never_commits(void **state)
{
    struct fixture *f = *state;
    char *id = fixture_op_id(f);

    assert_non_null(fixture_grant(f, "ann", "unheld", 100));
    Holdfast__Internal__V1__OperationRecord *status = fixture_seal(f, "ann", id);
    assert_int_equal(status->state, OPERATION(ABORTED));
    assert_true(status->attempt == UINT32_MAX);
    fixture_restart(f);
    assert_null(spend(f, id, 0));
    assert_int_equal(f->error->code, ERROR(OPERATION_ABORTED));
    assert_true(f->error->final);
    assert_null(spend(f, id, UINT32_MAX));
    assert_int_equal(f->error->code, ERROR(OPERATION_ABORTED));
    assert_int_equal(fixture_seal(f, "ann", id)->state, OPERATION(ABORTED));
    assert_int_equal(fixture_balance(f, "ann", "gold"), 100);
}

static void a_seal_finds_what_was_committed_before_it(void **state)
{
    struct fixture *f = *state;
    char *id = fixture_op_id(f);

    assert_non_null(fixture_grant(f, "ann", "unheld", 100));
    assert_non_null(spend(f, id, 0));
    Holdfast__Internal__V1__OperationRecord *status = fixture_seal(f, "ann", id);
    assert_int_equal(status->state, OPERATION(COMMITTED));
    assert_true(status->result.len > 0);
    assert_non_null(spend(f, id, 0));
    assert_true(f->outcome.duplicate);
}

static void a_sealed_refusal_stays_one_whatever_attempt_comes(void **state)
{
    struct fixture *f = *state;
    char *id = fixture_op_id(f);

    assert_null(spend(f, id, 0));
    assert_int_equal(f->error->code, ERROR(INSUFFICIENT_FUNDS));
    assert_int_equal(fixture_seal(f, "ann", id)->state, OPERATION(REFUSED));
    assert_non_null(fixture_grant(f, "ann", "unheld", 100));
    assert_null(spend(f, id, 7));
    assert_int_equal(f->error->code, ERROR(INSUFFICIENT_FUNDS));
    assert_int_equal(fixture_balance(f, "ann", "gold"), 100);
}

static void without_seal_it_only_looks(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ResolveOperationRequest request = HOLDFAST__V1__RESOLVE_OPERATION_REQUEST__INIT;
    char *id = fixture_op_id(f);

    request.entity = (char *)"player:ann";
    request.op_id = id;
    Holdfast__Internal__V1__OperationAnswer *response =
        fixture_mutate(f, METHOD_RESOLVE_OPERATION, &request.base);
    assert_int_equal(response->operation->state, OPERATION(UNKNOWN));
    assert_non_null(fixture_grant(f, "ann", "unheld", 100));
    assert_non_null(spend(f, id, 0));
}

static void typed_ids_can_be_sealed_for_ever(void **state)
{
    struct fixture *f = *state;

    assert_non_null(fixture_grant(f, "ann", "unheld", 100));
    assert_int_equal(fixture_seal(f, "ann", "claim:1")->state, OPERATION(ABORTED));
    fixture_pass(f, 100ull * 3600 * 1000);
    assert_null(spend(f, "claim:1", 9));
    assert_int_equal(f->error->code, ERROR(OPERATION_ABORTED));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(a_packet_that_arrives_after_the_seal_never_commits),
        FIXTURE_TEST(a_seal_finds_what_was_committed_before_it),
        FIXTURE_TEST(a_sealed_refusal_stays_one_whatever_attempt_comes),
        FIXTURE_TEST(without_seal_it_only_looks),
        FIXTURE_TEST(typed_ids_can_be_sealed_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
