#include "node/rpc/fixture.h"

static Holdfast__Internal__V1__MemberStateResponse *ask(struct fixture *f)
{
    Holdfast__Internal__V1__MemberStateRequest request =
        HOLDFAST__INTERNAL__V1__MEMBER_STATE_REQUEST__INIT;

    return fixture_read(f, METHOD_MEMBER_STATE, &request.base);
}

static void what_the_owner_knows_of_the_replicas_is_told(void **state)
{
    struct fixture *f = *state;
    const struct member_state members = {
        .epoch = 4,
        .config = 9,
        .learner = 30,
        .learner_lag = 12,
        .learner_silent_ms = 250,
        .operations = 77,
        .members = { { .replica = 10, .lag = 1, .silent_ms = 5 }, { .replica = 20, .lag = 3 } },
        .member_count = 2,
    };

    applier_set_members(f->applier, &members);
    Holdfast__Internal__V1__MemberStateResponse *told = ask(f);
    assert_non_null(told);
    assert_int_equal(told->epoch, 4);
    assert_int_equal(told->config, 9);
    assert_int_equal(told->learner, 30);
    assert_int_equal(told->learner_lag, 12);
    assert_int_equal(told->learner_silent_ms, 250);
    assert_int_equal(told->operations, 77);
    assert_int_equal(told->n_members, 2);
    assert_int_equal(told->members[0]->replica_id, 10);
    assert_int_equal(told->members[0]->lag, 1);
    assert_int_equal(told->members[0]->silent_ms, 5);
    assert_int_equal(told->members[1]->replica_id, 20);
    assert_int_equal(told->members[1]->lag, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(what_the_owner_knows_of_the_replicas_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
