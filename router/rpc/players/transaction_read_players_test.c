/* A read of several players, round by round, with nodes of the test's making. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/internal/v1/refusal.pb-c.h"
#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/transaction.pb-c.h"
#include "idl/error_code.h"
#include "router/rpc/fake/fake_router.h"
#include "runtime/base/check.h"

#define DEADLINE_MS 400u

static void dispatch(struct fixture *f, uint32_t method, const ProtobufCMessage *message)
{
    fake_router_call(f, method, message, DEADLINE_MS, NULL);
}

/* `held`: the owner makes new writes of the player wait. */
static void read_told(struct fixture *f, uint32_t place, uint64_t version, bool held)
{
    Holdfast__Internal__V1__ReadSettledResponse response =
        HOLDFAST__INTERNAL__V1__READ_SETTLED_RESPONSE__INIT;
    Holdfast__V1__Profile profile = HOLDFAST__V1__PROFILE__INIT;
    uint8_t bytes[64];

    profile.version = version;
    response.profile = &profile;
    response.held = held;
    response.may_hold = true;
    size_t size = holdfast__internal__v1__read_settled_response__pack(&response, bytes);
    fake_cluster_answer(f->fake, place, WIRE_OK, (struct slice){ bytes, size });
}

static void read_answer(struct fixture *f, uint32_t place, uint64_t version)
{
    read_told(f, place, version, false);
}

static Holdfast__Internal__V1__ReadSettledRequest *read_asked(struct fixture *f, uint32_t place)
{
    struct slice body = f->fake->calls[place].body;
    Holdfast__Internal__V1__ReadSettledRequest *request =
        holdfast__internal__v1__read_settled_request__unpack(NULL, body.size, body.data);

    assert_int_equal(f->fake->calls[place].method, METHOD_READ_SETTLED);
    assert_non_null(request);
    return request;
}

static void read_two(struct fixture *f)
{
    static Holdfast__V1__ReadPlayersRequest read;
    static char *players[] = { (char *)"ann", (char *)"bob" };

    holdfast__v1__read_players_request__init(&read);
    read.player_ids = players;
    read.n_player_ids = 2;
    dispatch(f, METHOD_READ_PLAYERS, &read.base);
}

static void read_told_much(struct fixture *f, uint32_t place, size_t size)
{
    Holdfast__Internal__V1__ReadSettledResponse response =
        HOLDFAST__INTERNAL__V1__READ_SETTLED_RESPONSE__INIT;
    Holdfast__V1__Profile profile = HOLDFAST__V1__PROFILE__INIT;
    Holdfast__V1__Section section = HOLDFAST__V1__SECTION__INIT, *sections[1] = { &section };
    char *json = mem_zalloc(size + 1);
    uint8_t *bytes = mem_zalloc(size + 64);

    memset(json, '1', size);
    section.json = json;
    profile.version = 5;
    profile.sections = sections;
    profile.n_sections = 1;
    response.profile = &profile;
    size_t packed = holdfast__internal__v1__read_settled_response__pack(&response, bytes);
    fake_cluster_answer(f->fake, place, WIRE_OK, (struct slice){ bytes, packed });
    free(json);
    free(bytes);
}

static void
players_with_too_much_for_one_answer_are_refused_by_the_field_that_makes_it_less(void **state)
{
    struct fixture *f = *state;

    read_two(f);
    for (uint32_t place = 0; place < f->fake->call_count; place++)
        read_told_much(f, place, 2 * 1024 * 1024);
    assert_int_equal(f->answers, 1);
    assert_int_equal(f->code, CODE(INVALID_ARGUMENT));
    assert_int_equal(router_in_flight(&f->router), 0);
}

static void players_are_read_again_until_none_has_changed_between(void **state)
{
    struct fixture *f = *state;

    read_two(f);
    assert_int_equal(f->fake->call_count, 2);
    read_answer(f, 0, 5);
    read_answer(f, 1, 7);
    assert_int_equal(f->fake->call_count, 4);
    read_answer(f, 3, 8); /* bob has changed. */
    read_answer(f, 2, 5);
    assert_int_equal(f->answers, 0);
    assert_int_equal(f->fake->call_count, 6);
    read_answer(f, 4, 5);
    read_answer(f, 5, 8);
    assert_int_equal(f->answers, 1);
    Holdfast__V1__ReadPlayersResponse *answer =
        holdfast__v1__read_players_response__unpack(NULL, f->response.size, f->response.data);
    assert_int_equal(answer->n_profiles, 2);
    assert_int_equal(answer->profiles[1]->version, 8);
    holdfast__v1__read_players_response__free_unpacked(answer, NULL);
}

/* Three looks, then new writes wait; it lets them go when it has its answer. */
static void a_read_among_steady_writes_makes_them_wait_and_lets_go(void **state)
{
    struct fixture *f = *state;

    read_two(f);
    for (uint32_t place = 0; place < 6; place++)
        read_answer(f, place, place);
    assert_int_equal(f->answers, 0);
    Holdfast__Internal__V1__ReadSettledRequest *asked = read_asked(f, 6);
    assert_true(asked->hold);
    uint64_t reader = asked->reader;
    assert_true(reader != 0);
    holdfast__internal__v1__read_settled_request__free_unpacked(asked, NULL);
    for (uint32_t place = 6; place < 10; place++)
        read_told(f, place, 9, true);
    assert_int_equal(f->answers, 1);
    assert_int_equal(f->code, CODE(UNSPECIFIED));
    assert_int_equal(f->fake->call_count, 12);
    for (uint32_t place = 10; place < 12; place++) {
        asked = read_asked(f, place);
        assert_true(asked->release);
        assert_int_equal(asked->reader, reader);
        assert_true(f->fake->calls[place].cancelled); /* No caller waits for it. */
        holdfast__internal__v1__read_settled_request__free_unpacked(asked, NULL);
    }
    assert_int_equal(router_in_flight(&f->router), 0);
}

/* One call a second for one player; the rounds are many, and letting go comes after them. */
static void a_read_counts_once_for_each_player(void **state)
{
    struct fixture *f = *state;

    f->router.options.player_rate = 1;
    f->router.players = rate_table_new();
    a_read_among_steady_writes_makes_them_wait_and_lets_go(state);
    read_two(f);
    assert_int_equal(f->answers, 2);
    assert_int_equal(f->code, CODE(THROTTLED));
    assert_string_equal(f->field, "player_id");
}

static void refuse_all_open(struct fixture *f)
{
    Holdfast__Internal__V1__Refusal refused = HOLDFAST__INTERNAL__V1__REFUSAL__INIT;
    uint8_t bytes[32];

    refused.code = CODE(TXN_CONFLICT);
    size_t size = holdfast__internal__v1__refusal__pack(&refused, bytes);
    for (uint32_t i = 0; i < f->fake->call_count; i++) {
        if (f->fake->calls[i].open)
            fake_cluster_answer(f->fake, i, WIRE_REFUSED, (struct slice){ bytes, size });
    }
}

static bool read_is_over(void *user)
{
    struct fixture *f = user;

    refuse_all_open(f);
    return f->answers > 0;
}

static void a_read_that_is_turned_away_asks_again_until_its_deadline(void **state)
{
    struct fixture *f = *state;

    read_two(f);
    refuse_all_open(f);
    assert_int_equal(f->answers, 0);
    assert_true(loop_run_until(f->loop, read_is_over, f, 20000));
    assert_int_equal(f->code, CODE(TXN_CONFLICT));
    assert_true(f->fake->call_count > 4);
    assert_int_equal(router_in_flight(&f->router), 0);
}

static void a_read_whose_part_fails_calls_off_the_others(void **state)
{
    struct fixture *f = *state;
    Holdfast__Internal__V1__Refusal refused = HOLDFAST__INTERNAL__V1__REFUSAL__INIT;
    uint8_t bytes[32];

    read_two(f);
    refused.code = CODE(INVALID_ARGUMENT);
    size_t size = holdfast__internal__v1__refusal__pack(&refused, bytes);
    fake_cluster_answer(f->fake, 1, WIRE_REFUSED, (struct slice){ bytes, size });
    assert_int_equal(f->code, CODE(INVALID_ARGUMENT));
    assert_true(f->fake->calls[0].cancelled);
    assert_int_equal(router_in_flight(&f->router), 0);
}

static void a_read_of_nobody_or_of_nine_is_refused(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ReadPlayersRequest read = HOLDFAST__V1__READ_PLAYERS_REQUEST__INIT;
    char *players[9] = { (char *)"a" };

    dispatch(f, METHOD_READ_PLAYERS, &read.base);
    assert_string_equal(f->field, "player_ids");
    read.player_ids = players;
    read.n_player_ids = 9;
    dispatch(f, METHOD_READ_PLAYERS, &read.base);
    assert_int_equal(f->answers, 2);
    assert_int_equal(f->code, CODE(INVALID_ARGUMENT));
    players[1] = (char *)"b";
    players[2] = (char *)"a";
    read.n_player_ids = 3;
    dispatch(f, METHOD_READ_PLAYERS, &read.base);
    assert_int_equal(f->code, CODE(INVALID_ARGUMENT));
    assert_string_equal(f->field, "player_ids[2]");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_router_setup, fake_router_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(players_with_too_much_for_one_answer_are_refused_by_the_field_that_makes_it_less),
        TEST(players_are_read_again_until_none_has_changed_between),
        TEST(a_read_among_steady_writes_makes_them_wait_and_lets_go),
        TEST(a_read_counts_once_for_each_player),
        TEST(a_read_that_is_turned_away_asks_again_until_its_deadline),
        TEST(a_read_whose_part_fails_calls_off_the_others),
        TEST(a_read_of_nobody_or_of_nine_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
