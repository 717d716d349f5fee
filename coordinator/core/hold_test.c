/* Holds, where game servers are registered with more than one API key. */
#include "coordinator/core/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/check.h"

#define FIRST_A 1000u
#define FIRST_B 2000u
#define FIRST_C 3000u

static struct world *ready_world(void)
{
    struct world *world = world_new();

    world_start(world);
    world_run(world, 12000);
    return world;
}

static void up(struct world *world, uint64_t first, uint64_t count, const char *key)
{
    for (uint64_t i = 0; i < count; i++)
        world_server_of_key(world, first + i, key);
    world_run(world, 100);
}

static void vanish(struct world *world, uint64_t first, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        world_server_gone(world, first + i);
}

static uint32_t known(struct world *world, uint64_t first, uint64_t count)
{
    uint32_t there = 0;

    for (uint64_t i = 0; i < count; i++)
        there += world_server_known(world, first + i);
    return there;
}

static void a_key_that_lets_its_servers_lapse_holds_no_others(void **state)
{
    struct world *world = ready_world();

    (void)state;
    up(world, FIRST_A, 20, "a");
    up(world, FIRST_B, 10, "b");
    vanish(world, FIRST_A, 20);
    world_run(world, 1000);
    vanish(world, FIRST_B, 1);
    world_run(world, 3000);
    assert_int_equal(known(world, FIRST_A, 20), 20);
    assert_int_equal(known(world, FIRST_B, 10), 9); /* Its players do not wait two minutes. */
    assert_int_equal(world_stats(world).server_holds, 1);
    assert_int_equal(world_stats(world).server_hold, 1);
    /* Again and again: nothing changes for the others. */
    for (uint32_t i = 0; i < 4; i++) {
        world_run(world, 20000);
        up(world, FIRST_A + 100 * (i + 1), 20, "a");
        vanish(world, FIRST_A + 100 * (i + 1), 20);
        vanish(world, FIRST_B + 1 + i, 1);
        world_run(world, 3000);
        assert_int_equal(known(world, FIRST_B, 10), 8 - i);
    }
    world_free(world);
}

static void a_key_with_many_live_servers_hides_no_loss_of_another(void **state)
{
    struct world *world = ready_world();

    (void)state;
    up(world, FIRST_A, 60, "a");
    up(world, FIRST_B, 8, "b");
    vanish(world, FIRST_B, 8); /* 12 % of all, and all of this key. */
    world_run(world, 60000);
    assert_int_equal(known(world, FIRST_B, 8), 8);
    assert_int_equal(world_stats(world).server_holds, 1);
    world_run(world, 65000);
    assert_int_equal(known(world, FIRST_B, 8), 0);
    assert_int_equal(world_stats(world).server_hold, 0);
    world_free(world);
}

static void a_loss_of_many_small_keys_holds_all(void **state)
{
    struct world *world = ready_world();
    char key[] = "a";

    (void)state;
    for (uint32_t i = 0; i < 8; i++) {
        key[0] = (char)('a' + i);
        up(world, FIRST_A + 10 * i, 2, key);
    }
    for (uint32_t i = 0; i < 8; i++)
        vanish(world, FIRST_A + 10 * i, 2);
    world_run(world, 60000);
    assert_int_equal(known(world, FIRST_A, 80), 16);
    assert_int_equal(world_stats(world).server_holds, 1); /* One, of all. */
    for (uint32_t i = 0; i < 7; i++) {
        key[0] = (char)('a' + i);
        up(world, FIRST_A + 10 * i, 2, key);
    }
    world_run(world, 2000);
    assert_int_equal(world_stats(world).server_hold, 0);
    assert_int_equal(known(world, FIRST_A, 80), 14);
    world_free(world);
}

static void a_server_of_a_small_key_is_held_with_those_of_two_large_ones(void **state)
{
    struct world *world = ready_world();

    (void)state;
    up(world, FIRST_A, 10, "a");
    up(world, FIRST_B, 10, "b");
    up(world, FIRST_C, 2, "c");
    vanish(world, FIRST_A, 10);
    vanish(world, FIRST_B, 10);
    world_run(world, 3000);
    vanish(world, FIRST_C, 1);
    world_run(world, 60000);
    assert_int_equal(known(world, FIRST_C, 2), 2);
    world_run(world, 70000);
    assert_int_equal(known(world, FIRST_A, 10) + known(world, FIRST_B, 10), 0);
    assert_int_equal(known(world, FIRST_C, 2), 1);
    world_free(world);
}

static void a_takeover_goes_on_with_the_hold_of_a_key_and_holds_no_others(void **state)
{
    struct world *world = ready_world();

    (void)state;
    up(world, FIRST_A, 20, "a");
    up(world, FIRST_B, 10, "b");
    vanish(world, FIRST_A, 20);
    world_run(world, 40000);
    world_replace_coordinator(world);
    world_elect(world);
    world_run(world, 11000);
    assert_int_equal(world_stats(world).server_hold, 1);
    assert_int_equal(world_stats(world).server_holds, 0);
    vanish(world, FIRST_B, 1);
    world_run(world, 3000);
    assert_int_equal(known(world, FIRST_B, 10), 9);
    assert_int_equal(known(world, FIRST_A, 20), 20);
    world_run(world, 68000); /* 122 s in all. */
    assert_int_equal(known(world, FIRST_A, 20), 0);
    world_free(world);
}

/* A coordinator remembers no keys of which nothing is left, whether it decides or not. */
static void keys_come_and_go(void **state)
{
    struct world *world = ready_world();
    char key[16];

    (void)state;
    for (uint32_t i = 0; i < 200; i++) {
        (void)snprintf(key, sizeof key, "k%u", i);
        up(world, FIRST_A + i, 1, key);
        vanish(world, FIRST_A + i, 1);
        world_run(world, 6000);
    }
    world_run(world, 20000);
    assert_int_equal(world_stats(world).servers_known, 0);
    assert_int_equal(world_stats(world).servers_expired, 200);
    world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_that_lets_its_servers_lapse_holds_no_others),
        cmocka_unit_test(a_key_with_many_live_servers_hides_no_loss_of_another),
        cmocka_unit_test(a_loss_of_many_small_keys_holds_all),
        cmocka_unit_test(a_server_of_a_small_key_is_held_with_those_of_two_large_ones),
        cmocka_unit_test(a_takeover_goes_on_with_the_hold_of_a_key_and_holds_no_others),
        cmocka_unit_test(keys_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
