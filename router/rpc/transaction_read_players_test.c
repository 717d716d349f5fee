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
#include "router/rpc/fake_cluster.h"
#include "router/rpc/router.h"
#include "runtime/base/check.h"

#define SHARDS      4u
#define DEADLINE_MS 400u

static const struct log silent = { .level_min = LOG_ERROR };
struct fixture {
    struct loop *loop;
    struct etcd *etcd;
    struct fake_cluster *fake;
    struct router router;
    struct request request;
    struct arena arena;
    uint32_t answers;
    uint32_t finished;
    Holdfast__V1__ErrorCode code; /* Of the answer; UNSPECIFIED: success. */
    char field[64];
    char trace[TRACE_TEXT_SIZE];
    struct buf response; /* Encoded. */
};

static void reply(struct request *request, const ProtobufCMessage *response)
{
    struct fixture *f = request->origin;

    f->answers++;
    f->code = CODE(UNSPECIFIED);
    buf_clear(&f->response);
    (void)protobuf_c_message_pack(
        response, buf_reserve(&f->response, protobuf_c_message_get_packed_size(response)));
    f->response.size = protobuf_c_message_get_packed_size(response);
}

static void reply_encoded(struct request *request, struct slice response)
{
    struct fixture *f = request->origin;

    f->answers++;
    f->code = CODE(UNSPECIFIED);
    buf_clear(&f->response);
    buf_append(&f->response, response.data, response.size);
}

static void fail_request(struct request *request, const Holdfast__V1__ErrorDetail *detail)
{
    struct fixture *f = request->origin;

    f->answers++;
    f->code = detail->code;
    CHECK(strlen(detail->field) < sizeof f->field);
    memcpy(f->field, detail->field, strlen(detail->field) + 1);
    CHECK(strlen(detail->trace_id) < sizeof f->trace);
    memcpy(f->trace, detail->trace_id, strlen(detail->trace_id) + 1);
}

static const struct request_door door = { .reply = reply,
                                          .reply_encoded = reply_encoded,
                                          .fail = fail_request };

static void finished(void *context, const struct request *request, Holdfast__V1__ErrorCode code,
                     uint64_t latency_us)
{
    struct fixture *f = context;

    (void)request;
    (void)code;
    (void)latency_us;
    f->finished++;
}

static void make_router(struct fixture *f)
{
    struct router_options options = {
        .loop = f->loop,
        .log = &silent,
        .cluster = "test",
        .map = f->fake->map,
        .port = fake_cluster_port(f->fake),
        .etcd = f->etcd,
        .in_flight_max = 10,
        .observer = { finished, f },
    };

    options.caller = caller_new(&(struct caller_options){
        .loop = f->loop, .map = options.map, .port = options.port, .seed = 1 });
    options.servers = servers_new(&(struct servers_options){
        .loop = f->loop, .etcd = f->etcd, .cluster = "test", .log = &silent });
    router_init(&f->router, &options);
}

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);
    const char *nowhere = "http://127.0.0.1:1";

    CHECK(loop_new(&f->loop) == ERR_OK);
    CHECK(etcd_new(&(struct etcd_options){ .loop = loop_uv(f->loop),
                                           .endpoints = &nowhere,
                                           .endpoint_count = 1,
                                           .log = &silent },
                   &f->etcd) == ERR_OK);
    f->fake = mem_zalloc(sizeof *f->fake);
    fake_cluster_init(f->fake, SHARDS);
    make_router(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(f->finished, f->answers);
    servers_free(f->router.options.servers);
    caller_free(f->router.options.caller);
    etcd_free(f->etcd);
    router_deinit(&f->router);
    fake_cluster_deinit(f->fake);
    free(f->fake);
    loop_free(f->loop);
    arena_deinit(&f->arena);
    buf_deinit(&f->response);
    free(f);
    return 0;
}

static void dispatch(struct fixture *f, uint32_t method, const ProtobufCMessage *message)
{
    f->request = (struct request){
        .door = &door,
        .origin = f,
        .method = method_find(method),
        .message = message,
        .arena = &f->arena,
        .deadline_ms = loop_now_ms(f->loop) + DEADLINE_MS,
        .peer = "test",
        .scopes = SCOPES_ALL,
    };
    router_dispatch(&f->router, &f->request);
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(players_with_too_much_for_one_answer_are_refused_by_the_field_that_makes_it_less),
        TEST(players_are_read_again_until_none_has_changed_between),
        TEST(a_read_among_steady_writes_makes_them_wait_and_lets_go),
        TEST(a_read_that_is_turned_away_asks_again_until_its_deadline),
        TEST(a_read_whose_part_fails_calls_off_the_others),
        TEST(a_read_of_nobody_or_of_nine_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
