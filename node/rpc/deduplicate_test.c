#include "node/rpc/fixture.h"

#include <string.h>

#define MODE(name) HOLDFAST__V1__START_MODE__START_MODE_##name

struct spend {
    Holdfast__V1__SpendRequest request;
    Holdfast__V1__CurrencyAmount gold;
    Holdfast__V1__CurrencyAmount *amounts[1];
};

static void spend_init(struct fixture *f, struct spend *spend, const char *op_id, int64_t amount)
{
    holdfast__v1__spend_request__init(&spend->request);
    holdfast__v1__currency_amount__init(&spend->gold);
    spend->gold.currency = (char *)"gold";
    spend->gold.amount = amount;
    spend->amounts[0] = &spend->gold;
    spend->request.player_id = (char *)"ann";
    spend->request.op_id = text_lend(op_id);
    spend->request.authority = fixture_authority(f, "unheld");
    spend->request.currencies = spend->amounts;
    spend->request.n_currencies = 1;
}

static Holdfast__V1__SpendResponse *spend_send(struct fixture *f, struct spend *spend)
{
    spend->request.authority = fixture_authority(f, "unheld");
    return fixture_mutate(f, METHOD_SPEND, &spend->request.base);
}

static void a_retry_gets_the_stored_result_under_any_attempt(void **state)
{
    struct fixture *f = *state;
    struct spend spend;

    assert_non_null(fixture_grant(f, "ann", "unheld", 100));
    spend_init(f, &spend, fixture_op_id(f), 30);
    Holdfast__V1__SpendResponse *first = spend_send(f, &spend);
    assert_non_null(first);
    const char *as_of = first->write->as_of;
    for (uint32_t attempt = 0; attempt < 3; attempt++) {
        f->now_ms += 1000;
        spend.request.attempt = attempt;
        Holdfast__V1__SpendResponse *again = spend_send(f, &spend);
        assert_non_null(again);
        assert_true(again->write->duplicate);
        assert_string_equal(again->write->as_of, as_of);
        assert_int_equal(again->write->version, 2);
        assert_int_equal(again->balances[0]->amount, 70);
    }
    assert_int_equal(fixture_balance(f, "ann", "gold"), 70);
}

static void the_same_id_for_another_payload_is_a_mismatch_and_leaves_the_first(void **state)
{
    struct fixture *f = *state;
    struct spend spend;
    char *id = fixture_op_id(f);

    assert_non_null(fixture_grant(f, "ann", "unheld", 100));
    spend_init(f, &spend, id, 30);
    assert_non_null(spend_send(f, &spend));
    spend.gold.amount = 31;
    assert_null(spend_send(f, &spend));
    assert_int_equal(f->error->code, ERROR(OPERATION_ID_MISMATCH));
    assert_false(f->error->final);
    spend.gold.amount = 30;
    assert_non_null(spend_send(f, &spend));
    assert_true(f->outcome.duplicate);
}

static void an_upper_case_uuid_is_the_same_operation(void **state)
{
    struct fixture *f = *state;
    struct spend spend;
    char upper[UUID_TEXT_SIZE];
    char *id = fixture_op_id(f);

    for (size_t i = 0; i < sizeof upper; i++)
        upper[i] = (char)(id[i] >= 'a' && id[i] <= 'f' ? id[i] - 32 : id[i]);
    assert_non_null(fixture_grant(f, "ann", "unheld", 100));
    spend_init(f, &spend, id, 30);
    assert_non_null(spend_send(f, &spend));
    spend.request.op_id = upper;
    assert_non_null(spend_send(f, &spend));
    assert_true(f->outcome.duplicate);
}

static void a_refusal_is_the_outcome_of_its_attempt_and_a_higher_one_is_evaluated_anew(void **state)
{
    struct fixture *f = *state;
    struct spend spend;

    spend_init(f, &spend, fixture_op_id(f), 30);
    spend.request.attempt = 1;
    assert_null(spend_send(f, &spend));
    assert_int_equal(f->error->code, ERROR(INSUFFICIENT_FUNDS));
    assert_true(f->error->final);
    assert_non_null(fixture_grant(f, "ann", "unheld", 100));
    for (uint32_t attempt = 0; attempt < 2; attempt++) {
        spend.request.attempt = attempt;
        assert_null(spend_send(f, &spend));
        assert_int_equal(f->error->code, ERROR(INSUFFICIENT_FUNDS));
        assert_true(f->outcome.duplicate);
    }
    spend.request.attempt = 2;
    assert_non_null(spend_send(f, &spend));
    assert_false(f->outcome.duplicate);
    assert_int_equal(fixture_balance(f, "ann", "gold"), 70);
    assert_int_equal(applier_meta(f->applier)->operation_count, 2);
}

/* A policy that no longer has gold: a call about it is refused before the log. */
static void drop_gold(struct fixture *f)
{
    Holdfast__V1__Policy policy = HOLDFAST__V1__POLICY__INIT;
    Holdfast__Internal__V1__ApplyPolicyRequest request =
        HOLDFAST__INTERNAL__V1__APPLY_POLICY_REQUEST__INIT;

    policy.version = applier_meta(f->applier)->policy.version + 1;
    request.policy = &policy;
    assert_non_null(fixture_mutate(f, METHOD_APPLY_POLICY, &request.base));
}

static void what_was_carried_out_is_told_under_any_attempt_when_its_currency_is_gone(void **state)
{
    struct fixture *f = *state;
    struct spend spend;

    assert_non_null(fixture_grant(f, "ann", "unheld", 100));
    spend_init(f, &spend, fixture_op_id(f), 30);
    assert_non_null(spend_send(f, &spend));
    drop_gold(f);
    for (uint32_t attempt = 0; attempt < 3; attempt++) {
        spend.request.attempt = attempt;
        Holdfast__V1__SpendResponse *again = spend_send(f, &spend);
        assert_non_null(again);
        assert_true(again->write->duplicate);
    }
}

static void a_higher_attempt_of_what_was_refused_repeats_nothing_and_is_not_logged(void **state)
{
    struct fixture *f = *state;
    struct spend spend;

    spend_init(f, &spend, fixture_op_id(f), 30);
    spend.request.attempt = 1;
    assert_null(spend_send(f, &spend));
    assert_int_equal(f->error->code, ERROR(INSUFFICIENT_FUNDS));
    drop_gold(f);
    for (uint32_t attempt = 0; attempt < 4; attempt++) {
        spend.request.attempt = attempt;
        assert_null(spend_send(f, &spend));
        assert_int_equal(f->recorded, attempt <= 1);
        assert_int_equal(f->error->code,
                         attempt <= 1 ? ERROR(INSUFFICIENT_FUNDS) : ERROR(INVALID_ARGUMENT));
    }
}

static void an_id_is_unique_per_player(void **state)
{
    struct fixture *f = *state;
    struct spend spend;

    assert_non_null(fixture_grant(f, "ann", "unheld", 100));
    assert_non_null(fixture_grant(f, "bob", "unheld", 100));
    spend_init(f, &spend, fixture_op_id(f), 30);
    assert_non_null(spend_send(f, &spend));
    spend.request.player_id = (char *)"bob";
    assert_non_null(spend_send(f, &spend));
    assert_false(f->outcome.duplicate);
}

static void ids_missing_malformed_or_far_ahead_are_refused_before_the_log(void **state)
{
    struct fixture *f = *state;
    struct spend spend;
    const char *wrong[] = { "", "x", "gift:1", fixture_op_id_at(f, f->now_ms + 300001) };

    spend_init(f, &spend, "", 30);
    for (size_t i = 0; i < 4; i++) {
        spend.request.op_id = text_lend(wrong[i]);
        assert_null(spend_send(f, &spend));
        assert_false(f->recorded);
        assert_int_equal(f->error->code, ERROR(INVALID_ARGUMENT));
        assert_string_equal(f->error->field, "op_id");
        assert_false(f->error->final);
    }
    assert_non_null(fixture_grant(f, "ann", "unheld", 100));
    spend.request.op_id = fixture_op_id_at(f, f->now_ms + 300000);
    assert_non_null(spend_send(f, &spend));
}

static void a_retry_may_name_currencies_in_another_order(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount gems = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *one[] = { &gold, &gems }, *other[] = { &gems, &gold };

    gold.currency = (char *)"gold";
    gold.amount = 5;
    gems.currency = (char *)"gems";
    gems.amount = 7;
    request.player_id = (char *)"ann";
    request.op_id = (char *)"claim:two";
    request.authority = fixture_authority(f, "unheld");
    request.currencies = one;
    request.n_currencies = 2;
    assert_non_null(fixture_mutate(f, METHOD_GRANT, &request.base));
    request.currencies = other;
    assert_non_null(fixture_mutate(f, METHOD_GRANT, &request.base));
    assert_true(f->outcome.duplicate);
    gems.amount = 8;
    assert_null(fixture_mutate(f, METHOD_GRANT, &request.base));
    assert_int_equal(f->error->code, ERROR(OPERATION_ID_MISMATCH));
    assert_int_equal(fixture_balance(f, "ann", "gems"), 7);
}

static void typed_ids_outlive_the_window(void **state)
{
    struct fixture *f = *state;
    struct spend spend;

    assert_non_null(fixture_grant(f, "ann", "unheld", 100));
    spend_init(f, &spend, "claim:GPA.1", 30);
    assert_non_null(spend_send(f, &spend));
    fixture_pass(f, 49ull * 3600 * 1000);
    assert_int_equal(applier_meta(f->applier)->operation_count, 0);
    fixture_restart(f);
    assert_non_null(spend_send(f, &spend));
    assert_true(f->outcome.duplicate);
    assert_int_equal(fixture_balance(f, "ann", "gold"), 70);
}

static void a_key_stands_for_its_operation_a_day_long(void **state)
{
    struct fixture *f = *state;
    struct spend spend;

    assert_non_null(fixture_grant(f, "ann", "unheld", 100));
    spend_init(f, &spend, "key:order-17", 30);
    assert_non_null(spend_send(f, &spend));
    fixture_pass(f, 24ull * 3600 * 1000 - 1000);
    fixture_restart(f);
    assert_non_null(spend_send(f, &spend));
    assert_true(f->outcome.duplicate);
    spend.gold.amount = 31;
    assert_null(spend_send(f, &spend));
    assert_int_equal(f->error->code, ERROR(OPERATION_ID_MISMATCH));
    assert_int_equal(fixture_operation(f, "ann", "key:order-17")->state, OPERATION(COMMITTED));
    fixture_pass(f, 2000);
    assert_int_equal(fixture_operation(f, "ann", "key:order-17")->state, OPERATION(UNKNOWN));
    /* Now it is another operation, also with another payload, for another day. */
    assert_non_null(spend_send(f, &spend));
    assert_false(f->outcome.duplicate);
    assert_int_equal(fixture_balance(f, "ann", "gold"), 39);
    fixture_pass(f, 24ull * 3600 * 1000 - 1000);
    assert_non_null(spend_send(f, &spend));
    assert_true(f->outcome.duplicate);
    assert_int_equal(fixture_balance(f, "ann", "gold"), 39);
}

static void a_refusal_of_a_key_and_its_seal_stand_a_day(void **state)
{
    struct fixture *f = *state;
    struct spend spend;

    assert_non_null(fixture_grant(f, "ann", "unheld", 10));
    spend_init(f, &spend, "key:refused", 30);
    assert_null(spend_send(f, &spend));
    assert_int_equal(fixture_seal(f, "ann", "key:sealed")->state, OPERATION(ABORTED));
    assert_non_null(fixture_grant(f, "ann", "unheld", 90));
    assert_null(spend_send(f, &spend));
    assert_true(f->outcome.duplicate);
    fixture_pass(f, 25ull * 3600 * 1000);
    assert_non_null(spend_send(f, &spend));
    assert_int_equal(fixture_balance(f, "ann", "gold"), 70);
    /* Once over, a key can be sealed as one that was never seen. */
    fixture_pass(f, 25ull * 3600 * 1000);
    assert_int_equal(fixture_seal(f, "ann", "key:refused")->state, OPERATION(ABORTED));
    spend_init(f, &spend, "key:sealed", 30);
    assert_int_equal(fixture_seal(f, "ann", "key:sealed")->state, OPERATION(ABORTED));
    fixture_pass(f, 24ull * 3600 * 1000 - 1000);
    assert_null(spend_send(f, &spend));
    assert_int_equal(f->error->code, ERROR(OPERATION_ABORTED));
    fixture_pass(f, 2000);
    assert_non_null(spend_send(f, &spend));
    assert_int_equal(fixture_balance(f, "ann", "gold"), 40);
}

static void authority_is_checked_where_the_entry_is_applied(void **state)
{
    struct fixture *f = *state;
    struct spend spend;
    struct buf body = { 0 };

    assert_non_null(fixture_grant(f, "ann", "unheld", 100));
    spend_init(f, &spend, fixture_op_id(f), 30);
    assert_true(fixture_prepare(f, METHOD_SPEND, &spend.request.base, &body));
    assert_non_null(fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f)));
    fixture_commit(f, buf_slice(&body));
    assert_int_equal(f->outcome.kind, OUTCOME_REFUSED);
    Holdfast__Internal__V1__Refusal *error =
        holdfast__internal__v1__refusal__unpack(NULL, f->outcome.body.size, f->outcome.body.data);
    assert_int_equal(error->code, ERROR(SESSION_LOCKED));
    assert_string_equal(error->holder, SERVER_A);
    assert_true(error->retry_after_ms > 0);
    holdfast__internal__v1__refusal__free_unpacked(error, NULL);
    buf_deinit(&body);
    assert_int_equal(fixture_balance(f, "ann", "gold"), 100);
}

static void authorities_admit_what_their_kind_may_do(void **state)
{
    struct fixture *f = *state;
    struct spend spend;

    spend_init(f, &spend, fixture_op_id(f), 30);
    spend.request.authority = (char *)"";
    assert_null(fixture_mutate(f, METHOD_SPEND, &spend.request.base));
    assert_int_equal(f->error->code, ERROR(INVALID_ARGUMENT));
    assert_string_equal(f->error->field, "authority");
    spend.request.authority = fixture_authority(f, "system:mail");
    assert_null(fixture_mutate(f, METHOD_SPEND, &spend.request.base));
    assert_int_equal(f->error->code, ERROR(PERMISSION_DENIED));
    spend.request.authority = fixture_authority(f, "system:root");
    assert_null(fixture_mutate(f, METHOD_SPEND, &spend.request.base));
    assert_string_equal(f->error->field, "authority");
    assert_string_equal(f->error->value, "system:root");
    spend.request.authority = fixture_authority(f, "not-a-token");
    assert_null(fixture_mutate(f, METHOD_SPEND, &spend.request.base));
    assert_string_equal(f->error->field, "authority");
    assert_string_equal(f->error->value, "session: and 11 bytes");
    assert_non_null(fixture_grant(f, "ann", "system:mail", 5));
    assert_non_null(fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f)));
    assert_non_null(fixture_grant(f, "ann", "system:mail", 5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(a_retry_gets_the_stored_result_under_any_attempt),
        FIXTURE_TEST(the_same_id_for_another_payload_is_a_mismatch_and_leaves_the_first),
        FIXTURE_TEST(an_upper_case_uuid_is_the_same_operation),
        FIXTURE_TEST(a_refusal_is_the_outcome_of_its_attempt_and_a_higher_one_is_evaluated_anew),
        FIXTURE_TEST(what_was_carried_out_is_told_under_any_attempt_when_its_currency_is_gone),
        FIXTURE_TEST(a_higher_attempt_of_what_was_refused_repeats_nothing_and_is_not_logged),
        FIXTURE_TEST(an_id_is_unique_per_player),
        FIXTURE_TEST(ids_missing_malformed_or_far_ahead_are_refused_before_the_log),
        FIXTURE_TEST(a_retry_may_name_currencies_in_another_order),
        FIXTURE_TEST(typed_ids_outlive_the_window),
        FIXTURE_TEST(a_key_stands_for_its_operation_a_day_long),
        FIXTURE_TEST(a_refusal_of_a_key_and_its_seal_stand_a_day),
        FIXTURE_TEST(authority_is_checked_where_the_entry_is_applied),
        FIXTURE_TEST(authorities_admit_what_their_kind_may_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
