#include "node/rpc/fixture.h"

#include <string.h>

#define MODE(name) HOLDFAST__V1__START_MODE__START_MODE_##name

static void the_holder_and_the_claimant_are_told(void **state)
{
    struct fixture *f = *state;

    Holdfast__V1__GetSessionResponse *session = fixture_session(f, "ann");
    assert_string_equal(session->state, "free");
    assert_int_equal(session->fence, 0);
    assert_non_null(fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f)));
    assert_null(fixture_start(f, "ann", SERVER_B, MODE(STEAL), fixture_op_id(f)));
    session = fixture_session(f, "ann");
    assert_string_equal(session->state, "granted");
    assert_string_equal(session->incarnation, SERVER_A);
    assert_string_equal(session->claimant, SERVER_B);
    assert_int_equal(session->acquired_at_ms, (int64_t)FIXTURE_START_MS);
    assert_int_equal(fixture_as_of(f, session->as_of).counter, f->counter);
    fixture_expire(f, SERVER_B, "");
    fixture_expire(f, SERVER_A, "");
    session = fixture_session(f, "ann");
    assert_string_equal(session->state, "free");
    assert_string_equal(session->incarnation, "");
    assert_string_equal(session->claimant, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = { FIXTURE_TEST(the_holder_and_the_claimant_are_told) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
