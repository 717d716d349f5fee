#include "node/rpc/fixture.h"

#include <string.h>

#include "node/core/apply/apply.h"
#include "node/core/apply/apply_internal.h"

#define MODE(name) HOLDFAST__V1__START_MODE__START_MODE_##name

/* The answer to StartSession was lost: the token is never used. */
static void an_unused_grant_frees_itself(void **state)
{
    struct fixture *f = *state;

    assert_non_null(fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f)));
    assert_int_equal(fixture_pass(f, 14999), 0);
    assert_string_equal(fixture_session(f, "ann")->state, "granted");
    assert_int_equal(fixture_pass(f, 1), 1);
    assert_true(f->outcome.session_freed);
    assert_true(slice_equal(f->outcome.entity, SLICE_LITERAL("player:ann")));
    assert_string_equal(fixture_session(f, "ann")->state, "free");
    assert_int_equal(applier_meta(f->applier)->session_count, 0);
}

static void a_used_grant_does_not(void **state)
{
    struct fixture *f = *state;
    char *token = fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f));

    f->now_ms += 14000;
    assert_non_null(fixture_grant(f, "ann", token, 1));
    assert_int_equal(fixture_pass(f, 600000), 0);
    assert_string_equal(fixture_session(f, "ann")->state, "held");
}

static void due(struct fixture *f, uint64_t fence)
{
    Holdfast__Internal__V1__SessionDueRequest request =
        HOLDFAST__INTERNAL__V1__SESSION_DUE_REQUEST__INIT;
    struct buf body = { 0 };

    request.player_id = (char *)"ann";
    request.fence = fence;
    owner_op_encode(METHOD_SESSION_DUE, SLICE_LITERAL("player:ann"), &request.base, &body);
    fixture_commit(f, buf_slice(&body));
    buf_deinit(&body);
}

/* An entry that its owner made too early, twice or late changes nothing. */
static void apply_looks_again_whether_it_is_due(void **state)
{
    struct fixture *f = *state;

    due(f, 1);
    assert_int_equal(f->outcome.kind, OUTCOME_NONE);
    assert_non_null(fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f)));
    due(f, 1);
    assert_string_equal(fixture_session(f, "ann")->state, "granted");
    f->now_ms += 15000;
    due(f, 0);
    assert_string_equal(fixture_session(f, "ann")->state, "granted");
    due(f, 1);
    assert_string_equal(fixture_session(f, "ann")->state, "free");
    due(f, 1);
    assert_false(f->outcome.session_freed);
}

static void nobody_outside_may_ask_for_it(void **state)
{
    struct fixture *f = *state;
    Holdfast__Internal__V1__SessionDueRequest request =
        HOLDFAST__INTERNAL__V1__SESSION_DUE_REQUEST__INIT;

    request.player_id = (char *)"ann";
    assert_null(fixture_mutate(f, METHOD_SESSION_DUE, &request.base));
    assert_false(f->recorded);
    assert_int_equal(f->error->code, ERROR(UNIMPLEMENTED));
}

static void timers_survive_a_restart(void **state)
{
    struct fixture *f = *state;

    assert_non_null(fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f)));
    assert_non_null(fixture_start(f, "bob", SERVER_A, MODE(FAIL), fixture_op_id(f)));
    fixture_restart(f);
    assert_int_equal(fixture_pass(f, 15000), 2);
    assert_int_equal(applier_meta(f->applier)->session_count, 0);
    assert_int_equal(fixture_pass(f, 40000), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(an_unused_grant_frees_itself),
        FIXTURE_TEST(a_used_grant_does_not),
        FIXTURE_TEST(apply_looks_again_whether_it_is_due),
        FIXTURE_TEST(nobody_outside_may_ask_for_it),
        FIXTURE_TEST(timers_survive_a_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
