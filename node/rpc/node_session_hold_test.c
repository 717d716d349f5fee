#include "node/rpc/fixture.h"

#include <string.h>

#include "node/core/apply/apply.h"
#include "node/core/apply/apply_internal.h"

#define MODE(name) HOLDFAST__V1__START_MODE__START_MODE_##name

static void hold(struct fixture *f, uint64_t fence)
{
    Holdfast__Internal__V1__SessionHoldRequest request =
        HOLDFAST__INTERNAL__V1__SESSION_HOLD_REQUEST__INIT;
    struct buf body = { 0 };

    request.player_id = (char *)"ann";
    request.fence = fence;
    owner_op_encode(METHOD_SESSION_HOLD, SLICE_LITERAL("player:ann"), &request.base, &body);
    fixture_commit(f, buf_slice(&body));
    buf_deinit(&body);
}

static void only_the_session_that_was_granted_is_held(void **state)
{
    struct fixture *f = *state;

    hold(f, 0);
    assert_string_equal(fixture_session(f, "ann")->state, "free");
    assert_non_null(fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f)));
    hold(f, 2);
    assert_string_equal(fixture_session(f, "ann")->state, "granted");
    hold(f, 1);
    assert_string_equal(fixture_session(f, "ann")->state, "held");
    assert_int_equal(fixture_pass(f, 60000), 0);
    hold(f, 1);
    assert_string_equal(fixture_session(f, "ann")->state, "held");
}

int main(void)
{
    const struct CMUnitTest tests[] = { FIXTURE_TEST(only_the_session_that_was_granted_is_held) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
