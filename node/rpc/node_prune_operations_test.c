#include "node/rpc/fixture.h"

#include <string.h>

#include "node/core/apply/apply_internal.h"

static const struct meta *meta(struct fixture *f)
{
    return applier_meta(f->applier);
}

static void outcomes_are_forgotten_after_the_window_and_their_ids_expire(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *amounts[] = { &gold };

    gold.currency = (char *)"gold";
    gold.amount = 5;
    request.player_id = (char *)"ann";
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "unheld");
    request.currencies = amounts;
    request.n_currencies = 1;
    assert_non_null(fixture_mutate(f, METHOD_GRANT, &request.base));
    assert_int_equal(fixture_pass(f, 23ull * 3600 * 1000), 0);
    request.authority = fixture_authority(f, "unheld");
    assert_non_null(fixture_mutate(f, METHOD_GRANT, &request.base));
    assert_true(f->outcome.duplicate);
    assert_int_equal(fixture_pass(f, 2ull * 3600 * 1000), 1);
    assert_int_equal(meta(f)->operation_count, 0);
    assert_true(meta(f)->floor_ms >= FIXTURE_START_MS);
    request.authority = fixture_authority(f, "unheld");
    assert_null(fixture_mutate(f, METHOD_GRANT, &request.base));
    assert_int_equal(f->error->code, ERROR(OPERATION_EXPIRED));
    assert_int_equal(fixture_balance(f, "ann", "gold"), 5);
}

/* Also those that are only in the database. One entry more finds out how old the oldest is. */
static void many_are_forgotten_a_page_at_a_time(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 1200; i++) {
        f->now_ms += 10;
        assert_non_null(fixture_grant(f, "ann", "unheld", 1));
        arena_reset(&f->arena);
    }
    fixture_checkpoint(f);
    fixture_evict(f, 0);
    assert_int_equal(meta(f)->operation_count, 1200);
    assert_int_equal(fixture_pass(f, 25ull * 3600 * 1000), 1 + 3);
    assert_true(f->need_rounds > 0);
    assert_int_equal(meta(f)->operation_count, 0);
    fixture_checkpoint(f);
    for (uint32_t i = 0; i < f->row_count; i++)
        assert_int_not_equal(f->rows[i].key.data[0], TABLE_OPERATION);
}

static void a_crowded_shard_forgets_sooner_but_never_the_last_quarter_hour(void **state)
{
    struct fixture *f = *state;

    fixture_policy(f, 0, 1000);
    for (int i = 0; i < 1100; i++) {
        assert_non_null(fixture_grant(f, "ann", "unheld", 1));
        arena_reset(&f->arena);
        f->now_ms += 1;
    }
    fixture_pass(f, 14 * 60 * 1000);
    assert_int_equal(meta(f)->operation_count, 1100);
    fixture_pass(f, 2 * 60 * 1000);
    assert_int_equal(meta(f)->operation_count, 1000);
    assert_true(meta(f)->floor_ms <= f->now_ms - OPERATION_WINDOW_MS_MIN);
    assert_non_null(fixture_grant(f, "ann", "unheld", 1));
}

static void beyond_that_mutations_are_throttled_before_the_log(void **state)
{
    struct fixture *f = *state;
    uint64_t count;

    fixture_policy(f, 0, 1000);
    do {
        count = meta(f)->operation_count;
        arena_reset(&f->arena);
        f->now_ms += 1;
    } while (fixture_grant(f, "ann", "unheld", 1) != NULL);
    assert_int_equal(f->error->code, ERROR(THROTTLED));
    assert_false(f->recorded);
    assert_false(f->error->final);
    assert_true(f->error->retry_after_ms > 0);
    assert_string_equal(f->error->limit, "1000");
    assert_int_equal(count, 1250);
    fixture_pass(f, 20 * 60 * 1000);
    assert_non_null(fixture_grant(f, "ann", "unheld", 1));
}

static void an_idle_shard_writes_nothing(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(fixture_pass(f, 48ull * 3600 * 1000), 0);
    assert_non_null(fixture_grant(f, "ann", "unheld", 1));
    assert_int_equal(fixture_pass(f, 23ull * 3600 * 1000), 0);
    fixture_restart(f);
    assert_int_equal(fixture_pass(f, 48ull * 3600 * 1000), 2);
    assert_int_equal(fixture_pass(f, 48ull * 3600 * 1000), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(outcomes_are_forgotten_after_the_window_and_their_ids_expire),
        FIXTURE_TEST(many_are_forgotten_a_page_at_a_time),
        FIXTURE_TEST(a_crowded_shard_forgets_sooner_but_never_the_last_quarter_hour),
        FIXTURE_TEST(beyond_that_mutations_are_throttled_before_the_log),
        FIXTURE_TEST(an_idle_shard_writes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
