#include "node/rpc/fixture.h"

#include <string.h>

#define MODE(name) HOLDFAST__V1__START_MODE__START_MODE_##name

static void assert_session(struct fixture *f, const char *state, const char *server, uint64_t fence)
{
    Holdfast__V1__GetSessionResponse *session = fixture_session(f, "ann");

    assert_string_equal(session->state, state);
    assert_string_equal(session->incarnation, server);
    assert_int_equal(session->fence, fence);
}

static void assert_refused(struct fixture *f, Holdfast__V1__ErrorCode code)
{
    assert_int_equal(f->outcome.kind, OUTCOME_REFUSED);
    assert_non_null(f->error);
    assert_int_equal(f->error->code, code);
}

/* A steals from B: B is told, saves within the grace period, and A has the session at once. */
static void a_holder_that_ends_in_time_hands_over_in_the_same_entry(void **state)
{
    struct fixture *f = *state;
    char *held = fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f));
    assert_non_null(fixture_grant(f, "ann", held, 5));
    char *claim = fixture_op_id(f);

    assert_null(fixture_start(f, "ann", SERVER_B, MODE(STEAL), claim));
    assert_int_equal(f->outcome.kind, OUTCOME_PENDING);
    assert_int_equal(fixture_operation(f, "ann", claim)->state, OPERATION(PENDING));
    assert_session(f, "held", SERVER_A, 1);
    assert_string_equal(fixture_session(f, "ann")->claimant, SERVER_B);
    f->now_ms += 1000;
    assert_non_null(fixture_end(f, "ann", held));
    assert_true(slice_equal(f->outcome.decided_op_id, slice_from_text(claim)));
    assert_false(f->outcome.decided_refused);
    assert_false(f->outcome.session_freed);
    assert_session(f, "granted", SERVER_B, 2);
    char *token = fixture_start(f, "ann", SERVER_B, MODE(STEAL), claim);
    assert_string_equal(token, SERVER_B "-2");
    assert_true(f->outcome.duplicate);
    assert_non_null(fixture_grant(f, "ann", token, 1));
    assert_null(fixture_grant(f, "ann", held, 1));
    assert_refused(f, ERROR(SESSION_LOST));
    assert_true(f->outcome.stale_write);
    assert_int_equal(fixture_balance(f, "ann", "gold"), 6);
}

/* What its holder gave up was not taken from it. */
static void a_session_that_its_holder_ended_is_not_told_as_stolen(void **state)
{
    struct fixture *f = *state;
    char *held = fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f));
    char *claim = fixture_op_id(f);

    assert_null(fixture_start(f, "ann", SERVER_B, MODE(STEAL), claim));
    assert_non_null(fixture_end(f, "ann", held));
    Holdfast__Internal__V1__OperationRecord *status = fixture_operation(f, "ann", claim);
    assert_int_equal(status->state, OPERATION(COMMITTED));
    Holdfast__V1__StartSessionResponse *response =
        holdfast__v1__start_session_response__unpack(NULL, status->result.len, status->result.data);
    assert_non_null(response);
    assert_false(response->stolen);
    holdfast__v1__start_session_response__free_unpacked(response, NULL);
}

static void a_silent_holder_is_displaced_when_the_grace_period_ends(void **state)
{
    struct fixture *f = *state;
    char *held = fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f));
    assert_non_null(fixture_grant(f, "ann", held, 5));
    char *claim = fixture_op_id(f);

    assert_null(fixture_start(f, "ann", SERVER_B, MODE(STEAL), claim));
    assert_int_equal(fixture_pass(f, 4999), 0);
    assert_non_null(fixture_grant(f, "ann", held, 1));
    assert_int_equal(fixture_pass(f, 1), 1);
    assert_int_equal(f->outcome.kind, OUTCOME_NONE);
    assert_true(slice_equal(f->outcome.decided_op_id, slice_from_text(claim)));
    assert_session(f, "granted", SERVER_B, 2);
    Holdfast__Internal__V1__OperationRecord *status = fixture_operation(f, "ann", claim);
    assert_int_equal(status->state, OPERATION(COMMITTED));
    assert_string_equal(status->method, "holdfast.v1.SessionService/StartSession");
    Holdfast__V1__StartSessionResponse *response =
        holdfast__v1__start_session_response__unpack(NULL, status->result.len, status->result.data);
    assert_true(response->stolen);
    assert_string_equal(response->token, SERVER_B "-2");
    assert_int_equal(fixture_as_of(f, response->write->as_of).counter, f->outcome.dot.counter);
    holdfast__v1__start_session_response__free_unpacked(response, NULL);
    assert_null(fixture_grant(f, "ann", held, 1));
    assert_refused(f, ERROR(SESSION_LOST));
    assert_string_equal(f->error->holder, SERVER_B);
}

static void a_later_claim_replaces_the_claimant_but_not_the_deadline(void **state)
{
    struct fixture *f = *state;
    char *held = fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f));
    assert_non_null(fixture_grant(f, "ann", held, 5));
    char *first = fixture_op_id(f);
    char *second = fixture_op_id(f);

    assert_null(fixture_start(f, "ann", SERVER_B, MODE(STEAL), first));
    f->now_ms += 3000;
    assert_null(fixture_start(f, "ann", SERVER_C, MODE(STEAL), second));
    assert_int_equal(f->outcome.kind, OUTCOME_PENDING);
    assert_true(slice_equal(f->outcome.decided_op_id, slice_from_text(first)));
    assert_true(f->outcome.decided_refused);
    Holdfast__Internal__V1__OperationRecord *status = fixture_operation(f, "ann", first);
    assert_int_equal(status->state, OPERATION(REFUSED));
    assert_int_equal(status->refusal->code, ERROR(SESSION_LOCKED));
    assert_string_equal(status->refusal->holder, SERVER_C);
    assert_true(status->refusal->final);
    assert_int_equal(fixture_pass(f, 1999), 0);
    assert_int_equal(fixture_pass(f, 1), 1);
    assert_session(f, "granted", SERVER_C, 2);
    assert_null(fixture_start(f, "ann", SERVER_B, MODE(STEAL), first));
    assert_refused(f, ERROR(SESSION_LOCKED));
    assert_true(f->outcome.duplicate);
}

static void a_sealed_steal_never_takes_the_session(void **state)
{
    struct fixture *f = *state;
    char *held = fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f));
    assert_non_null(fixture_grant(f, "ann", held, 5));
    char *claim = fixture_op_id(f);

    assert_null(fixture_start(f, "ann", SERVER_B, MODE(STEAL), claim));
    assert_int_equal(fixture_seal(f, "ann", claim)->state, OPERATION(ABORTED));
    assert_true(f->outcome.decided_refused);
    assert_string_equal(fixture_session(f, "ann")->claimant, "");
    assert_int_equal(fixture_pass(f, 60000), 0);
    assert_session(f, "held", SERVER_A, 1);
    assert_null(fixture_start(f, "ann", SERVER_B, MODE(STEAL), claim));
    assert_refused(f, ERROR(OPERATION_ABORTED));
}

static void a_claimant_whose_server_expires_gets_nothing_and_the_holder_stays(void **state)
{
    struct fixture *f = *state;
    char *held = fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f));
    assert_non_null(fixture_grant(f, "ann", held, 5));
    char *claim = fixture_op_id(f);

    assert_null(fixture_start(f, "ann", SERVER_B, MODE(STEAL), claim));
    fixture_expire(f, SERVER_B, "");
    assert_true(f->outcome.session_freed);
    assert_int_equal(f->outcome.entity.size, 0);
    assert_int_equal(fixture_pass(f, 5000), 1);
    assert_true(f->outcome.decided_refused);
    assert_session(f, "held", SERVER_A, 1);
    assert_int_equal(fixture_operation(f, "ann", claim)->refusal->code, ERROR(SERVER_EXPIRED));
    assert_non_null(fixture_grant(f, "ann", held, 1));
}

static void a_retried_steal_need_not_wait_for_a_holder_that_died(void **state)
{
    struct fixture *f = *state;
    char *held = fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f));
    assert_non_null(fixture_grant(f, "ann", held, 5));
    char *claim = fixture_op_id(f);

    assert_null(fixture_start(f, "ann", SERVER_B, MODE(STEAL), claim));
    assert_null(fixture_start(f, "ann", SERVER_B, MODE(STEAL), claim));
    assert_int_equal(f->outcome.kind, OUTCOME_PENDING);
    assert_true(f->outcome.duplicate);
    fixture_expire(f, SERVER_A, "");
    assert_null(fixture_start(f, "ann", SERVER_C, MODE(FAIL), fixture_op_id(f)));
    assert_refused(f, ERROR(SESSION_LOCKED));
    assert_string_equal(f->error->holder, SERVER_B);
    assert_string_equal(fixture_start(f, "ann", SERVER_B, MODE(STEAL), claim), SERVER_B "-2");
    assert_false(f->outcome.duplicate);
    assert_session(f, "granted", SERVER_B, 2);
    assert_int_equal(fixture_pass(f, 14999), 0);
}

static void a_dead_holder_is_no_obstacle(void **state)
{
    struct fixture *f = *state;
    char *held = fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f));
    assert_non_null(fixture_grant(f, "ann", held, 5));

    fixture_expire(f, SERVER_A, "");
    assert_null(fixture_grant(f, "ann", held, 1));
    assert_refused(f, ERROR(SESSION_LOST));
    Holdfast__V1__StartSessionRequest request = HOLDFAST__V1__START_SESSION_REQUEST__INIT;
    request.player_id = (char *)"ann";
    request.op_id = fixture_op_id(f);
    request.incarnation = (char *)SERVER_B;
    request.mode = MODE(STEAL);
    Holdfast__V1__StartSessionResponse *response =
        fixture_mutate(f, METHOD_START_SESSION, &request.base);
    assert_non_null(response);
    assert_false(response->stolen);
    assert_int_equal(response->fence, 2);
    assert_int_equal(applier_meta(f->applier)->session_count, 1);
}

static void a_steal_survives_a_new_owner(void **state)
{
    struct fixture *f = *state;
    char *held = fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f));
    assert_non_null(fixture_grant(f, "ann", held, 5));
    char *claim = fixture_op_id(f);

    assert_null(fixture_start(f, "ann", SERVER_B, MODE(STEAL), claim));
    fixture_restart(f);
    fixture_next_epoch(f);
    assert_int_equal(fixture_pass(f, 5000), 1);
    assert_session(f, "granted", SERVER_B, 2);
    assert_string_equal(fixture_start(f, "ann", SERVER_B, MODE(STEAL), claim), SERVER_B "-2");
}

/* The restarted holder cannot put the deadline off. */
static void a_holder_that_starts_again_keeps_the_claim_against_it(void **state)
{
    struct fixture *f = *state;
    char *held = fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f));
    assert_non_null(fixture_grant(f, "ann", held, 5));

    assert_null(fixture_start(f, "ann", SERVER_B, MODE(STEAL), fixture_op_id(f)));
    f->now_ms += 2000;
    char *again = fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f));
    assert_string_equal(again, SERVER_A "-2");
    assert_null(fixture_grant(f, "ann", held, 1));
    assert_non_null(fixture_grant(f, "ann", again, 1));
    assert_int_equal(fixture_pass(f, 2999), 0);
    assert_int_equal(fixture_pass(f, 1), 1);
    assert_session(f, "granted", SERVER_B, 3);
}

static void an_end_without_claim_frees_the_player_for_waiters(void **state)
{
    struct fixture *f = *state;
    char *held = fixture_start(f, "ann", SERVER_A, MODE(FAIL), fixture_op_id(f));
    char *waits = fixture_op_id(f);

    assert_null(fixture_start(f, "ann", SERVER_B, MODE(WAIT), waits));
    assert_refused(f, ERROR(SESSION_LOCKED));
    assert_true(f->outcome.waits);
    assert_false(f->error->final);
    assert_int_equal(fixture_operation(f, "ann", waits)->state, OPERATION(UNKNOWN));
    assert_true(applier_session_held(f->applier, SLICE_LITERAL("player:ann"), f->now_ms));
    assert_non_null(fixture_end(f, "ann", held));
    assert_true(f->outcome.session_freed);
    assert_true(slice_equal(f->outcome.entity, SLICE_LITERAL("player:ann")));
    assert_false(applier_session_held(f->applier, SLICE_LITERAL("player:ann"), f->now_ms));
    assert_session(f, "free", "", 1);
    assert_string_equal(fixture_start(f, "ann", SERVER_B, MODE(WAIT), waits), SERVER_B "-2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(a_holder_that_ends_in_time_hands_over_in_the_same_entry),
        FIXTURE_TEST(a_session_that_its_holder_ended_is_not_told_as_stolen),
        FIXTURE_TEST(a_silent_holder_is_displaced_when_the_grace_period_ends),
        FIXTURE_TEST(a_later_claim_replaces_the_claimant_but_not_the_deadline),
        FIXTURE_TEST(a_sealed_steal_never_takes_the_session),
        FIXTURE_TEST(a_claimant_whose_server_expires_gets_nothing_and_the_holder_stays),
        FIXTURE_TEST(a_retried_steal_need_not_wait_for_a_holder_that_died),
        FIXTURE_TEST(a_dead_holder_is_no_obstacle),
        FIXTURE_TEST(a_steal_survives_a_new_owner),
        FIXTURE_TEST(a_holder_that_starts_again_keeps_the_claim_against_it),
        FIXTURE_TEST(an_end_without_claim_frees_the_player_for_waiters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
