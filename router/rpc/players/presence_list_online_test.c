/* ListOnline over nodes of the test's making. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/internal/v1/refusal.pb-c.h"
#include "holdfast/v1/presence.pb-c.h"
#include "idl/error_code.h"
#include "router/rpc/fake/plain_router.h"
#include "runtime/base/check.h"

#define SHARDS 4u
#define NOW_MS 1700000000000

typedef Holdfast__Internal__V1__ListNodeOnlineRequest node_request;
typedef Holdfast__Internal__V1__ListNodeOnlineResponse node_response;

struct one {
    struct plain_ask ask;
    char names[128];
    char cursor[256];
    uint64_t count;
    int64_t as_of_ms;
    bool stale;
    size_t missing;
};

struct fixture {
    struct plain_router plain;
    struct one one;
    struct arena arena;
};

static void reply(struct request *request, const ProtobufCMessage *message)
{
    const Holdfast__V1__ListOnlineResponse *response = (const void *)message;
    struct one *one = request->origin;

    one->ask.answers++;
    one->names[0] = 0;
    for (size_t i = 0; i < response->n_players; i++)
        snprintf(one->names + strlen(one->names), sizeof one->names - strlen(one->names), "%s%s",
                 i > 0 ? " " : "", response->players[i]->player_id);
    snprintf(one->cursor, sizeof one->cursor, "%s", response->next_cursor);
    one->count = response->count;
    one->as_of_ms = response->as_of_ms;
    one->stale = response->stale;
    one->missing = response->n_missing_shards;
}

static const struct request_door door = { .reply = reply, .fail = plain_ask_fail };

static int setup(void **state)
{
    static const struct log silent = { .level_min = LOG_ERROR + 1 };
    struct fixture *f = mem_zalloc(sizeof *f);

    plain_router_init(&f->plain, SHARDS,
                      &(struct router_options){ .log = &silent, .in_flight_max = 100 });
    f->plain.door = &door;
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        fake_cluster_set_owner(&f->plain.fake, shard, 1 + shard % 2, 1);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    plain_router_deinit(&f->plain);
    arena_deinit(&f->arena);
    free(f);
    return 0;
}

static void ask(struct fixture *f, uint32_t page_size, const char *cursor)
{
    Holdfast__V1__ListOnlineRequest request = HOLDFAST__V1__LIST_ONLINE_REQUEST__INIT;

    request.page_size = page_size;
    request.cursor = text_lend(cursor);
    plain_router_send(&f->plain, &f->one.ask, METHOD_LIST_ONLINE, &request.base, 5000);
}

static const node_request *asked(struct fixture *f, uint32_t place)
{
    assert_true(place < f->plain.fake.call_count);
    assert_int_equal(f->plain.fake.calls[place].method, METHOD_LIST_NODE_ONLINE);
    return plain_message_read(&holdfast__internal__v1__list_node_online_request__descriptor,
                              f->plain.fake.calls[place].body, &f->arena);
}

/* One player, so many ms before NOW_MS. */
struct player {
    const char *name;
    uint64_t ago_ms;
};
struct said {
    const struct player *players; /* Up to one without a name. */
    const char *more;             /* Up to this one, of those players, it has looked. */
    uint32_t missing;             /* A shard. 0: none. */
};

static void answer(struct fixture *f, uint32_t place, const struct said *said)
{
    node_response response = HOLDFAST__INTERNAL__V1__LIST_NODE_ONLINE_RESPONSE__INIT;
    uint32_t missing = said->missing;

    response.rows = arena_alloc(&f->arena, 16 * sizeof *response.rows);
    for (const struct player *each = said->players; each->name != NULL; each++) {
        Holdfast__Internal__V1__OnlineRow *row = arena_alloc(&f->arena, sizeof *row);
        Holdfast__V1__OnlinePlayer *player = arena_alloc(&f->arena, sizeof *player);

        holdfast__internal__v1__online_row__init(row);
        holdfast__v1__online_player__init(player);
        player->player_id = text_lend(each->name);
        row->at = (NOW_MS - each->ago_ms) << 16;
        row->player = player;
        response.rows[response.n_rows++] = row;
        if (said->more != NULL && strcmp(said->more, each->name) == 0) {
            response.more = true;
            response.at = row->at;
            response.player_id = player->player_id;
        }
    }
    response.n_missing = missing > 0;
    response.missing = &missing;
    response.count = 10;
    response.counted_ms = NOW_MS - place;
    response.now_ms = NOW_MS;
    uint8_t *bytes = arena_alloc(&f->arena, protobuf_c_message_get_packed_size(&response.base) + 1);

    fake_cluster_answer(&f->plain.fake, place, WIRE_OK,
                        (struct slice){ bytes, protobuf_c_message_pack(&response.base, bytes) });
}

static const struct player of_first[] = { { "ada", 10 }, { "cy", 30 }, { "eve", 50 }, { 0 } };
static const struct player of_second[] = { { "bo", 20 }, { "dan", 40 }, { 0 } };
static const struct player no_players[] = { { 0 } };

static void what_nodes_say_is_one_list(void **state)
{
    struct fixture *f = *state;

    ask(f, 0, "");
    assert_int_equal(f->plain.fake.call_count, 2);
    assert_int_equal(asked(f, 0)->n_shards, 2);
    assert_int_equal(asked(f, 0)->limit, 101);
    assert_true(asked(f, 0)->count);
    answer(f, 1, &(struct said){ .players = of_second });
    assert_int_equal(f->one.ask.answers, 0);
    answer(f, 0, &(struct said){ .players = of_first });
    assert_int_equal(f->one.ask.answers, 1);
    assert_string_equal(f->one.names, "ada bo cy dan eve");
    assert_string_equal(f->one.cursor, "");
    assert_int_equal(f->one.count, 20);
    assert_int_equal(f->one.as_of_ms, NOW_MS - 1);
    assert_false(f->one.stale);
}

static void pages_go_on_where_the_one_before_ended_and_then_upwards(void **state)
{
    struct fixture *f = *state;
    static const struct player again[] = { { "cy", 2 }, { "bo", 1 }, { 0 } };

    ask(f, 3, "");
    answer(f, 0, &(struct said){ .players = of_first });
    answer(f, 1, &(struct said){ .players = of_second });
    assert_string_equal(f->one.names, "ada bo cy");
    ask(f, 3, f->one.cursor);
    assert_int_equal(asked(f, 2)->at, (uint64_t)(NOW_MS - 30) << 16);
    assert_string_equal(asked(f, 2)->player_id, "cy");
    assert_false(asked(f, 2)->count);
    answer(f, 2, &(struct said){ .players = of_first + 2 });
    answer(f, 3, &(struct said){ .players = of_second + 1 });
    assert_int_equal(f->one.ask.answers, 0); /* There is room for one more. */
    assert_true(asked(f, 4)->upwards);
    assert_int_equal(asked(f, 4)->limit, 2);
    assert_int_equal(asked(f, 4)->at, (uint64_t)(NOW_MS - 1000) << 16);
    answer(f, 4, &(struct said){ .players = no_players });
    answer(f, 5, &(struct said){ .players = again });
    assert_string_equal(f->one.names, "dan eve cy");
    assert_int_equal(f->one.count, 0);
    ask(f, 3, f->one.cursor);
    assert_true(asked(f, 6)->upwards);
    assert_string_equal(asked(f, 6)->player_id, "cy");
    answer(f, 6, &(struct said){ .players = no_players });
    answer(f, 7, &(struct said){ .players = again + 1 });
    assert_string_equal(f->one.names, "bo");
    assert_string_equal(f->one.cursor, "");
}

/* So there is no empty page at the end. */
static void a_full_page_is_the_last_one_if_no_player_was_set_again(void **state)
{
    struct fixture *f = *state;

    ask(f, 3, "");
    answer(f, 0, &(struct said){ .players = of_first });
    answer(f, 1, &(struct said){ .players = of_second });
    ask(f, 2, f->one.cursor);
    answer(f, 2, &(struct said){ .players = of_first + 2 });
    answer(f, 3, &(struct said){ .players = of_second + 1 });
    assert_int_equal(asked(f, 4)->limit, 1);
    answer(f, 4, &(struct said){ .players = no_players });
    answer(f, 5, &(struct said){ .players = no_players });
    assert_string_equal(f->one.names, "dan eve");
    assert_string_equal(f->one.cursor, "");
}

static void who_was_set_again_is_asked_for_later_if_no_node_says_it(void **state)
{
    struct fixture *f = *state;

    ask(f, 3, "");
    answer(f, 0, &(struct said){ .players = of_first });
    answer(f, 1, &(struct said){ .players = of_second });
    ask(f, 3, f->one.cursor);
    answer(f, 2, &(struct said){ .players = of_first + 2 });
    answer(f, 3, &(struct said){ .players = of_second + 1 });
    for (uint32_t i = 4; i < f->plain.fake.call_count; i++)
        fake_cluster_fail(&f->plain.fake, i, ERR_TIMEOUT);
    assert_string_equal(f->one.names, "dan eve");
    assert_true(f->one.stale);
    uint32_t place = f->plain.fake.call_count;

    ask(f, 3, f->one.cursor);
    assert_true(asked(f, place)->upwards);
    answer(f, place, &(struct said){ .players = no_players });
    answer(f, place + 1, &(struct said){ .players = no_players });
    assert_string_equal(f->one.cursor, "");
    assert_false(f->one.stale);
}

static void a_page_ends_where_the_slowest_node_has_looked(void **state)
{
    struct fixture *f = *state;

    ask(f, 0, "");
    answer(f, 0, &(struct said){ .players = of_first, .more = "eve" });
    answer(f, 1, &(struct said){ .players = of_second, .more = "bo" });
    assert_string_equal(f->one.names, "ada bo");
    ask(f, 0, f->one.cursor);
    assert_string_equal(asked(f, 2)->player_id, "bo");
    for (uint32_t i = 2; i < 6; i++)
        answer(f, i, &(struct said){ .players = no_players });
}

static void for_what_a_node_cannot_tell_another_one_is_asked(void **state)
{
    struct fixture *f = *state;

    ask(f, 0, "");
    answer(f, 0, &(struct said){ .players = of_first });
    fake_cluster_fail(&f->plain.fake, 1, ERR_TIMEOUT);
    assert_int_equal(f->one.ask.answers, 0);
    assert_int_equal(f->plain.fake.call_count, 3);
    assert_int_not_equal(f->plain.fake.calls[2].node, f->plain.fake.calls[1].node);
    assert_int_equal(asked(f, 2)->n_shards, 2);
    answer(f, 2, &(struct said){ .players = of_second, .missing = 3 });
    assert_int_equal(asked(f, 3)->n_shards, 1);
    assert_int_equal(asked(f, 3)->shards[0], 3);
    answer(f, 3, &(struct said){ .players = no_players });
    assert_string_equal(f->one.names, "ada bo cy dan eve");
    assert_false(f->one.stale);
}

static struct slice refused(struct fixture *f, Holdfast__V1__ErrorCode code)
{
    Holdfast__Internal__V1__Refusal refusal = HOLDFAST__INTERNAL__V1__REFUSAL__INIT;
    uint8_t *bytes = arena_alloc(&f->arena, 64);

    refusal.code = code;
    return (struct slice){ bytes, protobuf_c_message_pack(&refusal.base, bytes) };
}

/* Its caller has asked too much, or it cannot tell and says so. */
static void a_refusal_ends_the_list_unless_another_member_may_tell(void **state)
{
    struct fixture *f = *state;

    ask(f, 0, "");
    fake_cluster_answer(&f->plain.fake, 0, WIRE_REFUSED, refused(f, CODE(UNAVAILABLE)));
    answer(f, 1, &(struct said){ .players = of_second });
    assert_int_equal(f->plain.fake.call_count, 3);
    fake_cluster_answer(&f->plain.fake, 2, WIRE_REFUSED, refused(f, CODE(THROTTLED)));
    assert_int_equal(f->plain.fake.call_count, 3);
    assert_int_equal(f->one.ask.answers, 1);
    assert_int_equal(f->one.ask.code, CODE(THROTTLED));
}

static void what_no_member_tells_is_said_to_be_missing(void **state)
{
    struct fixture *f = *state;

    ask(f, 0, "");
    answer(f, 0, &(struct said){ .players = of_first });
    for (uint32_t i = 1; i <= 3; i++)
        fake_cluster_fail(&f->plain.fake, i, ERR_TIMEOUT);
    assert_string_equal(f->one.names, "ada cy eve");
    assert_true(f->one.stale);
    assert_int_equal(f->one.missing, 2);
    assert_int_equal(f->one.count, 10);
}

static void without_any_node_there_is_no_list(void **state)
{
    struct fixture *f = *state;

    for (uint64_t node = 1; node <= 3; node++)
        f->plain.fake.down[node] = true;
    ask(f, 0, "");
    assert_int_equal(f->one.ask.answers, 1);
    assert_int_equal(f->one.ask.code, CODE(UNAVAILABLE));
}

static void answers_that_make_no_sense_are_asked_of_others(void **state)
{
    struct fixture *f = *state;
    static const struct player nameless[] = { { "", 10 }, { 0 } };

    ask(f, 1, "");
    answer(f, 0, &(struct said){ .players = of_first }); /* More than it was asked for. */
    answer(f, 1, &(struct said){ .players = nameless });
    assert_int_equal(f->one.ask.answers, 0);
    assert_true(f->plain.fake.call_count > 2);
    for (uint32_t i = 2; i < f->plain.fake.call_count; i++)
        answer(f, i, &(struct said){ .players = no_players });
    assert_int_equal(f->one.ask.answers, 1);
    assert_string_equal(f->one.names, "");
}

static void limits_and_cursors_are_checked(void **state)
{
    struct fixture *f = *state;

    ask(f, 1001, "");
    assert_int_equal(f->one.ask.code, CODE(INVALID_ARGUMENT));
    ask(f, 0, "abc");
    assert_int_equal(f->one.ask.code, CODE(INVALID_ARGUMENT));
    assert_int_equal(f->plain.fake.call_count, 0);
}

static void a_caller_that_goes_takes_its_calls_along(void **state)
{
    struct fixture *f = *state;

    ask(f, 0, "");
    router_cancel(&f->plain.router, &f->one.ask.request);
    assert_true(f->plain.fake.calls[0].cancelled);
    assert_true(f->plain.fake.calls[1].cancelled);
    assert_int_equal(f->one.ask.code, CODE(CANCELED));
}

#define ONLINE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ONLINE_TEST(what_nodes_say_is_one_list),
        ONLINE_TEST(pages_go_on_where_the_one_before_ended_and_then_upwards),
        ONLINE_TEST(a_full_page_is_the_last_one_if_no_player_was_set_again),
        ONLINE_TEST(who_was_set_again_is_asked_for_later_if_no_node_says_it),
        ONLINE_TEST(a_page_ends_where_the_slowest_node_has_looked),
        ONLINE_TEST(for_what_a_node_cannot_tell_another_one_is_asked),
        ONLINE_TEST(a_refusal_ends_the_list_unless_another_member_may_tell),
        ONLINE_TEST(what_no_member_tells_is_said_to_be_missing),
        ONLINE_TEST(without_any_node_there_is_no_list),
        ONLINE_TEST(answers_that_make_no_sense_are_asked_of_others),
        ONLINE_TEST(limits_and_cursors_are_checked),
        ONLINE_TEST(a_caller_that_goes_takes_its_calls_along),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
