/* Nodes and a coordinator of the test's making, and an etcd that is not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/admin.pb-c.h"
#include "router/rpc/fake/fake_cluster.h"
#include "router/rpc/router.h"
#include "runtime/base/check.h"

#define PATIENCE 20000u /* A bound only. */

static const struct log silent = { .level_min = LOG_ERROR };

struct fixture {
    struct loop *loop;
    struct etcd *etcd;
    struct fake_cluster *fake;
    struct router router;
    struct request request;
    struct arena arena;
    Holdfast__V1__ListProcessesResponse *answer; /* NULL: not yet. */
    bool goes;                                   /* The caller has gone. */
};

static void reply(struct request *request, const ProtobufCMessage *response)
{
    struct fixture *f = request->origin;
    size_t size = protobuf_c_message_get_packed_size(response);
    uint8_t *bytes = mem_zalloc(size + 1);

    (void)protobuf_c_message_pack(response, bytes);
    f->answer = holdfast__v1__list_processes_response__unpack(NULL, size, bytes);
    free(bytes);
}

static void fail_request(struct request *request, const Holdfast__V1__ErrorDetail *detail)
{
    const struct fixture *f = request->origin;

    if (!f->goes)
        fail_msg("refused with %d: %s", (int)detail->code, detail->message);
}

static const struct request_door door = { .reply = reply, .fail = fail_request };

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);
    const char *nowhere = "http://somebody:secret@127.0.0.1:1";

    CHECK(loop_new(&f->loop) == ERR_OK);
    CHECK(etcd_new(&(struct etcd_options){ .loop = loop_uv(f->loop),
                                           .endpoints = &nowhere,
                                           .endpoint_count = 1,
                                           .log = &silent },
                   &f->etcd) == ERR_OK);
    f->fake = mem_zalloc(sizeof *f->fake);
    fake_cluster_init(f->fake, 4);
    router_init(&f->router, &(struct router_options){ .loop = f->loop,
                                                      .log = &silent,
                                                      .cluster = "test",
                                                      .map = f->fake->map,
                                                      .port = fake_cluster_port(f->fake),
                                                      .etcd = f->etcd,
                                                      .self = { .name = "r", .version = "9.8.7" },
                                                      .in_flight_max = 1000 });
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    if (f->answer != NULL)
        holdfast__v1__list_processes_response__free_unpacked(f->answer, NULL);
    assert_int_equal(router_in_flight(&f->router), 0);
    router_deinit(&f->router);
    etcd_free(f->etcd);
    fake_cluster_deinit(f->fake);
    free(f->fake);
    arena_deinit(&f->arena);
    loop_free(f->loop);
    free(f);
    return 0;
}

static bool is_answered(void *user)
{
    const struct fixture *f = user;

    return f->answer != NULL;
}

static void ask(struct fixture *f)
{
    Holdfast__V1__ListProcessesRequest *message = arena_alloc(&f->arena, sizeof *message);

    holdfast__v1__list_processes_request__init(message);
    f->request = (struct request){
        .door = &door,
        .origin = f,
        .method = method_find(METHOD_LIST_PROCESSES),
        .message = &message->base,
        .arena = &f->arena,
        .deadline_ms = UINT64_MAX,
        .scopes = SCOPES_ALL,
        .peer = "test",
    };
    router_dispatch(&f->router, &f->request);
}

static void answer_well(struct fixture *f, uint32_t place, int64_t ahead_ms)
{
    Holdfast__Internal__V1__GetNodeStatusResponse status =
        HOLDFAST__INTERNAL__V1__GET_NODE_STATUS_RESPONSE__INIT;
    Holdfast__V1__ProcessStatus said = HOLDFAST__V1__PROCESS_STATUS__INIT;
    char disk[] = "low";
    uint8_t packed[64];

    said.disk_state = disk;
    said.disk_free_bytes = 77;
    said.clock_ms = (int64_t)loop_wall_ms() + ahead_ms;
    status.process = &said;
    size_t size = holdfast__internal__v1__get_node_status_response__pack(&status, packed);
    fake_cluster_answer(f->fake, place, WIRE_OK, (struct slice){ packed, size });
}

static void processes_tell_of_themselves_and_who_is_silent_is_named(void **state)
{
    struct fixture *f = *state;

    ask(f);
    assert_int_equal(f->fake->call_count, 3);
    answer_well(f, 0, 60000);
    fake_cluster_fail(f->fake, 1, ERR_TIMEOUT);
    fake_cluster_answer(f->fake, 2, WIRE_OK, (struct slice){ 0 }); /* One of before. */
    assert_true(loop_run_until(f->loop, is_answered, f, PATIENCE));
    assert_int_equal(f->fake->call_count, 3); /* None is elected: none is asked. */

    Holdfast__V1__ProcessStatus *const *processes = f->answer->processes;
    assert_int_equal(f->answer->n_processes, 4);
    assert_string_equal(processes[0]->role, "router");
    assert_string_equal(processes[0]->version, "9.8.7");
    assert_true(processes[0]->clock_ms > 0);
    assert_string_equal(processes[1]->role, "node");
    assert_true(processes[1]->answered);
    assert_string_equal(processes[1]->disk_state, "low");
    assert_int_equal(processes[1]->disk_free_bytes, 77);
    assert_true(processes[1]->clock_ahead_ms > 30000);
    for (int i = 2; i <= 3; i++) {
        assert_int_equal(processes[i]->replica_id, i);
        assert_false(processes[i]->answered);
        assert_int_equal(processes[i]->clock_ms, 0);
    }
}

static void an_etcd_that_is_away_is_told_without_its_password(void **state)
{
    struct fixture *f = *state;

    ask(f);
    for (uint32_t i = 0; i < 3; i++)
        answer_well(f, i, 0);
    assert_true(loop_run_until(f->loop, is_answered, f, PATIENCE));
    assert_int_equal(f->answer->n_etcd, 1);
    assert_false(f->answer->etcd[0]->answered);
    assert_string_equal(f->answer->etcd[0]->endpoint, "http://127.0.0.1:1");
}

/* Whatever it waits for, first nodes and then etcd: nothing is touched later. */
static void a_caller_who_goes_is_forgotten(void **state)
{
    struct fixture *f = *state;

    for (uint32_t answers = 2; answers <= 3; answers++) {
        uint32_t first = f->fake->call_count;

        ask(f);
        for (uint32_t i = 0; i < answers; i++)
            answer_well(f, first + i, 0);
        f->goes = true;
        router_cancel(&f->router, &f->request);
        f->goes = false;
        assert_int_equal(router_in_flight(&f->router), 0);
    }
    assert_null(f->answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(processes_tell_of_themselves_and_who_is_silent_is_named,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(an_etcd_that_is_away_is_told_without_its_password, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_caller_who_goes_is_forgotten, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
