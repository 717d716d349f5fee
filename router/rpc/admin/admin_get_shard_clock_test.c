/* GetShardClock over nodes of the test's making. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/admin.pb-c.h"
#include "router/rpc/fake/plain_router.h"
#include "runtime/base/check.h"

#define SHARDS 4u

struct one {
    struct plain_ask ask;
    char told[128];
};

struct fixture {
    struct plain_router plain;
    struct one one;
};

static void reply(struct request *request, const ProtobufCMessage *message)
{
    const Holdfast__V1__GetShardClockResponse *response = (const void *)message;
    struct one *one = request->origin;

    one->ask.answers++;
    one->told[0] = 0;
    for (size_t i = 0; i < response->n_members; i++)
        snprintf(one->told + strlen(one->told), sizeof one->told - strlen(one->told), "%s%d %s",
                 i > 0 ? ", " : "", (int)response->members[i]->replica_id,
                 response->members[i]->state);
}

static const struct request_door door = { .reply = reply, .fail = plain_ask_fail };

static int setup(void **state)
{
    static const struct log silent = { .level_min = LOG_ERROR + 1 };
    struct fixture *f = mem_zalloc(sizeof *f);

    plain_router_init(&f->plain, SHARDS,
                      &(struct router_options){ .log = &silent, .in_flight_max = 100 });
    f->plain.door = &door;
    fake_cluster_set_owner(&f->plain.fake, 1, 1, 1);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    plain_router_deinit(&f->plain);
    free(f);
    return 0;
}

static void ask(struct fixture *f, uint32_t shard)
{
    Holdfast__V1__GetShardClockRequest request = HOLDFAST__V1__GET_SHARD_CLOCK_REQUEST__INIT;

    request.shard = shard;
    plain_router_send(&f->plain, &f->one.ask, METHOD_GET_SHARD_CLOCK, &request.base, 5000);
}

/* The node at that place of the calls says that it is `ok`. */
static void answer_ok(struct fixture *f, uint32_t place)
{
    Holdfast__Internal__V1__GetNodeClockResponse response =
        HOLDFAST__INTERNAL__V1__GET_NODE_CLOCK_RESPONSE__INIT;
    Holdfast__V1__MemberClock clock = HOLDFAST__V1__MEMBER_CLOCK__INIT;
    uint8_t bytes[64];

    assert_int_equal(f->plain.fake.calls[place].method, METHOD_GET_NODE_CLOCK);
    clock.state = text_lend("ok");
    response.clock = &clock;
    fake_cluster_answer(&f->plain.fake, place, WIRE_OK,
                        (struct slice){ bytes, protobuf_c_message_pack(&response.base, bytes) });
}

static void each_member_is_told_and_one_that_does_not_answer_is_unreachable(void **state)
{
    struct fixture *f = *state;

    f->plain.fake.down[3] = true;
    ask(f, 1);
    assert_int_equal(f->plain.fake.call_count, 2);
    answer_ok(f, 1);
    assert_int_equal(f->one.ask.answers, 0);
    fake_cluster_fail(&f->plain.fake, 0, ERR_TIMEOUT);
    assert_int_equal(f->one.ask.answers, 1);
    assert_string_equal(f->one.told, "1 unreachable, 2 ok, 3 unreachable");
}

static void a_shard_that_is_not_there_is_refused(void **state)
{
    struct fixture *f = *state;

    ask(f, SHARDS);
    assert_int_equal(f->one.ask.answers, 1);
    assert_int_equal(f->one.ask.code, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_INVALID_ARGUMENT);
    assert_int_equal(f->plain.fake.call_count, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_member_is_told_and_one_that_does_not_answer_is_unreachable),
        TEST(a_shard_that_is_not_there_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
