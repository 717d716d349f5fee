/* Presence at three members in one process: servers that end, batches, lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "holdfast/internal/v1/definition.pb-c.h"
#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/internal/v1/refusal.pb-c.h"
#include "holdfast/v1/document.pb-c.h"
#include "holdfast/v1/presence.pb-c.h"
#include "holdfast/v1/user.pb-c.h"
#include "idl/error_code.h"
#include "idl/method.h"
#include "node/core/codec/proto_scan.h"
#include "node/io/mergeable/mergers_fixture.h"
#include "node/store/merge_db.h"
#include "runtime/base/check.h"
#include "runtime/base/test_directory.h"
#include "runtime/cluster/placement.h"

static bool never(void *user)
{
    (void)user;
    return false;
}

static void the_players_of_a_server_that_ended_are_gone_at_once_and_swept_by_the_owner(void **state)
{
    struct world *w = *state;

    living_put(&w->living, (struct incarnation){ 1, 5 }, false);
    living_put(&w->living, (struct incarnation){ 1, 6 }, false);
    living_complete(&w->living);
    assert_int_equal(world_set_presence(w, 1, "ada", "1-5"), REPLY_OK);
    assert_int_equal(world_set_presence(w, 1, "bob", "1-6"), REPLY_OK);
    world_wait_for_presences(w, 2);
    living_remove(&w->living, (struct incarnation){ 1, 5 });
    for (uint32_t place = 0; place < 3; place++) {
        assert_false(world_is_online(w, place, "ada"));
        assert_true(world_is_online(w, place, "bob"));
    }
    assert_int_equal(world_presences(w, 2), 2);
    world_wait_for_presences(w, 1);
    assert_int_equal(world_set_presence(w, 2, "ada", "1-5"), REPLY_REFUSED);
}

static void each_element_of_a_batch_is_carried_out_by_itself(void **state)
{
    struct world *w = *state;
    Holdfast__V1__BatchSetPresenceRequest batch = HOLDFAST__V1__BATCH_SET_PRESENCE_REQUEST__INIT;
    Holdfast__V1__SetPresenceRequest requests[4], *list[4];
    char names[4][16], kinds[16];

    for (unsigned i = 0; i < 4; i++) {
        world_name_player(i != 1, 100 * i, names[i]); /* The second one is of another shard. */
        holdfast__v1__set_presence_request__init(&requests[i]);
        requests[i].player_id = names[i];
        requests[i].op_id = text_lend("key:set");
        requests[i].connection = text_lend(i == 2 ? "no such" : "game");
        requests[i].ttl_ms = 60000;
        list[i] = &requests[i];
    }
    batch.n_requests = 4;
    batch.requests = list;
    assert_int_equal(world_call(w, 0, METHOD_BATCH_SET_PRESENCE, &batch.base), REPLY_OK);
    world_results(w, kinds);
    assert_string_equal(kinds, "reer");
    assert_true(world_is_online(w, 0, names[0]));
    assert_false(world_is_online(w, 0, names[2]));
    assert_true(world_is_online(w, 0, names[3]));
    world_wait_for_presences(w, 2);
    batch.n_requests = 0;
    assert_int_equal(world_call(w, 0, METHOD_BATCH_SET_PRESENCE, &batch.base), REPLY_REFUSED);
}

static void a_member_lists_its_shards_and_says_which_it_does_not_have(void **state)
{
    struct world *w = *state;
    Holdfast__Internal__V1__ListNodeOnlineRequest request =
        HOLDFAST__INTERNAL__V1__LIST_NODE_ONLINE_REQUEST__INIT;
    uint32_t shards[] = { 0, SHARD };
    uint8_t bytes[64];
    struct buf out = { 0 };

    assert_int_equal(world_set_presence(w, 1, "ada", "1-10"), REPLY_OK);
    world_wait_for_presences(w, 1);
    request.n_shards = 2;
    request.shards = shards;
    request.limit = 10;
    request.count = true;
    struct slice asked = { bytes, holdfast__internal__v1__list_node_online_request__pack(&request,
                                                                                         bytes) };

    assert_true(mergers_list_online(w->members[0].mergers, asked, &out));
    Holdfast__Internal__V1__ListNodeOnlineResponse *response =
        holdfast__internal__v1__list_node_online_response__unpack(NULL, out.size, out.data);

    assert_int_equal(response->n_rows, 1);
    assert_string_equal(response->rows[0]->player->player_id, "ada");
    assert_int_equal(response->count, 1);
    assert_int_equal(response->n_missing, 1);
    assert_int_equal(response->missing[0], 0);
    assert_false(response->more);
    holdfast__internal__v1__list_node_online_response__free_unpacked(response, NULL);
    shards[0] = 4; /* There is no such shard. */
    asked.size = holdfast__internal__v1__list_node_online_request__pack(&request, bytes);
    assert_false(mergers_list_online(w->members[0].mergers, asked, &out));
    buf_deinit(&out);
}

static void set_many(struct world *w, unsigned from, unsigned count)
{
    Holdfast__V1__BatchSetPresenceRequest batch = HOLDFAST__V1__BATCH_SET_PRESENCE_REQUEST__INIT;
    Holdfast__V1__SetPresenceRequest requests[20], *list[20];
    char names[20][16];

    batch.n_requests = count;
    batch.requests = list;
    for (unsigned i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "p%u", from + i);
        holdfast__v1__set_presence_request__init(&requests[i]);
        requests[i].player_id = names[i];
        requests[i].op_id = text_lend("key:set");
        requests[i].connection = text_lend("game");
        requests[i].ttl_ms = 3600000;
        list[i] = &requests[i];
    }
    assert_int_equal(world_call(w, 0, METHOD_BATCH_SET_PRESENCE, &batch.base), REPLY_OK);
}

/* However many shards a list asks for, it counts a bounded number of players itself. */
static void a_list_counts_a_bounded_number_of_players(void **state)
{
    struct world *w = *state;
    Holdfast__Internal__V1__ListNodeOnlineRequest request =
        HOLDFAST__INTERNAL__V1__LIST_NODE_ONLINE_REQUEST__INIT;
    const struct rep_record alone = {
        .generation = 1,
        .epoch = 1,
        .owner = 1,
        .membership = { .config = 1, .count = 1, .members = { 1 } },
    };
    uint32_t shards[] = { 0, 1, 2, 3 };
    uint8_t bytes[64];

    for (uint32_t shard = 0; shard < 4; shard++) {
        if (shard != SHARD)
            mergers_record(w->members[0].mergers, shard, &alone);
    }
    for (unsigned i = 0; i < 600; i++)
        set_many(w, 20 * i, 20);
    request.n_shards = 4;
    request.shards = shards;
    request.limit = 1;
    request.count = true;
    struct slice asked = { bytes, holdfast__internal__v1__list_node_online_request__pack(&request,
                                                                                         bytes) };
    uint64_t end_ms = loop_now_ms(w->loop) + PATIENCE_MS, count = 0;

    for (bool first = true; count < 12000; first = false) {
        struct buf out = { 0 };

        assert_true(loop_now_ms(w->loop) < end_ms);
        if (!first)
            (void)loop_run_until(w->loop, never, w, 50);
        assert_true(mergers_list_online(w->members[0].mergers, asked, &out));
        Holdfast__Internal__V1__ListNodeOnlineResponse *response =
            holdfast__internal__v1__list_node_online_response__unpack(NULL, out.size, out.data);

        count = response->count;
        assert_true(!first || count < 12000 || response->counted_ms < response->now_ms);
        holdfast__internal__v1__list_node_online_response__free_unpacked(response, NULL);
        buf_deinit(&out);
    }
    assert_int_equal(count, 12000);
}

static void an_erased_player_is_not_told_until_an_undo(void **state)
{
    struct world *w = *state;

    assert_int_equal(world_set_presence(w, 0, "7", "1-10"), REPLY_OK);
    world_erased(w, 0, 5, true, false);
    assert_false(world_is_online(w, 0, "7"));
    assert_int_equal(world_set_presence(w, 0, "7", "1-10"), REPLY_REFUSED);
    world_erased(w, 0, 5, false, false);
    assert_true(world_is_online(w, 0, "7"));
    world_erased(w, 0, 6, false, true);
    assert_false(world_is_online(w, 0, "7"));
}

static void a_user_is_told_with_the_write_and_alike_by_each_member(void **state)
{
    struct world *w = *state;
    Holdfast__V1__UpsertUserRequest request = HOLDFAST__V1__UPSERT_USER_REQUEST__INIT;
    Holdfast__V1__GetUserRequest get = HOLDFAST__V1__GET_USER_REQUEST__INIT;

    request.player_id = get.player_id = text_lend("7");
    request.op_id = text_lend("key:upsert");
    request.settings = text_lend("{\"music\": 0}");
    request.connection = text_lend("game");
    request.incarnation = text_lend("1-10");
    assert_int_equal(world_call(w, 0, METHOD_UPSERT_USER, &request.base), REPLY_OK);
    Holdfast__V1__UpsertUserResponse *made = holdfast__v1__upsert_user_response__unpack(
        NULL, w->answered.body.size, w->answered.body.data);

    assert_non_null(made);
    assert_true(made->written->replicas > 0);
    assert_string_equal(made->user->settings, "{\"music\":0}");
    assert_string_equal(made->user->connections[0]->connection, "game");
    get.context = made->written->context;
    for (uint32_t place = 0; place < 3; place++) {
        uint64_t end_ms = loop_now_ms(w->loop) + 20000;

        while (world_call(w, place, METHOD_GET_USER, &get.base) != REPLY_OK) /* Not yet. */
            assert_true(loop_now_ms(w->loop) < end_ms);
        Holdfast__V1__GetUserResponse *found = holdfast__v1__get_user_response__unpack(
            NULL, w->answered.body.size, w->answered.body.data);

        assert_string_equal(found->user->settings, made->user->settings);
        assert_int_equal(found->user->n_connections, 1);
        holdfast__v1__get_user_response__free_unpacked(found, NULL);
    }
    holdfast__v1__upsert_user_response__free_unpacked(made, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_players_of_a_server_that_ended_are_gone_at_once_and_swept_by_the_owner),
        TEST(each_element_of_a_batch_is_carried_out_by_itself),
        TEST(a_member_lists_its_shards_and_says_which_it_does_not_have),
        TEST(a_list_counts_a_bounded_number_of_players),
        TEST(an_erased_player_is_not_told_until_an_undo),
        TEST(a_user_is_told_with_the_write_and_alike_by_each_member),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
