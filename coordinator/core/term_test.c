/* A coordinator that does not decide holds no work, however it came to stop; elected again, it
 * begins all of it again. */
#include "coordinator/core/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* ---- ways to stop ---- */
static void lose(struct world *world)
{
    world_step(world, (struct coord_event){ .type = COORD_LOST });
}

/* It hears of it by a write that etcd refuses. */
static void be_refused(struct world *world)
{
    world_depose(world);
    world_node_down(world, 3); /* Its shards get other owners. */
    world_run(world, 100);
    world_node_up(world, 3, 2);
}

static void halt(struct world *world)
{
    world_step(world, (struct coord_event){ .type = COORD_HALT });
}

/* The restore is accepted: records come again. */
static void reset(struct world *world)
{
    world_step(world, (struct coord_event){ .type = COORD_RESET });
}

static void doubt(struct world *world)
{
    world_node_doubts(world, 3, 1);
    world_run(world, 20);
}

static void (*const ways[])(struct world *world) = { lose, be_refused, halt, reset, doubt };

/* ---- work ---- */
static struct world *ready_world(void)
{
    struct world *world = world_new();

    world_start(world);
    world_run(world, 12000);
    for (uint64_t i = 0; i < 10; i++)
        world_server_up(world, 1000 + i);
    world_run(world, 200);
    return world;
}

static void search(struct world *world)
{
    world->deaf_node = 2;
    world->holds[1] = world->holds[6] = true;
    world->items = 1;
}

static void contain(struct world *world)
{
    world->gold[3] = world->rich[3] = 7;
    world->uncontainable = true;
}

static void expire(struct world *world)
{
    world->deaf_node = 2;
    world_server_gone(world, 1001);
}

static void hold(struct world *world)
{
    for (uint64_t i = 0; i < 5; i++)
        world_server_gone(world, 1000 + i);
}

static void deliver(struct world *world)
{
    world->deaf_node = 3;
    world_set_policy(world, 2);
}

static void move(struct world *world)
{
    struct shard_wish wish = { .member_count = 3, .members = { 1, 2, 4 } };

    world->learner_lag = 100000;
    world_node_up(world, 4, 1);
    world_wish_shard(world, 5, &wish);
}

static void (*const works[])(struct world *world) = {
    search, contain, expire, hold, deliver, move
};

/* Until it is under way: each way meets it at another point. */
static void begin(struct world *world, size_t work, uint64_t more_ms)
{
    works[work](world);
    world_run(world, 3000 + more_ms);
    assert_non_null(coord_work_left(world->coord));
}

static void whoever_stops_deciding_holds_no_work(void **state)
{
    (void)state;
    for (size_t way = 0; way < sizeof ways / sizeof ways[0]; way++) {
        for (size_t work = 0; work < sizeof works / sizeof works[0]; work++) {
            for (uint64_t more_ms = 0; more_ms <= 60; more_ms += 20) {
                struct world *world = ready_world();

                begin(world, work, more_ms);
                ways[way](world);
                assert_false(coord_is_active(world->coord));
                assert_null(coord_work_left(world->coord));
                world_free(world);
            }
        }
    }
}

/* Answers of its last term are worth nothing in the next one. */
static void a_search_that_was_let_go_of_is_made_again(void **state)
{
    (void)state;
    for (uint64_t more_ms = 0; more_ms < 200; more_ms += 20) {
        struct world *world = ready_world();

        search(world);
        world_run(world, 3000 + more_ms);
        be_refused(world);
        world->deaf_node = 0;
        world_elect(world);
        world_run(world, 6000);
        assert_true(world->contained[1] && world->contained[6]);
        assert_int_equal(world_stats(world).audit_contained, 2);
        world_free(world);
    }
}

static void a_containment_that_was_let_go_of_is_made_again(void **state)
{
    (void)state;
    for (uint64_t more_ms = 0; more_ms < 200; more_ms += 20) {
        struct world *world = ready_world();

        contain(world);
        world_run(world, 3000 + more_ms);
        be_refused(world);
        world->uncontainable = false;
        world_elect(world);
        world_run(world, 6000);
        assert_true(world->contained[3]);
        world_free(world);
    }
}

/* A deposed coordinator's gauges are read as well: an alert looks at the greatest of all. */
static void whoever_stops_deciding_reports_nothing_of_its_term(void **state)
{
    struct world *world = ready_world();

    (void)state;
    contain(world);
    world_run(world, 3000);
    hold(world);
    deliver(world);
    world_run(world, 3000);
    assert_int_equal(world_stats(world).server_hold, 1);
    assert_int_equal(world_stats(world).audit_imbalance, 1);
    assert_true(world_stats(world).policy_pending > 0);
    be_refused(world);
    lose(world);
    assert_int_equal(world_stats(world).server_hold, 0);
    assert_int_equal(world_stats(world).audit_imbalance, 0);
    assert_int_equal(world_stats(world).policy_pending, 0);
    assert_int_equal(world_stats(world).transactions_open, 0);
    assert_int_equal(world_stats(world).calls_open, 0);
    world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_stops_deciding_holds_no_work),
        cmocka_unit_test(a_search_that_was_let_go_of_is_made_again),
        cmocka_unit_test(a_containment_that_was_let_go_of_is_made_again),
        cmocka_unit_test(whoever_stops_deciding_reports_nothing_of_its_term),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
