/* Rate rules: how often one player may change edges of a collection. */
#include <stdio.h>
#include <string.h>

#include "node/core/definition/player_rate.h"
#include "node/rpc/fixture_edges.h"

#define MINUTE 60000u

static int setup(void **state)
{
    int failed = fixture_setup(state);

    if (failed == 0)
        fixture_define_favorites(*state);
    return failed;
}

static int teardown(void **state)
{
    fixture_check_edges(*state);
    return fixture_teardown(state);
}

#define RATE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* One more edge of the player, to a target of its own. False: THROTTLED. */
static bool changes(struct fixture *f, const char *player)
{
    static uint32_t number;
    char target[16];

    snprintf(target, sizeof target, "t%u", number++);
    if (fixture_favorite(f, player, target) != NULL)
        return true;
    assert_int_equal(f->error->code, ERROR(THROTTLED));
    assert_false(f->error->final);
    assert_true(f->outcome.rate_refused);
    return false;
}

static uint32_t changes_until_refused(struct fixture *f, const char *player)
{
    uint32_t count = 0;

    while (count < 1000 && changes(f, player))
        count++;
    return count;
}

static void rule(struct fixture *f, uint64_t revision, uint32_t limit, uint32_t period_ms)
{
    fixture_define_rate(f, &(struct fixture_rate_rule){ 20, revision, "calm", "favorites", limit,
                                                        period_ms, false });
}

static void without_a_rule_a_player_changes_30_edges_a_minute(void **state)
{
    struct fixture *f = *state;
    uint64_t since = f->now_ms;
    char id[40];

    for (uint32_t i = 0; i < 30; i++) {
        assert_true(changes(f, "ann"));
        f->now_ms += 100;
    }
    snprintf(id, sizeof id, "%s", fixture_op_id(f));
    const struct fixture_edge edge = { .player = "ann", .target = "pong", .op_id = id };
    assert_null(fixture_edge(f, &edge));
    assert_int_equal(f->error->code, ERROR(THROTTLED));
    assert_int_equal(f->error->retry_after_ms, since + MINUTE - f->now_ms);
    assert_string_equal(f->error->field, "player_id");
    assert_string_equal(f->error->limit, "30 in 60000 ms");
    assert_false(fixture_status(f, "ann", "pong")->favorited);
    assert_int_equal(fixture_partial(f, "", "pong"), 0);
    assert_true(changes(f, "bob"));
    f->now_ms = since + MINUTE - 1;
    assert_null(fixture_edge(f, &edge));
    assert_int_equal(f->error->retry_after_ms, 1);
    f->now_ms++;
    assert_int_equal(fixture_edge(f, &edge)->edges, 31); /* The same attempt. */
    assert_int_equal(changes_until_refused(f, "ann"), 29);
}

static void a_window_begins_with_its_first_change(void **state)
{
    struct fixture *f = *state;

    rule(f, 20, 2, 1000);
    assert_true(changes(f, "ann"));
    f->now_ms += 999;
    assert_true(changes(f, "ann"));
    assert_false(changes(f, "ann"));
    assert_int_equal(f->error->retry_after_ms, 1);
    assert_string_equal(f->error->limit, "2 in 1000 ms");
    assert_non_null(strstr(f->error->message, "the rate rule calm"));
    f->now_ms += 1;
    assert_true(changes(f, "ann"));
    f->now_ms += 5000;
    assert_int_equal(changes_until_refused(f, "ann"), 2);
    assert_int_equal(f->error->retry_after_ms, 1000);
}

static void both_ways_count_and_so_does_a_ver_that_rises(void **state)
{
    struct fixture *f = *state;

    rule(f, 20, 3, 1000);
    assert_non_null(fixture_favorite(f, "ann", "pong"));
    assert_non_null(fixture_favorite(f, "ann", "pong"));
    assert_non_null(fixture_unfavorite(f, "ann", "pong"));
    assert_null(fixture_unfavorite(f, "ann", "pong"));
    assert_int_equal(f->error->code, ERROR(THROTTLED));
}

static void what_changes_nothing_takes_nothing(void **state)
{
    struct fixture *f = *state;
    char id[40];

    fixture_define(f, &(struct fixture_collection){ 7, 11, "favorites", POLICY_HIGHEST, 1, false });
    rule(f, 20, 2, 1000);
    snprintf(id, sizeof id, "%s", fixture_op_id(f));
    const struct fixture_edge edge = { .player = "ann", .target = "pong", .ver = 9, .op_id = id };
    const struct fixture_edge late = { .player = "ann", .target = "pong", .ver = 8, .gone = true };
    const struct fixture_edge other = { .player = "ann", .target = "pong", .if_ver = 5 };
    const struct fixture_edge full = { .player = "ann", .target = "chess" };
    for (uint32_t i = 0; i < 5; i++) {
        assert_non_null(fixture_edge(f, &edge)); /* A repetition, from the second on. */
        assert_false(fixture_edge(f, &late)->applied);
        assert_null(fixture_edge(f, &other));
        assert_int_equal(f->error->code, ERROR(VERSION_CONFLICT));
        assert_null(fixture_edge(f, &full));
        assert_int_equal(f->error->code, ERROR(CAPACITY_FULL));
    }
    assert_non_null(fixture_unfavorite(f, "ann", "pong"));
    assert_false(changes(f, "ann"));
    assert_false(fixture_edge(f, &late)->applied); /* Though the player has no change left. */
    assert_non_null(fixture_edge(f, &edge));
    assert_true(f->outcome.duplicate);
}

static void all_rules_of_a_subject_hold(void **state)
{
    struct fixture *f = *state;
    uint64_t since = f->now_ms;

    rule(f, 20, 3, 1000);
    fixture_define_rate(
        f, &(struct fixture_rate_rule){ 21, 21, "day", "favorites", 4, 86400000, false });
    fixture_define_rate(
        f, &(struct fixture_rate_rule){ 22, 22, "other", "likes", 1, 86400000, false });
    assert_int_equal(changes_until_refused(f, "ann"), 3);
    assert_int_equal(f->error->retry_after_ms, 1000);
    f->now_ms += 1000;
    assert_int_equal(changes_until_refused(f, "ann"), 1);
    assert_int_equal(f->error->retry_after_ms, 86400000 - 1000);
    assert_non_null(strstr(f->error->message, "the rate rule day"));
    f->now_ms = since + 86400000;
    assert_int_equal(changes_until_refused(f, "ann"), 3);
    assert_int_equal(f->error->retry_after_ms, 1000);
}

static void collections_and_players_count_apart(void **state)
{
    struct fixture *f = *state;

    fixture_define(f, &(struct fixture_collection){ 8, 12, "likes", POLICY_HIGHEST, 0, false });
    rule(f, 20, 2, 1000);
    assert_int_equal(changes_until_refused(f, "ann"), 2);
    for (uint32_t i = 0; i < 30; i++)
        assert_non_null(fixture_edge(
            f, &(struct fixture_edge){ .player = "ann", .target = "x", .collection = "likes" }));
    assert_null(fixture_edge(
        f, &(struct fixture_edge){ .player = "ann", .target = "x", .collection = "likes" }));
    assert_int_equal(f->error->code, ERROR(THROTTLED));
    assert_int_equal(changes_until_refused(f, "bob"), 2);
}

static void a_rule_that_changes_begins_anew(void **state)
{
    struct fixture *f = *state;

    rule(f, 20, 2, 1000);
    assert_int_equal(changes_until_refused(f, "ann"), 2);
    rule(f, 21, 3, 1000);
    assert_int_equal(changes_until_refused(f, "ann"), 3);
    rule(f, 22, 3, 5000);
    assert_int_equal(changes_until_refused(f, "ann"), 3);
    assert_int_equal(f->error->retry_after_ms, 5000);
}

static void a_name_made_again_meets_nothing_of_its_former_life(void **state)
{
    struct fixture *f = *state;
    const struct fixture_rate_rule gone = { 20, 21, "calm", "favorites", 2, 1000, true };
    const struct fixture_rate_rule again = { 23, 22, "calm", "favorites", 2, 1000, false };

    rule(f, 20, 2, 1000);
    assert_int_equal(changes_until_refused(f, "ann"), 2);
    fixture_define_rate(f, &gone);
    assert_int_equal(changes_until_refused(f, "ann"), 30); /* The default. */
    fixture_define_rate(f, &again);
    assert_int_equal(changes_until_refused(f, "ann"), 2);
    fixture_define(f, &(struct fixture_collection){ 7, 30, "favorites", POLICY_HIGHEST, 0, true });
    fixture_define(f, &(struct fixture_collection){ 9, 31, "favorites", POLICY_HIGHEST, 0, false });
    assert_int_equal(changes_until_refused(f, "ann"), 2);
}

static void windows_are_rows_and_another_process_goes_on(void **state)
{
    struct fixture *f = *state;

    rule(f, 20, 3, 1000);
    assert_true(changes(f, "ann"));
    fixture_restart(f);
    assert_true(changes(f, "ann"));
    fixture_checkpoint(f);
    fixture_evict(f, 0);
    assert_true(changes(f, "ann"));
    fixture_next_epoch(f);
    assert_false(changes(f, "ann"));
    fixture_restart(f);
    assert_false(changes(f, "ann"));
}

/* Replicas that ran an earlier program let it pass. */
static void no_rule_holds_under_an_earlier_apply_version(void **state)
{
    struct fixture *f = *state;
    struct meta *meta = (struct meta *)(uintptr_t)applier_meta(f->applier);
    struct row_key key;
    struct slice value;

    row_key_rate_rules(&key);
    state_begin(applier_state(f->applier));
    state_delete(applier_state(f->applier), row_key_slice(&key));
    state_commit(applier_state(f->applier));
    meta->apply_version = RATE_APPLY_VERSION - 1;
    rule(f, 20, 2, 1000);
    for (uint32_t i = 0; i < 40; i++)
        assert_true(changes(f, "ann"));
    meta->apply_version = RATE_APPLY_VERSION;
    fixture_restart(f);
    /* The rule was logged before there was a row of rules: it is found among the definitions. */
    assert_int_equal(changes_until_refused(f, "ann"), 2);
    assert_int_not_equal(state_find(applier_state(f->applier), row_key_slice(&key), &value),
                         STATE_PRESENT);
}

static void a_row_that_cannot_be_read_holds_its_player_back_until_it_is_repaired(void **state)
{
    struct fixture *f = *state;
    struct state *rows = applier_state(f->applier);
    struct fixture_unreadable unreadable;
    struct row_key key;

    rule(f, 20, 2, 1000);
    assert_true(changes(f, "ann"));
    row_key_rate(&key, SLICE_LITERAL("player:ann"), 7);
    state_begin(rows);
    state_put(rows, row_key_slice(&key), SLICE_LITERAL("?"));
    state_commit(rows);
    assert_null(fixture_favorite(f, "ann", "pong"));
    assert_int_equal(f->error->code, ERROR(QUARANTINED));
    assert_true(changes(f, "bob"));
    assert_int_equal(fixture_check_player(f, "ann", &unreadable), 1);
    fixture_unreadable_free(&unreadable);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RATE_TEST(without_a_rule_a_player_changes_30_edges_a_minute),
        RATE_TEST(a_window_begins_with_its_first_change),
        RATE_TEST(both_ways_count_and_so_does_a_ver_that_rises),
        RATE_TEST(what_changes_nothing_takes_nothing),
        RATE_TEST(all_rules_of_a_subject_hold),
        RATE_TEST(collections_and_players_count_apart),
        RATE_TEST(a_rule_that_changes_begins_anew),
        RATE_TEST(a_name_made_again_meets_nothing_of_its_former_life),
        RATE_TEST(windows_are_rows_and_another_process_goes_on),
        RATE_TEST(no_rule_holds_under_an_earlier_apply_version),
        RATE_TEST(a_row_that_cannot_be_read_holds_its_player_back_until_it_is_repaired),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
