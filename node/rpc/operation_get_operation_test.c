#include "node/rpc/fixture.h"

#include <string.h>

static void outcomes_are_told_with_method_result_and_dot(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__ItemSpec item = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[] = { &item };

    item.kind = (char *)"orb";
    request.player_id = (char *)"ann";
    request.op_id = (char *)"receipt:GPA.7";
    request.attempt = 4;
    request.authority = fixture_authority(f, "system:payments");
    request.items = items;
    request.n_items = 1;
    assert_non_null(fixture_mutate(f, METHOD_GRANT, &request.base));
    uint64_t counter = f->counter;
    fixture_restart(f);
    Holdfast__Internal__V1__OperationRecord *status = fixture_operation(f, "ann", "receipt:GPA.7");
    assert_int_equal(status->state, OPERATION(COMMITTED));
    assert_int_equal(status->attempt, 4);
    assert_string_equal(status->method, "holdfast.v1.LedgerService/Grant");
    assert_int_equal(status->dot->counter, counter);
    assert_int_equal(status->decided_at_ms, (int64_t)FIXTURE_START_MS);
    Holdfast__V1__GrantResponse *result =
        holdfast__v1__grant_response__unpack(NULL, status->result.len, status->result.data);
    assert_int_equal(result->n_item_uids, 1);
    assert_int_equal(result->write->version, 1);
    assert_true(result->write->duplicate);
    holdfast__v1__grant_response__free_unpacked(result, NULL);
}

static void unseen_refused_and_expired_operations_are_told_apart(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__SpendRequest request = HOLDFAST__V1__SPEND_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };
    char *id = fixture_op_id(f);

    assert_int_equal(fixture_operation(f, "ann", id)->state, OPERATION(UNKNOWN));
    gold.currency = (char *)"gold";
    gold.amount = 1;
    request.player_id = (char *)"ann";
    request.op_id = id;
    request.authority = fixture_authority(f, "unheld");
    request.currencies = amounts;
    request.n_currencies = 1;
    assert_null(fixture_mutate(f, METHOD_SPEND, &request.base));
    Holdfast__Internal__V1__OperationRecord *status = fixture_operation(f, "ann", id);
    assert_int_equal(status->state, OPERATION(REFUSED));
    assert_int_equal(status->refusal->code, ERROR(INSUFFICIENT_FUNDS));
    fixture_pass(f, 25ull * 3600 * 1000);
    assert_int_equal(fixture_operation(f, "ann", id)->state, OPERATION(EXPIRED));
}

static void entity_and_id_are_checked(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GetOperationRequest request = HOLDFAST__V1__GET_OPERATION_REQUEST__INIT;

    request.entity = (char *)"ann";
    request.op_id = fixture_op_id(f);
    assert_null(fixture_read(f, METHOD_GET_OPERATION, &request.base));
    assert_string_equal(f->error->field, "entity");
    request.entity = (char *)"player:ann";
    request.op_id = (char *)"7";
    assert_null(fixture_read(f, METHOD_GET_OPERATION, &request.base));
    assert_string_equal(f->error->field, "op_id");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(outcomes_are_told_with_method_result_and_dot),
        FIXTURE_TEST(unseen_refused_and_expired_operations_are_told_apart),
        FIXTURE_TEST(entity_and_id_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
