#include "node/io/disk/space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MIN 1000u

static enum space_state after(enum space_state now, uint64_t free_bytes)
{
    return space_next(now, free_bytes, MIN);
}

static void shards_leave_before_writes_are_refused(void **state)
{
    (void)state;
    assert_int_equal(after(SPACE_OK, 2 * MIN), SPACE_OK);
    assert_int_equal(after(SPACE_OK, 2 * MIN - 1), SPACE_LOW);
    assert_int_equal(after(SPACE_LOW, MIN), SPACE_LOW);
    assert_int_equal(after(SPACE_LOW, MIN - 1), SPACE_FULL);
    assert_int_equal(after(SPACE_OK, 0), SPACE_FULL);
}

static void a_state_is_left_a_quarter_later_than_it_was_entered(void **state)
{
    (void)state;
    assert_int_equal(after(SPACE_FULL, MIN + MIN / 4 - 1), SPACE_FULL);
    assert_int_equal(after(SPACE_FULL, MIN + MIN / 4), SPACE_LOW);
    assert_int_equal(after(SPACE_LOW, 2 * MIN + MIN / 4 - 1), SPACE_LOW);
    assert_int_equal(after(SPACE_LOW, 2 * MIN + MIN / 4), SPACE_OK);
    assert_int_equal(after(SPACE_FULL, 3 * MIN), SPACE_OK);
}

struct counts {
    bool room;
    uint32_t rests;
};

static bool has_room(void *user)
{
    struct counts *counts = user;

    return counts->room;
}

static void count_rest(void *user, bool rests)
{
    struct counts *counts = user;

    counts->rests += rests;
}

static bool is_full(void *user)
{
    return space_state(user) == SPACE_FULL;
}

static bool is_ok(void *user)
{
    return space_state(user) == SPACE_OK;
}

static bool is_rested(void *user)
{
    const struct counts *counts = user;

    return counts->rests > 0;
}

static struct space *space_of(struct loop *loop, struct counts *counts, uint64_t free_min)
{
    return space_new(&(struct space_options){ .loop = loop,
                                              .log_path = "/tmp",
                                              .db_path = "/tmp",
                                              .free_min = free_min,
                                              .log_has_room = has_room,
                                              .database_rests = count_rest,
                                              .user = counts });
}

static void a_disk_with_less_than_the_minimum_is_named(void **state)
{
    struct loop *loop;
    char why[SHARD_FULL_BYTES];
    struct counts counts = { .room = true };

    (void)state;
    assert_int_equal(loop_new(&loop), ERR_OK);
    struct space *space = space_of(loop, &counts, UINT64_MAX / 4);
    assert_int_equal(space_state(space), SPACE_OK);
    assert_true(loop_run_until(loop, is_full, space, 60000));
    assert_true(space_disk_full(space));
    assert_true(space_free_bytes(space) < UINT64_MAX / 4);
    space_why(space, why);
    assert_non_null(strstr(why, "the disk of /tmp is full"));
    (void)loop_run_until(loop, is_rested, &counts, 60000);
    assert_int_equal(counts.rests, 1);
    space_free(space);
    loop_free(loop);
}

static void a_log_at_its_limit_stops_writes_but_no_checkpoint(void **state)
{
    struct loop *loop;
    char why[SHARD_FULL_BYTES];
    struct counts counts = { .room = false };

    (void)state;
    assert_int_equal(loop_new(&loop), ERR_OK);
    struct space *space = space_of(loop, &counts, 0);
    assert_true(loop_run_until(loop, is_full, space, 60000));
    assert_false(space_disk_full(space));
    space_why(space, why);
    assert_non_null(strstr(why, "--log-size-max"));
    counts.room = true;
    assert_true(loop_run_until(loop, is_ok, space, 60000));
    assert_int_equal(counts.rests, 0);
    space_free(space);
    loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_leave_before_writes_are_refused),
        cmocka_unit_test(a_state_is_left_a_quarter_later_than_it_was_entered),
        cmocka_unit_test(a_log_at_its_limit_stops_writes_but_no_checkpoint),
        cmocka_unit_test(a_disk_with_less_than_the_minimum_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
