/* Places for calls in flight: how many one caller holds, and that they come back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/internal/v1/refusal.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/profile.pb-c.h"
#include "idl/error_code.h"
#include "router/rpc/fake/plain_router.h"
#include "runtime/base/check.h"

/* Ordinary calls may have 8 of them, one caller half of these; bulk 6, and 3. */
#define PLACES 10u
/* Reads may have 600000 of them on their way, one caller half of these. */
#define ROOM_BYTES 800000u

struct fixture {
    struct plain_router plain;
    struct request requests[40];
    uint32_t count;
    struct arena arena;
    uint32_t answers;
    uint32_t refused; /* Of these. */
    char limit[16];
    struct budget room; /* For answers. */
};

struct asker {
    uint64_t caller;
    const char *key_id, *player;
};

static const struct asker a = { 11, "a", NULL }, b = { 13, "b", NULL }, anyone = { 15, "", NULL };
static const struct asker ada = { 17, "player", "ada" }, eve = { 19, "player", "ada" };

static void reply_encoded(struct request *request, struct slice response)
{
    struct fixture *f = request->origin;

    (void)response;
    f->answers++;
}

static void reply(struct request *request, const ProtobufCMessage *response)
{
    struct fixture *f = request->origin;

    (void)response;
    f->answers++;
}

static void fail_request(struct request *request, const Holdfast__V1__ErrorDetail *detail)
{
    struct fixture *f = request->origin;

    f->answers++;
    f->refused += detail->code == CODE(THROTTLED);
    CHECK(strlen(detail->limit) < sizeof f->limit);
    memcpy(f->limit, detail->limit, strlen(detail->limit) + 1);
    assert_true(detail->code != CODE(THROTTLED) || detail->retry_after_ms > 0);
}

static const struct request_door door = { .reply = reply,
                                          .reply_encoded = reply_encoded,
                                          .fail = fail_request };

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);

    budget_init(&f->room, ROOM_BYTES);
    plain_router_init(&f->plain, 4,
                      &(struct router_options){ .in_flight_max = PLACES,
                                                .in_flight_key_percent = 50,
                                                .answers = &f->room });
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    plain_router_answer_all(&f->plain);
    assert_int_equal(f->answers, f->count);
    caller_shares_check(f->plain.router.places);
    budget_deinit(&f->room);
    plain_router_deinit(&f->plain);
    arena_deinit(&f->arena);
    free(f);
    return 0;
}

static struct request *ask(struct fixture *f, const struct asker *asker, uint32_t method,
                           const ProtobufCMessage *message)
{
    CHECK(f->count < ARRAY_SIZE(f->requests));
    struct request *request = &f->requests[f->count++];

    *request = (struct request){
        .door = &door,
        .origin = f,
        .method = method_find(method),
        .message = message,
        .arena = &f->arena,
        .deadline_ms = loop_now_ms(f->plain.loop) + 5000,
        .scopes = asker->player == NULL ? SCOPES_ALL : 0,
        .caller = asker->caller,
        .key_id = asker->key_id,
        .player = asker->player,
    };
    router_dispatch(&f->plain.router, request);
    return request;
}

/* How many of them were refused. */
static uint32_t ask_balances(struct fixture *f, const struct asker *asker, uint32_t times)
{
    static Holdfast__V1__GetBalancesRequest read;
    uint32_t before = f->refused;

    for (uint32_t i = 0; i < times; i++) {
        holdfast__v1__get_balances_request__init(&read);
        read.player_id = text_lend("ada");
        ask(f, asker, METHOD_GET_BALANCES, &read.base);
    }
    return f->refused - before;
}

static void a_key_holds_half_of_them_and_no_other_key_minds(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask_balances(f, &a, 6), 2);
    assert_string_equal(f->limit, "4");
    assert_int_equal(f->plain.router.callers_throttled, 2);
    assert_int_equal(ask_balances(f, &b, 4), 0);
    fake_cluster_answer(&f->plain.fake, 0, WIRE_OK, SLICE_LITERAL("")); /* One of a's comes back. */
    assert_int_equal(ask_balances(f, &a, 2), 1);
    router_cancel(&f->plain.router, &f->requests[1]); /* And so does one that its caller gave up. */
    assert_int_equal(ask_balances(f, &a, 2), 1);
    assert_int_equal(router_in_flight(&f->plain.router), 8);
}

static void what_is_refused_for_all_takes_no_place_of_its_caller(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask_balances(f, &anyone, 8), 0);
    assert_int_equal(ask_balances(f, &a, 3), 3);
    assert_int_equal(f->plain.router.callers_throttled, 0);
    assert_int_equal(caller_share_held(f->plain.router.places, a.caller), 0);
}

/* An answer is expected to be as large as the last. */
static void a_key_has_half_of_the_room_for_answers(void **state)
{
    static uint8_t body[200000];
    struct fixture *f = *state;

    assert_int_equal(ask_balances(f, &a, 1), 0);
    fake_cluster_answer(&f->plain.fake, 0, WIRE_OK, (struct slice){ body, sizeof body });
    assert_int_equal(ask_balances(f, &a, 2), 1);
    assert_string_equal(f->limit, "300000");
    assert_int_equal(budget_refused(&f->room), 1);
    assert_int_equal(ask_balances(f, &b, 2), 0);
    fake_cluster_answer(&f->plain.fake, 1, WIRE_OK, (struct slice){ body, sizeof body });
    assert_int_equal(ask_balances(f, &a, 2), 1); /* The answer gave back what it held, */
    router_cancel(&f->plain.router, &f->requests[5]);
    assert_int_equal(ask_balances(f, &a, 2), 1); /* and so does one that is cancelled. */
}

/* So that the caller's next reads wait: of its share, of a node, and not of a write. */
static void a_read_says_that_its_answer_has_no_room(void **state)
{
    static uint8_t body[200000];
    struct fixture *f = *state;
    Holdfast__Internal__V1__Refusal refusal = HOLDFAST__INTERNAL__V1__REFUSAL__INIT;
    Holdfast__V1__GrantRequest grant = HOLDFAST__V1__GRANT_REQUEST__INIT;
    uint8_t packed[64];

    refusal.code = CODE(THROTTLED);
    refusal.retry_after_ms = 100;
    const struct slice refused = { packed,
                                   holdfast__internal__v1__refusal__pack(&refusal, packed) };
    grant.player_id = text_lend("ada");
    grant.op_id = text_lend("admin:1");
    ask(f, &b, METHOD_GRANT, &grant.base);
    fake_cluster_answer(&f->plain.fake, 0, WIRE_REFUSED, refused);
    assert_false(f->requests[0].lacks_room);
    ask_balances(f, &a, 2);
    fake_cluster_answer(&f->plain.fake, 1, WIRE_REFUSED, refused);
    assert_true(f->requests[1].lacks_room);
    fake_cluster_answer(&f->plain.fake, 2, WIRE_OK, (struct slice){ body, sizeof body });
    assert_false(f->requests[2].lacks_room);
    assert_int_equal(ask_balances(f, &a, 2), 1);
    assert_true(f->requests[4].lacks_room);
    assert_int_equal(f->refused, 3);
}

static void players_have_as_many_together_as_one_key(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask_balances(f, &ada, 3), 0);
    assert_int_equal(ask_balances(f, &eve, 3), 2);
    assert_int_equal(caller_share_held(f->plain.router.places, eve.caller), 1);
    assert_int_equal(ask_balances(f, &a, 4), 0);
}

static void where_anyone_may_call_addresses_have_no_share(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask_balances(f, &anyone, 8), 0);
}

/* So a node knows what one key has under way over all routers; players count together there, too.
 */
static void nodes_are_told_whose_call_it_is(void **state)
{
    struct fixture *f = *state;
    const struct fake_call *calls = f->plain.fake.calls;

    ask_balances(f, &a, 1);
    ask_balances(f, &b, 1);
    ask_balances(f, &a, 1);
    ask_balances(f, &anyone, 1);
    ask_balances(f, &ada, 1);
    ask_balances(f, &eve, 1);
    assert_int_equal(f->plain.fake.call_count, 6);
    assert_int_equal(calls[0].asker, wire_asker(a.caller));
    assert_int_equal(calls[1].asker, wire_asker(b.caller));
    assert_int_equal(calls[2].asker, calls[0].asker);
    assert_int_equal(calls[3].asker, 0);
    assert_int_equal(calls[4].asker, WIRE_ASKER_PLAYERS);
    assert_int_equal(calls[5].asker, WIRE_ASKER_PLAYERS);
}

static void a_batch_weighs_as_much_as_its_elements(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GetProfileRequest elements[4], *list[4];
    Holdfast__V1__BatchGetProfileRequest batch = HOLDFAST__V1__BATCH_GET_PROFILE_REQUEST__INIT;

    for (size_t i = 0; i < ARRAY_SIZE(elements); i++) {
        holdfast__v1__get_profile_request__init(&elements[i]);
        elements[i].player_id = text_lend("ada");
        list[i] = &elements[i];
    }
    batch.requests = list;
    batch.n_requests = ARRAY_SIZE(list); /* More than its share: alone, it passes. */
    ask(f, &a, METHOD_BATCH_GET_PROFILE, &batch.base);
    assert_int_equal(f->answers, 0);
    assert_int_equal(caller_share_held(f->plain.router.places, a.caller), 4);
    assert_int_equal(ask_balances(f, &a, 1), 1);
    batch.n_requests = 2;
    ask(f, &b, METHOD_BATCH_GET_PROFILE, &batch.base);
    assert_int_equal(caller_share_held(f->plain.router.places, b.caller), 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_key_holds_half_of_them_and_no_other_key_minds),
        TEST(what_is_refused_for_all_takes_no_place_of_its_caller),
        TEST(a_key_has_half_of_the_room_for_answers),
        TEST(a_read_says_that_its_answer_has_no_room),
        TEST(players_have_as_many_together_as_one_key),
        TEST(where_anyone_may_call_addresses_have_no_share),
        TEST(nodes_are_told_whose_call_it_is),
        TEST(a_batch_weighs_as_much_as_its_elements),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
