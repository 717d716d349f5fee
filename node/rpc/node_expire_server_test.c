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

    for (unsigned i = 0; i < EXPIRED_MAX; i++) { /* Each between two that live. */
        (void)snprintf(text, sizeof text, "1-%u", 1000 + 2 * (7919 * i % EXPIRED_MAX));
        fixture_expire(f, text, "");
    }
    assert_int_equal(applier_meta(f->applier)->expired_count, EXPIRED_MAX);
    meta_check(applier_meta(f->applier));
    request.incarnation = (char *)"1-999999";
    assert_null(fixture_mutate(f, METHOD_EXPIRE_SERVER, &request.base));
    assert_int_equal(f->error->code, ERROR(CAPACITY_FULL));
    assert_string_equal(f->error->limit, "16384");
    request.lowest_live = (char *)"1-999999";
    assert_non_null(fixture_mutate(f, METHOD_EXPIRE_SERVER, &request.base));
    assert_int_equal(applier_meta(f->applier)->expired_count, 1);
}

static void expire(struct fixture *f, unsigned revision, unsigned lowest, unsigned from)
{
    Holdfast__Internal__V1__ExpireServerRequest request =
        HOLDFAST__INTERNAL__V1__EXPIRE_SERVER_REQUEST__INIT;
    char texts[3][32];

    (void)snprintf(texts[0], sizeof texts[0], "1-%u", revision);
    (void)snprintf(texts[1], sizeof texts[1], "1-%u", lowest);
    (void)snprintf(texts[2], sizeof texts[2], "1-%u", from);
    request.incarnation = texts[0];
    request.lowest_live = texts[1];
    request.from = texts[2];
    assert_non_null(fixture_mutate(f, METHOD_EXPIRE_SERVER, &request.base));
}

static bool is_expired(const struct fixture *f, uint64_t revision)
{
    return meta_is_expired(applier_meta(f->applier), (struct incarnation){ 1, revision });
}

/* A lobby that lives for weeks, and game servers that live for a match. */
static void any_number_come_and_go_beside_one_that_lives(void **state)
{
    struct fixture *f = *state;

    for (unsigned i = 1; i <= 5000; i++)
        expire(f, 100 + 3 * i, 100, 101);
    assert_int_equal(applier_meta(f->applier)->expired_count, 1);
    assert_false(is_expired(f, 100));
    assert_true(is_expired(f, 101));
    assert_true(is_expired(f, 15100));
    assert_false(is_expired(f, 15101));
    expire(f, 20003, 100, 20001); /* 20000 lives. */
    assert_int_equal(applier_meta(f->applier)->expired_count, 2);
    assert_false(is_expired(f, 20000));
    fixture_restart(f);
    assert_int_equal(applier_meta(f->applier)->expired_count, 2);
    assert_false(is_expired(f, 100));
    assert_true(is_expired(f, 15100));
    assert_false(is_expired(f, 20000));
    assert_true(is_expired(f, 20002));
    expire(f, 101, 5000, 101); /* A cut through the first range. */
    assert_int_equal(applier_meta(f->applier)->expired_count, 2);
    assert_true(is_expired(f, 15100));
    assert_false(is_expired(f, 15101));
    expire(f, 20000, 20000, 101); /* 100 has gone, and then 20000. */
    assert_int_equal(applier_meta(f->applier)->expired_count, 1);
    assert_true(is_expired(f, 20000));
    expire(f, 20000, 20004, 101);
    assert_int_equal(applier_meta(f->applier)->expired_count, 0);
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
    request.lowest_live = (char *)SERVER_A;
    request.from = (char *)"1";
    assert_null(fixture_mutate(f, METHOD_EXPIRE_SERVER, &request.base));
    assert_string_equal(f->error->field, "from");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(sessions_of_an_expired_server_are_free_at_once_and_others_stay),
        FIXTURE_TEST(the_lowest_live_server_lets_the_shard_forget_the_rest),
        FIXTURE_TEST(the_set_is_bounded_and_says_so),
        FIXTURE_TEST(any_number_come_and_go_beside_one_that_lives),
        FIXTURE_TEST(malformed_incarnations_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
