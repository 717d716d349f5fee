#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "node/core/shard/read_hold.h"

#define MS_MAX 200u

static const struct slice ANN = { (const uint8_t *)"ann", 3 };
static const struct slice BOB = { (const uint8_t *)"bob", 3 };

static bool take(struct read_holds *holds, struct slice entity, uint64_t reader, uint64_t now_ms)
{
    return read_holds_take(holds, &(struct read_ask){ .entity = entity, .reader = reader }, now_ms);
}

static bool stops(const struct read_holds *holds, struct slice entity, uint64_t now_ms)
{
    return read_holds_stop(holds, entity, NULL, now_ms);
}

static void writes_of_a_held_player_wait_until_the_last_reader_lets_go(void **state)
{
    struct read_holds holds = { .ms_max = MS_MAX };
    (void)state;

    assert_false(stops(&holds, ANN, 0));
    assert_true(take(&holds, ANN, 1, 0));
    assert_true(take(&holds, ANN, 2, 5));
    assert_true(stops(&holds, ANN, 5));
    assert_false(stops(&holds, BOB, 5));
    read_holds_release(&holds, ANN, 1, 6);
    assert_true(stops(&holds, ANN, 6));
    read_holds_release(&holds, ANN, 1, 6); /* Again: the other's is left alone. */
    assert_true(stops(&holds, ANN, 6));
    read_holds_release(&holds, ANN, 2, 7);
    assert_false(stops(&holds, ANN, 7));
    assert_int_equal(holds.taken, 1);
    assert_int_equal(holds.held_ms, 7);
    read_holds_deinit(&holds);
}

static void no_crowd_of_readers_holds_a_player_for_longer(void **state)
{
    struct read_holds holds = { .ms_max = MS_MAX };
    (void)state;

    for (uint64_t now_ms = 0; now_ms < MS_MAX; now_ms += 10) {
        (void)take(&holds, ANN, 1 + now_ms % 7, now_ms);
        read_holds_step(&holds, now_ms);
        assert_true(stops(&holds, ANN, now_ms));
    }
    assert_false(stops(&holds, ANN, MS_MAX));
    assert_false(read_holds_held(&holds, ANN, 1, MS_MAX));
    read_holds_step(&holds, MS_MAX);
    assert_int_equal(holds.active, 0);
    assert_false(take(&holds, ANN, 9, MS_MAX)); /* It rests now. */
    read_holds_deinit(&holds);
}

/* How long writes wait in `long_ms` while reads that last `read_ms` ask all the time. */
static uint64_t waited(uint64_t long_ms, uint64_t read_ms)
{
    struct read_holds holds = { .ms_max = MS_MAX };
    struct read_ask ask = { .entity = ANN, .reader = 1, .urgent = true };
    uint64_t waited_ms = 0;
    uint64_t began_ms = 0;

    for (uint64_t now_ms = 0; now_ms < long_ms; now_ms++) {
        read_holds_step(&holds, now_ms);
        if (now_ms >= began_ms + read_ms)
            read_holds_release(&holds, ANN, ask.reader, now_ms);
        if (holds.active == 0 && read_holds_may(&holds, ANN, true, now_ms)) {
            ask.reader++;
            began_ms = now_ms;
            assert_true(read_holds_take(&holds, &ask, now_ms));
        }
        waited_ms += stops(&holds, ANN, now_ms);
    }
    read_holds_deinit(&holds);
    return waited_ms;
}

/* A twentieth of the time, and what was saved up before; more if reads last for long, up to a sixth
 * if none comes to its end. */
static void however_many_ask_writes_have_most_of_the_time(void **state)
{
    const uint64_t long_ms = 100000;
    const uint64_t saved_ms = READ_HOLD_OWED_URGENT * MS_MAX / READ_HOLD_REST;
    (void)state;

    for (uint64_t read_ms = 1; read_ms <= MS_MAX / 4; read_ms += 7)
        assert_in_range(waited(long_ms, read_ms), long_ms / READ_HOLD_REST / 2,
                        long_ms / READ_HOLD_REST + saved_ms + MS_MAX);
    assert_in_range(waited(long_ms, MS_MAX), long_ms / 8, long_ms / 6 + saved_ms + MS_MAX);
}

static void whoever_has_waited_for_long_may_ask_for_more(void **state)
{
    struct read_holds holds = { .ms_max = MS_MAX };
    struct read_ask urgent = { .entity = ANN, .reader = 2, .urgent = true };
    uint64_t now_ms = 0;
    (void)state;

    assert_true(take(&holds, ANN, 1, 0));
    now_ms = (READ_HOLD_OWED * MS_MAX) / READ_HOLD_REST + 10;
    read_holds_release(&holds, ANN, 1, now_ms);
    assert_false(read_holds_may(&holds, ANN, false, now_ms));
    assert_false(take(&holds, ANN, 2, now_ms));
    assert_true(read_holds_may(&holds, ANN, true, now_ms));
    assert_true(read_holds_take(&holds, &urgent, now_ms));
    read_holds_deinit(&holds);
}

static void reads_that_had_no_end_do_not_shut_others_out_for_long(void **state)
{
    struct read_holds holds = { .ms_max = MS_MAX };
    struct read_ask urgent = { .entity = ANN, .urgent = true };
    uint64_t now_ms = 0;
    (void)state;

    for (urgent.reader = 1; urgent.reader < 9; urgent.reader++) {
        assert_true(read_holds_take(&holds, &urgent, now_ms));
        now_ms += MS_MAX;
        read_holds_step(&holds, now_ms);
        now_ms += (READ_HOLD_OWED_MAX - READ_HOLD_OWED_URGENT) * MS_MAX;
    }
    read_holds_deinit(&holds);
}

static void a_player_that_has_rested_is_forgotten(void **state)
{
    struct read_holds holds = { .ms_max = MS_MAX };
    (void)state;

    assert_true(take(&holds, ANN, 1, 0));
    assert_true(take(&holds, BOB, 1, 0));
    read_holds_release(&holds, ANN, 1, 1);
    read_holds_release(&holds, BOB, 1, 2);
    read_holds_step(&holds, 30);
    assert_int_equal(holds.count, 1);
    read_holds_step(&holds, 2 + 2 * READ_HOLD_REST);
    assert_int_equal(holds.count, 0);
    assert_true(take(&holds, BOB, 1, 100));
    read_holds_clear(&holds);
    assert_false(stops(&holds, BOB, 100));
    read_holds_deinit(&holds);
}

static void a_transaction_that_some_reader_waits_for_passes_all(void **state)
{
    const struct txn_ref first = { 1, 2, 3 };
    const struct txn_ref second = { 1, 2, 4 };
    struct read_holds holds = { .ms_max = MS_MAX };
    struct read_ask ask = { .entity = ANN, .reader = 1, .pass = { first }, .pass_count = 1 };
    (void)state;

    assert_true(read_holds_take(&holds, &ask, 0));
    assert_true(take(&holds, ANN, 2, 0));
    assert_false(read_holds_stop(&holds, ANN, &first, 0));
    assert_true(read_holds_stop(&holds, ANN, &second, 0));
    assert_true(read_holds_stop(&holds, ANN, NULL, 0));
    ask.pass_count = 0;
    assert_true(read_holds_take(&holds, &ask, 1)); /* Says it again: none passes any more. */
    assert_true(read_holds_stop(&holds, ANN, &first, 1));
    read_holds_deinit(&holds);
}

static void what_is_remembered_is_bounded(void **state)
{
    struct read_holds holds = { .ms_max = MS_MAX };
    char name[16];
    (void)state;

    for (uint32_t i = 0; i < READ_HOLDS_MAX; i++) {
        int size = snprintf(name, sizeof name, "p%u", i);
        assert_true(take(&holds, (struct slice){ (uint8_t *)name, (size_t)size }, 1, 0));
    }
    assert_false(read_holds_may(&holds, ANN, true, 0));
    assert_false(take(&holds, ANN, 1, 0));
    for (uint32_t i = 2; i <= READ_HOLD_READERS_MAX; i++)
        assert_true(take(&holds, (struct slice){ (const uint8_t *)"p0", 2 }, i, 0));
    assert_false(take(&holds, (struct slice){ (const uint8_t *)"p0", 2 }, 99, 0));
    assert_true(take(&holds, (struct slice){ (const uint8_t *)"p0", 2 }, 1, 0));
    read_holds_deinit(&holds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_of_a_held_player_wait_until_the_last_reader_lets_go),
        cmocka_unit_test(no_crowd_of_readers_holds_a_player_for_longer),
        cmocka_unit_test(however_many_ask_writes_have_most_of_the_time),
        cmocka_unit_test(whoever_has_waited_for_long_may_ask_for_more),
        cmocka_unit_test(reads_that_had_no_end_do_not_shut_others_out_for_long),
        cmocka_unit_test(a_player_that_has_rested_is_forgotten),
        cmocka_unit_test(a_transaction_that_some_reader_waits_for_passes_all),
        cmocka_unit_test(what_is_remembered_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
