#include "node/rpc/fixture.h"

#include <stdio.h>
#include <string.h>

#define MODE(name) HOLDFAST__V1__START_MODE__START_MODE_##name

static void sessions_of_an_expired_server_are_free_at_once_and_others_stay(void **state)
{
    struct fixture *f = *state;
    char *a = fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f));
    char *b = fixture_start(f, "bob", SERVER_B, MODE(FAIL), fixture_op_id(f));

    fixture_expire(f, SERVER_A, "");
    assert_true(f->outcome.session_freed);
    assert_int_equal(f->outcome.entity.size, 0);
    assert_null(fixture_grant(f, "ann", a, 1));
    assert_int_equal(f->error->code, ERROR(SESSION_LOST));
    assert_non_null(fixture_grant(f, "bob", b, 1));
    assert_non_null(fixture_grant(f, "ann", "unheld", 1));
    assert_string_equal(fixture_session(f, "ann")->state, "free");
    assert_int_equal(applier_meta(f->applier)->expired_count, 1);
    fixture_expire(f, SERVER_A, "");
    assert_int_equal(applier_meta(f->applier)->expired_count, 1);
}

static void the_lowest_live_server_lets_the_shard_forget_the_rest(void **state)
{
    struct fixture *f = *state;

    fixture_expire(f, SERVER_B, "");
    fixture_expire(f, SERVER_A, "");
    assert_int_equal(applier_meta(f->applier)->expired_count, 2);
    fixture_expire(f, SERVER_A, SERVER_B);
    assert_int_equal(applier_meta(f->applier)->expired_count, 1);
    assert_null(fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f)));
    fixture_expire(f, SERVER_B, SERVER_A);
    fixture_expire(f, SERVER_B, SERVER_C);
    assert_int_equal(applier_meta(f->applier)->expired_count, 0);
    fixture_restart(f);
    assert_null(fixture_start(f, "ann", SERVER_B, MODE(FAIL), fixture_op_id(f)));
    assert_non_null(fixture_start(f, "ann", SERVER_C, MODE(FAIL), fixture_op_id(f)));
}

static void the_set_is_bounded_and_says_so(void **state)
{
    struct fixture *f = *state;
    Holdfast__Internal__V1__ExpireServerRequest request =
        HOLDFAST__INTERNAL__V1__EXPIRE_SERVER_REQUEST__INIT;
    char text[32];

    for (unsigned i = 0; i < EXPIRED_MAX; i++) {
        (void)snprintf(text, sizeof text, "1-%u", 1000 + 7919 * i % 100000);
        fixture_expire(f, text, "");
    }
    for (uint32_t i = 1; i < applier_meta(f->applier)->expired_count; i++)
        assert_true(incarnation_compare(applier_meta(f->applier)->expired[i - 1],
                                        applier_meta(f->applier)->expired[i]) < 0);
    request.incarnation = (char *)"1-999999";
    assert_null(fixture_mutate(f, METHOD_EXPIRE_SERVER, &request.base));
    assert_int_equal(f->error->code, ERROR(CAPACITY_FULL));
    assert_string_equal(f->error->limit, "4096");
    request.lowest_live = (char *)"1-999999";
    assert_non_null(fixture_mutate(f, METHOD_EXPIRE_SERVER, &request.base));
    assert_int_equal(applier_meta(f->applier)->expired_count, 1);
}

static void malformed_incarnations_are_refused(void **state)
{
    struct fixture *f = *state;
    Holdfast__Internal__V1__ExpireServerRequest request =
        HOLDFAST__INTERNAL__V1__EXPIRE_SERVER_REQUEST__INIT;

    request.incarnation = (char *)"x";
    assert_null(fixture_mutate(f, METHOD_EXPIRE_SERVER, &request.base));
    assert_string_equal(f->error->field, "incarnation");
    request.incarnation = (char *)SERVER_A;
    request.lowest_live = (char *)"x";
    assert_null(fixture_mutate(f, METHOD_EXPIRE_SERVER, &request.base));
    assert_string_equal(f->error->field, "lowest_live");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(sessions_of_an_expired_server_are_free_at_once_and_others_stay),
        FIXTURE_TEST(the_lowest_live_server_lets_the_shard_forget_the_rest),
        FIXTURE_TEST(the_set_is_bounded_and_says_so),
        FIXTURE_TEST(malformed_incarnations_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
