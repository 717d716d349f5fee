#include "coordinator/core/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "idl/method.h"

static struct world *ready_world(void)
{
    struct world *world = world_new();

    world_start(world);
    world_run(world, 500);
    return world;
}

static void every_cut_is_counted_while_shards_answer(void **state)
{
    struct world *world = ready_world();
    (void)state;

    world->gold[2] = 30; /* Sent to shard 5, say. */
    world->gold[5] = -30;
    uint64_t counted = world_stats(world).audit_cuts;
    world_run(world, 10000);
    struct coord_stats stats = world_stats(world);
    assert_in_range(stats.audit_cuts - counted, 9, 10);
    assert_in_range(world->cuts[0][0] - stats.audit_cut, 1, 2);
    assert_in_range(stats.audit_age_seconds, 0, 1);
    assert_int_equal(stats.audit_violations, 0);
    assert_int_equal(stats.audit_imbalance, 0);
    world_free(world);
}

static void what_is_doubled_is_told_once(void **state)
{
    struct world *world = ready_world();
    (void)state;

    world_run(world, 3000);
    world->gold[4] = 1;
    world_run(world, 5000);
    assert_int_equal(world_stats(world).audit_violations, 1);
    assert_int_equal(world_stats(world).audit_imbalance, 1);
    world->gold[4] = 2; /* Something else is wrong now. */
    world_run(world, 3000);
    assert_int_equal(world_stats(world).audit_violations, 2);
    world->gold[4] = 0;
    world_run(world, 3000);
    assert_int_equal(world_stats(world).audit_violations, 2);
    assert_int_equal(world_stats(world).audit_imbalance, 0);
    world_free(world);
}

static void who_holds_an_item_twice_is_contained_once(void **state)
{
    struct world *world = ready_world();
    (void)state;

    world_run(world, 3000);
    world->holds[1] = world->holds[6] = true;
    world->items = 1;
    world_run(world, 4000);
    assert_true(world->contained[1] && world->contained[6]);
    assert_string_equal(world->reason, "audit: item 30313233343536373839616263646566 held 2 times");
    assert_int_equal(world_stats(world).audit_contained, 2);
    assert_int_equal(world_stats(world).audit_imbalance, 1);
    world_run(world, 10000); /* It is known: no second search begins. */
    assert_int_equal(world_stats(world).audit_searches, 1);
    assert_int_equal(world->containments, 2);
    world->items = 0; /* An operator says that it is made. */
    world_run(world, 3000);
    assert_int_equal(world_stats(world).audit_imbalance, 0);
    assert_int_equal(world_stats(world).audit_violations, 1);
    world_free(world);
}

static void the_only_holder_of_what_was_consumed_is_contained(void **state)
{
    struct world *world = ready_world();
    (void)state;

    world_run(world, 3000);
    world->holds[6] = true; /* The other copy is gone, as it should: this one is too many. */
    world->items = 1;
    world_run(world, 4000);
    assert_true(world->contained[6]);
    assert_int_equal(world_stats(world).audit_contained, 1);
    assert_int_equal(world_stats(world).audit_unexplained, 0);
    world_free(world);
}

static void holders_who_do_not_account_for_the_sums_are_left_alone(void **state)
{
    struct world *world = ready_world();
    (void)state;

    world_run(world, 3000);
    world->holds[1] = world->holds[6] = true;
    world->items = 3; /* Thrice too many, and only two are found. */
    world_run(world, 15000);
    struct coord_stats stats = world_stats(world);
    assert_int_equal(stats.audit_contained, 0);
    assert_int_equal(stats.audit_searches, 5);
    assert_int_equal(stats.audit_unexplained, 1);
    assert_int_equal(stats.audit_imbalance, 1);
    world_free(world);
}

static void a_wallet_that_is_not_its_ledger_is_contained(void **state)
{
    struct world *world = ready_world();
    (void)state;

    world_run(world, 3000);
    world->gold[3] = world->rich[3] = 7;
    world_run(world, 4000);
    assert_true(world->contained[3]);
    assert_false(world->contained[1]);
    assert_string_equal(world->reason, "audit: +7 gold beside the ledger");
    assert_int_equal(world_stats(world).audit_contained, 1);
    world_free(world);
}

#define SHARDS    WORLD_CUT_SHARDS
#define RICH_EACH 40u

/* Of all shards together more than one search contains. */
struct crowd {
    bool held[SHARDS][RICH_EACH];
    uint64_t calls;
    char names[RICH_EACH][16];
    Holdfast__Internal__V1__FoundWallet wallets[RICH_EACH], *list[RICH_EACH];
};

static void crowd_searched(void *user, const Holdfast__Internal__V1__AuditSearchRequest *request,
                           Holdfast__Internal__V1__AuditSearchResponse *response)
{
    struct crowd *crowd = user;

    for (uint32_t i = 0; i < RICH_EACH; i++) {
        holdfast__internal__v1__found_wallet__init(&crowd->wallets[i]);
        (void)snprintf(crowd->names[i], sizeof crowd->names[i], "p%u_%u", request->shard, i);
        crowd->wallets[i].player_id = crowd->names[i];
        crowd->wallets[i].currency = text_lend("gold");
        crowd->wallets[i].too_many = 1;
        crowd->list[i] = &crowd->wallets[i];
    }
    response->wallets = crowd->list;
    response->n_wallets = RICH_EACH;
}

static void crowd_called(void *user, const struct coord_call *call)
{
    struct crowd *crowd = user;
    unsigned shard, player;

    if (call->method != METHOD_CONTAIN_PLAYER)
        return;
    Holdfast__Internal__V1__ContainPlayerRequest *request =
        holdfast__internal__v1__contain_player_request__unpack(NULL, call->body.size,
                                                               call->body.data);

    assert_non_null(request);
    assert_int_equal(sscanf(request->player_id, "p%u_%u", &shard, &player), 2);
    crowd->held[shard][player] = true;
    crowd->calls++;
    holdfast__internal__v1__contain_player_request__free_unpacked(request, NULL);
}

static void a_crowd_is_contained_by_one_search_after_the_other(void **state)
{
    struct world *world = ready_world();
    struct crowd crowd = { 0 };
    uint64_t searches;

    (void)state;
    world->watch =
        (struct world_watch){ .user = &crowd, .called = crowd_called, .searched = crowd_searched };
    world_run(world, 3000);
    for (uint32_t i = 0; i < SHARDS; i++)
        world->gold[i] = RICH_EACH;
    world_run(world, 30000);
    for (uint32_t i = 0; i < SHARDS * RICH_EACH; i++)
        assert_true(crowd.held[i / RICH_EACH][i % RICH_EACH]);
    assert_int_equal(crowd.calls, SHARDS * RICH_EACH); /* Each once. */
    assert_int_equal(world_stats(world).audit_unexplained, 0);
    searches = world_stats(world).audit_searches;
    world_run(world, 10000);
    assert_int_equal(world_stats(world).audit_searches, searches);
    world_free(world);
}

/* The first is put right while its player cannot be held back yet. The sums of the second are the
 * same: they are known, and of another damage. */
static void the_same_sum_again_is_searched_for_again(void **state)
{
    struct world *world = ready_world();
    (void)state;

    world_run(world, 3000);
    world->uncontainable = true;
    world->gold[3] = world->rich[3] = 7;
    world_run(world, 4000);
    world->gold[3] = world->rich[3] = 0;
    world_run(world, 4000);
    assert_int_equal(world_stats(world).audit_imbalance, 0);
    world->gold[5] = world->rich[5] = 7;
    world_run(world, 4000);
    world->uncontainable = false;
    world_run(world, 6000);
    assert_true(world->contained[3] && world->contained[5]);
    assert_int_equal(world_stats(world).audit_searches, 2);
    world_free(world);
}

static void another_coordinator_searches_again_and_contains_nobody_twice(void **state)
{
    struct world *world = ready_world();
    (void)state;

    world_run(world, 3000);
    world->holds[1] = world->holds[6] = true;
    world->items = 1;
    world_run(world, 4000);
    world_replace_coordinator(world);
    world_elect(world);
    world_run(world, 6000);
    assert_int_equal(world->containments, 4);
    assert_int_equal(world_stats(world).audit_contained, 0);
    world_free(world);
}

static void a_cut_with_open_records_says_nothing(void **state)
{
    struct world *world = ready_world();
    (void)state;

    world_run(world, 3000);
    uint64_t counted = world_stats(world).audit_cuts;
    world->gold[4] = 1;
    world->open[4] = 1;
    world_run(world, 6000);
    struct coord_stats stats = world_stats(world);
    assert_int_equal(stats.audit_cuts, counted);
    assert_int_equal(stats.audit_violations, 0);
    assert_true(stats.audit_inconclusive >= 3);
    assert_true(stats.audit_age_seconds >= 5);
    world_free(world);
}

static void a_shard_that_does_not_answer_holds_cuts_up(void **state)
{
    struct world *world = ready_world();
    (void)state;

    world_run(world, 3000);
    world->deaf_node = 2;
    world->gold[0] = 1;
    world_run(world, 1000);
    uint64_t counted = world_stats(world).audit_cuts;
    world_run(world, 11000);
    assert_int_equal(world_stats(world).audit_cuts, counted);
    world->deaf_node = 0;
    world_run(world, 9000);
    assert_true(world_stats(world).audit_cuts > counted);
    world_free(world);
}

static void another_coordinator_goes_on_where_the_shards_are(void **state)
{
    struct world *world = ready_world();
    (void)state;

    world_run(world, 10000);
    uint64_t cut = world_stats(world).audit_cut;
    world_replace_coordinator(world);
    world_elect(world);
    world_run(world, 5000);
    assert_true(world_stats(world).audit_cut > cut);
    assert_true(world_stats(world).audit_cuts >= 2);
    world_free(world);
}

static void without_an_interval_there_are_no_cuts(void **state)
{
    struct world *world = world_new();
    (void)state;

    world->limits.audit_interval_ms = 0;
    world_replace_coordinator(world);
    world_start(world);
    world_run(world, 5000);
    assert_int_equal(world->cuts[0][0], 0);
    world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cut_is_counted_while_shards_answer),
        cmocka_unit_test(what_is_doubled_is_told_once),
        cmocka_unit_test(who_holds_an_item_twice_is_contained_once),
        cmocka_unit_test(the_only_holder_of_what_was_consumed_is_contained),
        cmocka_unit_test(holders_who_do_not_account_for_the_sums_are_left_alone),
        cmocka_unit_test(a_wallet_that_is_not_its_ledger_is_contained),
        cmocka_unit_test(a_crowd_is_contained_by_one_search_after_the_other),
        cmocka_unit_test(the_same_sum_again_is_searched_for_again),
        cmocka_unit_test(another_coordinator_searches_again_and_contains_nobody_twice),
        cmocka_unit_test(a_cut_with_open_records_says_nothing),
        cmocka_unit_test(a_shard_that_does_not_answer_holds_cuts_up),
        cmocka_unit_test(another_coordinator_goes_on_where_the_shards_are),
        cmocka_unit_test(without_an_interval_there_are_no_cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
