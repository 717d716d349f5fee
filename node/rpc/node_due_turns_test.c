/* What the owner of a shard finds due, of several kinds at once: each has its turn. */
#include <stdio.h>

#include "holdfast/v1/erasure.pb-c.h"
#include "idl/method.h"
#include "node/core/codec/op.h"
#include "node/core/erasure/erasure.h"
#include "node/rpc/fixture_edges.h"
#include "runtime/base/check.h"

#define TICK_MS 20u /* Of a shard. */

static int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof *f);

    fixture_init_shard(f, 0, 1);
    fixture_define_favorites(f);
    fixture_define_haste(f);
    applier_set_erasure_rows(f->applier, 1);
    *state = f;
    return 0;
}

#define DUE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

static void begin_erasure(struct fixture *f, const char *player)
{
    Holdfast__V1__ErasePlayerRequest request = HOLDFAST__V1__ERASE_PLAYER_REQUEST__INIT;

    request.player_id = text_lend(player);
    request.op_id = fixture_op_id(f);
    request.authority = text_lend("system:admin");
    assert_non_null(fixture_mutate(f, METHOD_ERASE_PLAYER, &request.base));
}

static void erase(struct fixture *f, const char *player)
{
    char target[16];

    for (uint32_t i = 0; i < 100; i++) {
        snprintf(target, sizeof target, "t%02u", i);
        assert_non_null(fixture_favorite(f, player, target));
    }
    begin_erasure(f, player);
}

/* What is found due at the next tick, which is committed; 0: nothing. */
static uint32_t tick(struct fixture *f)
{
    struct buf body = { 0 };
    uint32_t method = 0;
    uint64_t next_ms;
    struct op op;

    f->now_ms += TICK_MS;
    if (applier_due(f->applier, f->now_ms, &body, &next_ms)) {
        assert_int_equal(op_decode(buf_slice(&body), &op), ERR_OK);
        method = op.method;
        fixture_commit(f, buf_slice(&body));
    }
    buf_deinit(&body);
    return method;
}

static void upkeep_does_not_wait_for_erasures(void **state)
{
    struct fixture *f = *state;
    uint32_t prunes = 0;

    for (uint32_t i = 0; i < 2000; i++) {
        assert_non_null(fixture_grant(f, "cat", "unheld", 1));
        arena_reset(&f->arena);
    }
    f->now_ms += 25ull * 3600 * 1000;
    erase(f, "ann");
    erase(f, "bob");
    for (uint32_t i = 0; i < 8; i++)
        prunes += tick(f) == METHOD_PRUNE_OPERATIONS;
    assert_int_equal(prunes, 4);
    while (prunes > 0)
        prunes = tick(f) == METHOD_PRUNE_OPERATIONS || tick(f) == METHOD_PRUNE_OPERATIONS;
    assert_int_equal(tick(f), METHOD_ERASURE_DUE);
}

static void a_session_does_not_wait_for_erasures(void **state)
{
    struct fixture *f = *state;

    assert_non_null(fixture_start(f, "cat", SERVER_A, HOLDFAST__V1__START_MODE__START_MODE_FAIL,
                                  fixture_op_id(f)));
    f->now_ms += 14000;
    erase(f, "ann");
    erase(f, "bob");
    while (f->now_ms + TICK_MS < FIXTURE_START_MS + 15000)
        assert_int_equal(tick(f), METHOD_ERASURE_DUE);
    /* Those that were due before it are due still. */
    assert_int_equal(tick(f), METHOD_SESSION_DUE);
    assert_string_equal(fixture_session(f, "cat")->state, "free");
    assert_int_equal(tick(f), METHOD_ERASURE_DUE);
}

static void only_timers_of_players_are_due_at_once(void **state)
{
    struct fixture *f = *state;
    struct buf body = { 0 };
    struct op op;

    assert_non_null(fixture_start(f, "cat", SERVER_A, HOLDFAST__V1__START_MODE__START_MODE_FAIL,
                                  fixture_op_id(f)));
    erase(f, "ann");
    f->now_ms += 14999;
    assert_false(applier_due_at_once(f->applier, f->now_ms, &body));
    f->now_ms += 1;
    assert_true(applier_due_at_once(f->applier, f->now_ms, &body));
    assert_int_equal(op_decode(buf_slice(&body), &op), ERR_OK);
    assert_int_equal(op.method, METHOD_SESSION_DUE);
    buf_deinit(&body);
}

static void spoil(struct fixture *f, const char *player)
{
    struct state *rows = applier_state(f->applier);
    static const uint8_t bytes[] = { 0xff };
    struct row_key key;

    row_key_player(&key, slice_from_text(arena_printf(&f->arena, "player:%s", player)));
    state_begin(rows);
    state_put(rows, row_key_slice(&key), (struct slice){ bytes, sizeof bytes });
    state_commit(rows);
}

/* Nothing can be done about it, and it stands behind more erasures than a page of timers. */
static void a_timer_of_an_unreadable_player_is_tried_once(void **state)
{
    struct fixture *f = *state;
    char player[16];

    assert_non_null(fixture_start(f, "cat", SERVER_A, HOLDFAST__V1__START_MODE__START_MODE_FAIL,
                                  fixture_op_id(f)));
    f->now_ms += 14000;
    for (uint32_t i = 0; i < 300; i++) {
        snprintf(player, sizeof player, "p%03u", i);
        assert_non_null(fixture_favorite(f, player, "t"));
        begin_erasure(f, player);
        arena_reset(&f->arena);
    }
    spoil(f, "cat");
    f->now_ms = FIXTURE_START_MS + 15000;
    uint32_t tried = 0, others = 0;
    for (uint32_t i = 0; i < 8; i++) {
        uint32_t method = tick(f);
        tried += method == METHOD_SESSION_DUE;
        others += method == METHOD_ERASURE_DUE;
    }
    assert_int_equal(tried, 1);
    assert_int_equal(others, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DUE_TEST(upkeep_does_not_wait_for_erasures),
        DUE_TEST(a_session_does_not_wait_for_erasures),
        DUE_TEST(only_timers_of_players_are_due_at_once),
        DUE_TEST(a_timer_of_an_unreadable_player_is_tried_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
