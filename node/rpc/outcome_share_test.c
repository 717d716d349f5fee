/* A player's calls of Favorite and Unfavorite fill a share of the shard's room for outcomes, also
 * where they change nothing or are refused (outcome_share.h). */
#include <stdio.h>
#include <string.h>

#include "node/core/apply/apply.h"
#include "node/core/apply/outcome_share.h"
#include "node/rpc/fixture_edges.h"

#define AN_HOUR_MS (3600ull * 1000)
#define SHARE      50u /* Of a shard that keeps 1000. */

static int setup(void **state)
{
    int failed = fixture_setup(state);

    if (failed == 0) {
        fixture_define_favorites(*state);
        fixture_policy(*state, 0, 1000);
        assert_int_equal(
            outcome_share_max(&applier_meta(((struct fixture *)*state)->applier)->policy), SHARE);
    }
    return failed;
}

static int teardown(void **state)
{
    fixture_check_edges(*state);
    return fixture_teardown(state);
}

#define SHARE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* A call of that number under a `key:`, which changes nothing but the first time. */
static bool call_key(struct fixture *f, const char *player, unsigned number)
{
    char op_id[32];

    snprintf(op_id, sizeof op_id, "key:%s-%u", player, number);
    arena_reset(&f->arena);
    return fixture_edge(f, &(struct fixture_edge){ .player = player,
                                                   .target = "pong",
                                                   .ver = number == 0 ? 5 : 4,
                                                   .op_id = op_id }) != NULL;
}

static void assert_throttled(struct fixture *f, uint64_t wait_ms)
{
    assert_non_null(f->error);
    assert_int_equal(f->error->code, ERROR(THROTTLED));
    assert_string_equal(f->error->field, "op_id");
    assert_string_equal(f->error->limit, "50");
    assert_string_equal(f->error->value, "50");
    assert_int_equal(f->error->retry_after_ms, wait_ms);
    assert_false(f->error->final);
}

/* The beginning of a segment, so that tests know when it ends. */
static uint64_t pass_to_segment(struct fixture *f, uint64_t segment_ms)
{
    f->now_ms += segment_ms - f->now_ms % segment_ms;
    return f->now_ms;
}

static void calls_that_change_nothing_fill_a_share_and_no_more(void **state)
{
    struct fixture *f = *state;

    uint64_t since = pass_to_segment(f, 4 * AN_HOUR_MS);
    for (unsigned i = 0; i < SHARE; i++) {
        f->now_ms += 1000;
        assert_true(call_key(f, "ann", i));
    }
    assert_false(call_key(f, "ann", SHARE));
    assert_throttled(f, since + 28 * AN_HOUR_MS - f->now_ms);
    assert_int_equal(applier_meta(f->applier)->key_count, SHARE);
    assert_true(call_key(f, "ann", 3)); /* Its outcome stands. */
    assert_true(f->outcome.duplicate);
    assert_true(call_key(f, "bob", 0));                   /* Another player's share. */
    assert_non_null(fixture_favorite(f, "ann", "chess")); /* Ids of the other kind. */
    fixture_restart(f);
    assert_false(call_key(f, "ann", SHARE));
}

static void refused_calls_take_from_it_too(void **state)
{
    struct fixture *f = *state;
    char op_id[32];

    for (unsigned i = 0; i < SHARE; i++) {
        snprintf(op_id, sizeof op_id, "key:%u", i);
        arena_reset(&f->arena);
        assert_null(
            fixture_edge(f, &(struct fixture_edge){
                                .player = "ann", .target = "pong", .if_ver = 10, .op_id = op_id }));
        assert_int_equal(f->error->code, ERROR(VERSION_CONFLICT));
        assert_true(f->error->final);
    }
    assert_false(call_key(f, "ann", 0));
    assert_int_equal(f->error->code, ERROR(THROTTLED));
    assert_int_equal(applier_meta(f->applier)->key_count, SHARE);
}

/* Rate rules refuse without an outcome: that takes nothing. */
static void what_leaves_no_outcome_takes_nothing(void **state)
{
    struct fixture *f = *state;

    fixture_define_rate(f, &(struct fixture_rate_rule){ .number = 3,
                                                        .revision = 12,
                                                        .name = "slow",
                                                        .subject = "favorites",
                                                        .limit = 1,
                                                        .period_ms = 3600000 });
    assert_true(call_key(f, "ann", 0));
    for (unsigned i = 0; i < 3 * SHARE; i++) {
        char op_id[32];
        snprintf(op_id, sizeof op_id, "key:r%u", i);
        assert_null(fixture_edge(
            f, &(struct fixture_edge){ .player = "ann", .target = "pong", .op_id = op_id }));
        assert_int_equal(f->error->code, ERROR(THROTTLED));
        assert_string_equal(f->error->field, "player_id");
    }
    assert_true(call_key(f, "ann", 1));
}

/* What leaves the shard leaves the count with it, or at most a segment later, and never before. */
static void a_segment_is_forgotten_with_its_outcomes(void **state)
{
    struct fixture *f = *state;

    uint64_t since = pass_to_segment(f, 4 * AN_HOUR_MS);
    for (unsigned i = 0; i < SHARE; i++)
        assert_true(call_key(f, "ann", i));
    (void)fixture_pass(f, since + 28 * AN_HOUR_MS - 1 - f->now_ms);
    assert_false(call_key(f, "ann", SHARE));
    assert_throttled(f, since + 28 * AN_HOUR_MS - f->now_ms);
    (void)fixture_pass(f, since + 28 * AN_HOUR_MS + 120000 - f->now_ms);
    assert_int_equal(applier_meta(f->applier)->key_count, 0);
    for (unsigned i = 0; i < SHARE; i++)
        assert_true(call_key(f, "ann", 100 + i));
    assert_false(call_key(f, "ann", 200));
}

/* In every segment of two days: as many outcomes as are kept never pass the share. */
static void however_calls_are_spread_no_more_are_kept(void **state)
{
    struct fixture *f = *state;
    uint64_t most = 0;

    for (unsigned i = 0; i < 48; i++) {
        (void)fixture_pass(f, AN_HOUR_MS);
        for (unsigned j = 0; j < 9; j++)
            (void)call_key(f, "ann", i * 9 + j);
        uint64_t kept = applier_meta(f->applier)->key_count;
        assert_true(kept <= SHARE);
        most = kept > most ? kept : most;
    }
    assert_int_equal(most, SHARE);
}

static void uuids_have_a_share_of_a_quarter_of_an_hour(void **state)
{
    struct fixture *f = *state;

    uint64_t since = pass_to_segment(f, AN_HOUR_MS / 4);
    for (unsigned i = 0; i < SHARE; i++) {
        f->now_ms += 2500; /* Rate rules have room. */
        arena_reset(&f->arena);
        assert_non_null(fixture_favorite(f, "ann", "pong"));
    }
    assert_null(fixture_favorite(f, "ann", "pong"));
    assert_throttled(f, since + AN_HOUR_MS / 2 - f->now_ms);
    assert_true(call_key(f, "ann", 0));
    f->now_ms = since + AN_HOUR_MS / 2;
    assert_non_null(fixture_favorite(f, "ann", "pong"));
}

/* What no player may call has none. */
static void other_methods_take_nothing(void **state)
{
    struct fixture *f = *state;

    for (unsigned i = 0; i < 3 * SHARE; i++) {
        arena_reset(&f->arena);
        assert_non_null(fixture_grant(f, "ann", "unheld", 1));
    }
    assert_non_null(fixture_favorite(f, "ann", "pong"));
}

static void a_row_that_cannot_be_read_refuses(void **state)
{
    struct fixture *f = *state;
    struct row_key key;

    assert_true(call_key(f, "ann", 0));
    row_key_rate(&key, SLICE_LITERAL("player:ann"), OUTCOME_SHARE_SUBJECT);
    state_begin(applier_state(f->applier));
    state_put(applier_state(f->applier), row_key_slice(&key), SLICE_LITERAL("\x07"));
    state_commit(applier_state(f->applier));
    assert_false(call_key(f, "ann", 1));
    assert_int_equal(f->error->code, ERROR(QUARANTINED));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SHARE_TEST(calls_that_change_nothing_fill_a_share_and_no_more),
        SHARE_TEST(refused_calls_take_from_it_too),
        SHARE_TEST(what_leaves_no_outcome_takes_nothing),
        SHARE_TEST(a_segment_is_forgotten_with_its_outcomes),
        SHARE_TEST(however_calls_are_spread_no_more_are_kept),
        SHARE_TEST(uuids_have_a_share_of_a_quarter_of_an_hour),
        SHARE_TEST(other_methods_take_nothing),
        SHARE_TEST(a_row_that_cannot_be_read_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
