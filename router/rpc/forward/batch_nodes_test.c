/* Batches that go whole: one message a node, and what becomes of elements that a node did not
 * answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/internal/v1/refusal.pb-c.h"
#include "holdfast/v1/presence.pb-c.h"
#include "idl/error_code.h"
#include "router/core/scatter.h"
#include "router/rpc/fake/plain_router.h"
#include "runtime/base/check.h"

#define SHARDS  8u
#define PLAYERS 12u

struct one {
    struct plain_ask ask;
    struct buf response;
};

struct fixture {
    struct plain_router plain;
    struct one one;
    struct arena arena;
};

static void reply_encoded(struct request *request, struct slice response)
{
    struct one *one = request->origin;

    one->ask.answers++;
    buf_clear(&one->response);
    buf_append(&one->response, response.data, response.size);
}

static const struct request_door door = { .reply_encoded = reply_encoded, .fail = plain_ask_fail };

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
    buf_deinit(&f->one.response);
    arena_deinit(&f->arena);
    free(f);
    return 0;
}

static struct fake_call *call_at(struct fixture *f, uint32_t place)
{
    assert_true(place < f->plain.fake.call_count);
    return &f->plain.fake.calls[place];
}

/* Sets PLAYERS players; the first calls are those of nodes 1 and 2, in the order of their first
 * elements. */
static void set_all(struct fixture *f)
{
    Holdfast__V1__BatchSetPresenceRequest batch = HOLDFAST__V1__BATCH_SET_PRESENCE_REQUEST__INIT;
    Holdfast__V1__SetPresenceRequest requests[PLAYERS], *list[PLAYERS];

    for (uint32_t i = 0; i < PLAYERS; i++) {
        holdfast__v1__set_presence_request__init(&requests[i]);
        requests[i].player_id = arena_printf(&f->arena, "p%u", i);
        list[i] = &requests[i];
    }
    batch.n_requests = PLAYERS;
    batch.requests = list;
    batch.op_id = text_lend("018bcfe5-6800-7000-8000-000000000001");
    batch.connection = text_lend("game");
    batch.ttl_ms = 5000;
    plain_router_send(&f->plain, &f->one.ask, METHOD_BATCH_SET_PRESENCE, &batch.base, 5000);
}

static Holdfast__V1__BatchSetPresenceRequest *asked(struct fixture *f, uint32_t place)
{
    return plain_message_read(&holdfast__v1__batch_set_presence_request__descriptor,
                              call_at(f, place)->body, &f->arena);
}

static struct slice packed(struct fixture *f, const ProtobufCMessage *message)
{
    uint8_t *bytes = arena_alloc(&f->arena, protobuf_c_message_get_packed_size(message) + 1);

    return (struct slice){ bytes, protobuf_c_message_pack(message, bytes) };
}

static struct slice written(struct fixture *f, const char *player)
{
    Holdfast__V1__SetPresenceResponse response = HOLDFAST__V1__SET_PRESENCE_RESPONSE__INIT;
    Holdfast__V1__DocumentWritten one = HOLDFAST__V1__DOCUMENT_WRITTEN__INIT;

    one.context = text_lend(player);
    response.written = &one;
    return packed(f, &response.base);
}

static struct slice refused(struct fixture *f, Holdfast__V1__ErrorCode code)
{
    Holdfast__Internal__V1__Refusal refusal = HOLDFAST__INTERNAL__V1__REFUSAL__INIT;

    refusal.code = code;
    return packed(f, &refusal.base);
}

/* The node answers, with that refusal for one of its elements (by place; PLAYERS: for none). */
static void answer(struct fixture *f, uint32_t place, uint32_t bad, Holdfast__V1__ErrorCode code)
{
    const Holdfast__V1__BatchSetPresenceRequest *request = asked(f, place);
    struct scatter_outcome outcomes[PLAYERS];
    struct buf body = { 0 };

    for (uint32_t i = 0; i < request->n_requests; i++) {
        bool failed = i == bad;

        outcomes[i] = (struct scatter_outcome){
            failed, failed ? refused(f, code) : written(f, request->requests[i]->player_id)
        };
    }
    scatter_join(outcomes, (uint32_t)request->n_requests, &body);
    fake_cluster_answer(&f->plain.fake, place, WIRE_OK, buf_slice(&body));
    buf_deinit(&body);
}

/* The player whose request call `place` carries alone. */
static const char *alone(struct fixture *f, uint32_t place)
{
    const Holdfast__V1__SetPresenceRequest *request = plain_message_read(
        &holdfast__v1__set_presence_request__descriptor, call_at(f, place)->body, &f->arena);

    assert_int_equal(call_at(f, place)->method, METHOD_SET_PRESENCE);
    assert_non_null(request);
    return request->player_id;
}

/* Every player got its own answer, but for `failed`, who got that error; NULL: no player failed. */
static void expect(struct fixture *f, const char *failed, Holdfast__V1__ErrorCode code)
{
    assert_int_equal(f->one.ask.answers, 1);
    assert_int_equal(f->one.ask.code, CODE(UNSPECIFIED));
    const Holdfast__V1__BatchSetPresenceResponse *response =
        plain_message_read(&holdfast__v1__batch_set_presence_response__descriptor,
                           buf_slice(&f->one.response), &f->arena);

    assert_int_equal(response->n_results, PLAYERS);
    assert_int_equal(response->failed, failed != NULL);
    for (uint32_t i = 0; i < PLAYERS; i++) {
        const char *player = arena_printf(&f->arena, "p%u", i);

        if (failed != NULL && strcmp(player, failed) == 0)
            assert_int_equal(response->results[i]->error->code, code);
        else
            assert_string_equal(response->results[i]->response->written->context, player);
    }
}

static void each_node_gets_one_message_with_its_elements(void **state)
{
    struct fixture *f = *state;
    size_t sum = 0;

    set_all(f);
    assert_int_equal(f->plain.fake.call_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        const Holdfast__V1__BatchSetPresenceRequest *request = asked(f, i);

        assert_int_equal(call_at(f, i)->method, METHOD_BATCH_SET_PRESENCE);
        sum += request->n_requests;
        assert_string_equal(request->requests[0]->connection, "game");
        assert_int_equal(request->requests[0]->ttl_ms, 5000);
    }
    assert_int_not_equal(call_at(f, 0)->node, call_at(f, 1)->node);
    assert_int_equal(sum, PLAYERS);
    answer(f, 1, PLAYERS, 0);
    assert_int_equal(f->one.ask.answers, 0);
    answer(f, 0, PLAYERS, 0);
    expect(f, NULL, 0);
    assert_int_equal(router_in_flight(&f->plain.router), 0);
}

static void an_element_that_is_refused_fails_alone(void **state)
{
    struct fixture *f = *state;

    set_all(f);
    const char *failed = asked(f, 0)->requests[1]->player_id;

    answer(f, 0, 1, CODE(CAPACITY_FULL));
    answer(f, 1, PLAYERS, 0);
    assert_int_equal(f->plain.fake.call_count, 2);
    expect(f, failed, CODE(CAPACITY_FULL));
}

static void what_a_member_cannot_do_another_one_is_asked_for_alone(void **state)
{
    struct fixture *f = *state;

    set_all(f);
    const char *player = asked(f, 0)->requests[2]->player_id;

    answer(f, 0, 2, CODE(UNAVAILABLE));
    answer(f, 1, PLAYERS, 0);
    assert_int_equal(f->plain.fake.call_count, 3);
    assert_string_equal(alone(f, 2), player);
    assert_int_not_equal(call_at(f, 2)->node, call_at(f, 0)->node);
    fake_cluster_answer(&f->plain.fake, 2, WIRE_OK, written(f, player));
    expect(f, NULL, 0);
}

/* The members that are asked then may not say of a write that it failed: the first one may have
 * carried it out. */
static void without_an_answer_the_outcome_is_unknown(void **state)
{
    struct fixture *f = *state;

    set_all(f);
    uint32_t count = (uint32_t)asked(f, 0)->n_requests;

    answer(f, 1, PLAYERS, 0);
    fake_cluster_fail(&f->plain.fake, 0, ERR_TIMEOUT);
    assert_int_equal(f->plain.fake.call_count, 2 + count);
    const char *failed = alone(f, 2);

    for (uint32_t i = 0; i < count; i++) {
        assert_int_not_equal(call_at(f, 2 + i)->node, call_at(f, 0)->node);
        if (i == 0)
            fake_cluster_answer(&f->plain.fake, 2, WIRE_REFUSED, refused(f, CODE(CAPACITY_FULL)));
        else
            fake_cluster_answer(&f->plain.fake, 2 + i, WIRE_OK, written(f, alone(f, 2 + i)));
    }
    expect(f, failed, CODE(OUTCOME_UNKNOWN));
}

/* Of an earlier program, or out of places: nothing was done. */
static void a_message_that_is_refused_is_asked_for_one_by_one(void **state)
{
    struct fixture *f = *state;

    set_all(f);
    uint32_t count = (uint32_t)asked(f, 0)->n_requests;

    answer(f, 1, PLAYERS, 0);
    fake_cluster_answer(&f->plain.fake, 0, WIRE_REFUSED, refused(f, CODE(UNIMPLEMENTED)));
    assert_int_equal(f->plain.fake.call_count, 2 + count);
    const char *failed = alone(f, 2);

    for (uint32_t i = 0; i < count; i++) {
        if (i == 0)
            fake_cluster_answer(&f->plain.fake, 2, WIRE_REFUSED, refused(f, CODE(CAPACITY_FULL)));
        else
            fake_cluster_answer(&f->plain.fake, 2 + i, WIRE_OK, written(f, alone(f, 2 + i)));
    }
    expect(f, failed, CODE(CAPACITY_FULL));
}

static void an_answer_that_is_cut_short_leaves_the_rest_to_be_asked_for(void **state)
{
    struct fixture *f = *state;
    struct buf body = { 0 };

    set_all(f);
    uint32_t count = (uint32_t)asked(f, 0)->n_requests;
    struct scatter_outcome first = { false, written(f, asked(f, 0)->requests[0]->player_id) };

    answer(f, 1, PLAYERS, 0);
    scatter_join(&first, 1, &body);
    buf_put_u8(&body, 0x0a);
    buf_put_u8(&body, 0x7f);
    fake_cluster_answer(&f->plain.fake, 0, WIRE_OK, buf_slice(&body));
    buf_deinit(&body);
    assert_int_equal(f->plain.fake.call_count, 2 + count - 1);
    for (uint32_t i = 0; i < count - 1; i++)
        fake_cluster_answer(&f->plain.fake, 2 + i, WIRE_OK, written(f, alone(f, 2 + i)));
    expect(f, NULL, 0);
}

static void a_node_that_is_not_reached_is_passed_over(void **state)
{
    struct fixture *f = *state;

    f->plain.fake.down[1] = true;
    set_all(f);
    for (uint32_t i = 0; i < f->plain.fake.call_count; i++)
        assert_int_not_equal(call_at(f, i)->node, 1);
    for (uint32_t i = 0; i < f->plain.fake.call_count; i++)
        answer(f, i, PLAYERS, 0);
    expect(f, NULL, 0);
}

static void a_caller_that_goes_takes_its_messages_along(void **state)
{
    struct fixture *f = *state;

    set_all(f);
    router_cancel(&f->plain.router, &f->one.ask.request);
    assert_true(call_at(f, 0)->cancelled);
    assert_true(call_at(f, 1)->cancelled);
    assert_int_equal(f->one.ask.answers, 1);
    assert_int_equal(f->one.ask.code, CODE(OUTCOME_UNKNOWN));
}

/* Whatever its memory held before. */
static void a_call_of_its_own_was_asked_of_no_member_before(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__SetPresenceRequest request = HOLDFAST__V1__SET_PRESENCE_REQUEST__INIT;

    memset(arena_alloc(&f->one.ask.arena, 2048), 0xa5, 2048);
    arena_reset(&f->one.ask.arena);
    request.player_id = text_lend("ada");
    request.op_id = text_lend("018bcfe5-6800-7000-8000-000000000001");
    plain_router_send(&f->plain, &f->one.ask, METHOD_SET_PRESENCE, &request.base, 5000);
    assert_int_equal(f->plain.fake.call_count, 1);
    fake_cluster_answer(&f->plain.fake, 0, WIRE_REFUSED, refused(f, CODE(CAPACITY_FULL)));
    assert_int_equal(f->one.ask.code, CODE(CAPACITY_FULL));
}

#define BATCH_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BATCH_TEST(each_node_gets_one_message_with_its_elements),
        BATCH_TEST(an_element_that_is_refused_fails_alone),
        BATCH_TEST(what_a_member_cannot_do_another_one_is_asked_for_alone),
        BATCH_TEST(without_an_answer_the_outcome_is_unknown),
        BATCH_TEST(a_message_that_is_refused_is_asked_for_one_by_one),
        BATCH_TEST(an_answer_that_is_cut_short_leaves_the_rest_to_be_asked_for),
        BATCH_TEST(a_node_that_is_not_reached_is_passed_over),
        BATCH_TEST(a_call_of_its_own_was_asked_of_no_member_before),
        BATCH_TEST(a_caller_that_goes_takes_its_messages_along),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
