/* The whole router against a real etcd and nodes of the test's making, over real links. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "holdfast/v1/ledger.pb-c.h"
#include "holdfast/v1/session.pb-c.h"
#include "router/io/router_process.h"
#include "runtime/base/check.h"
#include "idl/method.h"
#include "runtime/base/test_directory.h"
#include "runtime/cluster/cluster_key.h"
#include "runtime/cluster/cluster_record.h"
#include "runtime/cluster/wire.h"
#include "runtime/etcd/etcd.h"
#include "runtime/etcd/etcd_process.h"
#include "runtime/link/call.h"

#define CLUSTER    "test"
#define CLUSTER_ID "01890000-0000-7000-8000-000000000001"
#define WAIT_MS    60000u

#define CALLED_NODE 12u /* The other one has an older program. */

static struct etcd_process process;
static char directory[TEST_DIRECTORY_BYTES];
static const struct log silent = { .level_min = LOG_ERROR };
static char refused[512]; /* The router's last line of a refused call. */

static void hear(void *context, enum log_level level, const char *event,
                 const struct log_field *fields)
{
    size_t size = 0;

    (void)context;
    (void)level;
    if (strcmp(event, "request.refused") != 0)
        return;
    for (; fields->key != NULL && size < sizeof refused; fields++) {
        if (fields->text != NULL)
            size += (size_t)snprintf(refused + size, sizeof refused - size, "%s=%s ", fields->key,
                                     fields->text);
    }
}

static const struct log heard = { .write = hear, .level_min = LOG_WARN };

/* A node: answers every Grant with its own replica id as ledger_seq. */
struct node {
    struct loop *loop;
    uint64_t replica_id;
    struct link_hub *hub;
    struct calls *calls;
    struct link_listener *listener;
    struct hello peer; /* Of the last link: the router. */
    uint16_t status;   /* To answer with. */
    struct wire_hint hint;
    bool mute;
    uint32_t requests;
    uint8_t trace[FRAME_TRACE_SIZE]; /* Of the last request. */
    size_t size;                     /* Its bytes. */
};

struct fixture {
    struct loop *loop;
    struct etcd *etcd;
    struct router_config config;
    struct router_process *router;
    struct node nodes[2];
    struct link_hub *client_hub;
    struct calls *client_calls;
    struct link *client;
    const char *authority; /* Of its grants. */
    uint32_t etcd_open;
    bool stopped;
    bool answered;
    err result;
    uint16_t status;
    uint64_t ledger_seq;
    Holdfast__V1__ErrorCode code;
};

static int start_etcd(void **state)
{
    char data[96];

    (void)state;
    test_directory_make("router", directory);
    (void)snprintf(data, sizeof data, "%s/etcd", directory);
    return etcd_process_start(&(struct etcd_process_options){ .data_dir = data }, &process) ==
                   ERR_OK
               ? 0
               : -1;
}

static int stop_etcd(void **state)
{
    (void)state;
    etcd_process_stop(&process);
    test_directory_remove(directory);
    return 0;
}

/* ---- links ---- */

static struct link_hub *make_hub(struct loop *loop, enum hello_role role, uint64_t replica_id)
{
    struct link_hub_options options = {
        .loop = loop,
        .log = &silent,
        .self = { .role = (uint8_t)role,
                  .replica_id = replica_id,
                  .abilities = replica_id == CALLED_NODE ? HELLO_TAKES_CALLERS : 0,
                  .cluster_id = CLUSTER_ID,
                  .name = "test" },
    };
    struct link_hub *hub;

    CHECK(link_hub_new(&options, &hub) == ERR_OK);
    return hub;
}

static void node_ready(void *user, struct link *link, const struct hello *peer)
{
    struct node *node = user;

    (void)link;
    node->peer = *peer;
}

static void node_frame(void *user, struct link *link, const struct frame *frame)
{
    struct node *node = user;

    (void)calls_frame(node->calls, link, frame);
}

static void node_closed(void *user, struct link *link, enum link_close_reason reason,
                        const char *text)
{
    struct node *node = user;

    (void)reason;
    (void)text;
    calls_closed(node->calls, link);
}

static void node_request(void *user, struct link *link, const struct frame *frame,
                         const struct call_reply *reply)
{
    struct node *node = user;
    Holdfast__V1__GrantResponse response;
    struct buf out = { 0 };

    (void)link;
    node->requests += frame->method != METHOD_LIST_CONSUMERS; /* That the router asks by itself. */
    memcpy(node->trace, frame->trace, sizeof node->trace);
    node->size = frame->body.size;
    if (node->mute)
        return;
    if (node->status == WIRE_OK && frame->method == METHOD_GRANT) {
        holdfast__v1__grant_response__init(&response);
        response.ledger_seq = node->replica_id;
        out.size = holdfast__v1__grant_response__pack(&response, buf_reserve(&out, 32));
    }
    if (node->status == WIRE_NOT_OWNER)
        wire_hint_encode(&node->hint, &out);
    CHECK(call_answer(node->calls, reply, node->status, buf_slice(&out)) == ERR_OK);
    buf_deinit(&out);
}

static void node_start(struct node *node, struct loop *loop, uint64_t replica_id)
{
    struct calls_options calls = { .loop = loop, .request = node_request, .user = node };
    const struct link_listen_options listen = {
        .transport = LINK_NNG,
        .address = "127.0.0.1:0",
        .handlers = { .ready = node_ready,
                      .frame = node_frame,
                      .closed = node_closed,
                      .user = node },
    };

    *node = (struct node){ .loop = loop, .replica_id = replica_id };
    node->hub = make_hub(loop, ROLE_NODE, replica_id);
    calls.hub = node->hub;
    CHECK(calls_new(&calls, &node->calls) == ERR_OK);
    CHECK(link_listen(node->hub, &listen, &node->listener) == ERR_OK);
}

static void node_stop(struct node *node)
{
    link_hub_free(node->hub);
    calls_free(node->calls);
}

/* ---- records ---- */

static bool etcd_is_quiet(void *user)
{
    return ((struct fixture *)user)->etcd_open == 0;
}

static void put_done(void *context, err e, const struct etcd_txn_result *result)
{
    struct fixture *f = context;

    (void)result;
    CHECK(e == ERR_OK);
    f->etcd_open--;
}

static void put(struct fixture *f, struct cluster_key key, struct buf *value)
{
    f->etcd_open++;
    CHECK(etcd_put(f->etcd,
                   &(struct etcd_kv){ .key = cluster_key_slice(&key), .value = buf_slice(value) },
                   put_done, &(struct etcd_wait){ 0, f, NULL }) == ERR_OK);
    buf_deinit(value);
    CHECK(loop_run_until(f->loop, etcd_is_quiet, f, WAIT_MS));
}

static void put_shard(struct fixture *f, uint32_t shard, uint64_t owner, uint64_t epoch)
{
    const struct shard_record record = { .generation = 1,
                                         .epoch = epoch,
                                         .owner = owner,
                                         .config = 1,
                                         .member_count = 2,
                                         .members = { 11, 12 } };
    struct buf value = { 0 };

    shard_record_encode(&record, &value);
    put(f, cluster_key_shard(CLUSTER, shard), &value);
}

static void put_node(struct fixture *f, const struct node *node)
{
    struct node_record record = {
        .replica_id = node->replica_id, .name = "test", .version = "test", .started_at_ms = 1
    };
    struct buf value = { 0 };

    (void)snprintf(record.address, sizeof record.address, "127.0.0.1:%u",
                   link_listener_port(node->listener));
    (void)snprintf(record.peer_address, sizeof record.peer_address, "127.0.0.1:1");
    node_record_encode(&record, &value);
    put(f, cluster_key_node(CLUSTER, node->replica_id), &value);
}

static void put_cluster(struct fixture *f)
{
    const struct cluster_record record = { .cluster_id = CLUSTER_ID,
                                           .generation = 1,
                                           .shard_count = 1,
                                           .replication_factor = 2,
                                           .created_by = "test" };
    struct buf value = { 0 };

    cluster_record_encode(&record, &value);
    put(f, cluster_key_cluster(CLUSTER), &value);
}

/* ---- the native client ---- */

static void client_ready(void *user, struct link *link, const struct hello *peer)
{
    (void)user;
    (void)link;
    CHECK(peer->role == ROLE_ROUTER);
}

static void client_frame(void *user, struct link *link, const struct frame *frame)
{
    struct fixture *f = user;

    (void)calls_frame(f->client_calls, link, frame);
}

static void client_closed(void *user, struct link *link, enum link_close_reason reason,
                          const char *text)
{
    struct fixture *f = user;

    (void)reason;
    (void)text;
    calls_closed(f->client_calls, link);
}

static void client_done(void *user, err result, const struct frame *response)
{
    struct fixture *f = user;
    Holdfast__V1__ErrorDetail *detail;
    Holdfast__V1__GrantResponse *grant;

    f->answered = true;
    f->result = result;
    f->code = HOLDFAST__V1__ERROR_CODE__ERROR_CODE_UNSPECIFIED;
    if (result != ERR_OK)
        return;
    f->status = response->status;
    if (response->status == WIRE_REFUSED) {
        detail = holdfast__v1__error_detail__unpack(NULL, response->body.size, response->body.data);
        CHECK(detail != NULL);
        f->code = detail->code;
        holdfast__v1__error_detail__free_unpacked(detail, NULL);
    } else {
        grant =
            holdfast__v1__grant_response__unpack(NULL, response->body.size, response->body.data);
        CHECK(grant != NULL);
        f->ledger_seq = grant->ledger_seq;
        holdfast__v1__grant_response__free_unpacked(grant, NULL);
    }
}

static bool is_answered(void *user)
{
    return ((struct fixture *)user)->answered;
}

static void send_grant(struct fixture *f, uint32_t deadline_ms)
{
    static char player[] = "42", op_id[] = "admin:1";
    static const uint8_t trace[FRAME_TRACE_SIZE] = "0123456789abcdef";
    Holdfast__V1__GrantRequest grant;
    uint8_t packed[64];

    holdfast__v1__grant_request__init(&grant);
    grant.player_id = player;
    grant.op_id = op_id;
    grant.authority = text_lend(f->authority);
    const struct call_request request = {
        .method = METHOD_GRANT,
        .deadline_ms = deadline_ms,
        .trace = trace,
        .body = { packed, holdfast__v1__grant_request__pack(&grant, packed) },
        .done = client_done,
        .user = f,
    };
    f->answered = false;
    CHECK(call_start(f->client_calls, f->client, &request, NULL) == ERR_OK);
}

static void grant(struct fixture *f)
{
    send_grant(f, WAIT_MS);
    assert_true(loop_run_until(f->loop, is_answered, f, WAIT_MS));
    assert_int_equal(f->result, ERR_OK);
}

/* ---- set up ---- */

static void on_stopped(void *user)
{
    ((struct fixture *)user)->stopped = true;
}

static bool is_stopped(void *user)
{
    return ((struct fixture *)user)->stopped;
}

static bool router_ready(void *user)
{
    return router_process_is_ready(((struct fixture *)user)->router);
}

static bool client_is_ready(void *user)
{
    return link_is_ready(((struct fixture *)user)->client);
}

CONFIG_OPTIONS(router_config, ROUTER_CONFIG)

static const struct config_program program = {
    .name = "router_process_test",
    .version = "test",
    .options = router_config_options,
    .option_count = ARRAY_SIZE(router_config_options),
};

static void start_router(struct fixture *f, const char *option)
{
    char etcd[80], own[32];
    char *argv[] = { "test",
                     "--cluster=" CLUSTER,
                     "--listen=127.0.0.1:0",
                     "--access=open",
                     "--insecure",
                     "--native-listen=127.0.0.1:0",
                     etcd,
                     own,
                     "--drain-timeout=5s" };
    enum config_action action;
    struct config_error why;

    (void)snprintf(etcd, sizeof etcd, "--etcd=%s", process.endpoint);
    (void)snprintf(own, sizeof own, "%s", option);
    CHECK(config_load(&program, &(struct config_input){ ARRAY_SIZE(argv), argv, NULL }, &f->config,
                      &action, &why) == ERR_OK);
    CHECK(router_process_new(&(struct router_process_options){ .loop = f->loop,
                                                               .config = &f->config,
                                                               .log = &heard,
                                                               .version = "test",
                                                               .stopped = on_stopped,
                                                               .user = f },
                             &f->router) == ERR_OK);
}

static void start_client(struct fixture *f)
{
    char address[64];
    struct calls_options calls = { .loop = f->loop };
    const struct link_dial_options dial = {
        .transport = LINK_NNG,
        .address = address,
        .handlers = { .ready = client_ready,
                      .frame = client_frame,
                      .closed = client_closed,
                      .user = f },
    };

    f->client_hub = make_hub(f->loop, ROLE_CLIENT, 0);
    calls.hub = f->client_hub;
    CHECK(calls_new(&calls, &f->client_calls) == ERR_OK);
    (void)snprintf(address, sizeof address, "127.0.0.1:%u", router_process_native_port(f->router));
    CHECK(link_dial(f->client_hub, &dial, &f->client) == ERR_OK);
    CHECK(loop_run_until(f->loop, client_is_ready, f, WAIT_MS));
}

static int setup_with(void **state, const char *option)
{
    struct fixture *f = mem_zalloc(sizeof *f);
    const char *endpoint = process.endpoint;

    f->authority = "";
    CHECK(loop_new(&f->loop) == ERR_OK);
    CHECK(etcd_new(&(struct etcd_options){ .loop = loop_uv(f->loop),
                                           .endpoints = &endpoint,
                                           .endpoint_count = 1,
                                           .log = &silent },
                   &f->etcd) == ERR_OK);
    node_start(&f->nodes[0], f->loop, 11);
    node_start(&f->nodes[1], f->loop, 12);
    start_router(f, option);
    assert_false(router_process_is_ready(f->router));
    put_cluster(f);
    put_node(f, &f->nodes[0]);
    put_node(f, &f->nodes[1]);
    put_shard(f, 0, 11, 1);
    CHECK(loop_run_until(f->loop, router_ready, f, WAIT_MS));
    start_client(f);
    *state = f;
    return 0;
}

static int setup(void **state)
{
    return setup_with(state, "--deadline-max=60s");
}

/* The router gives calls up long before their caller does, so that its answer is what is seen. */
static int setup_impatient(void **state)
{
    return setup_with(state, "--deadline-max=2s");
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    router_process_free(f->router);
    link_hub_free(f->client_hub);
    calls_free(f->client_calls);
    node_stop(&f->nodes[0]);
    node_stop(&f->nodes[1]);
    etcd_free(f->etcd);
    loop_free(f->loop);
    config_deinit(&program, &f->config);
    free(f);
    return 0;
}

/* ---- the tests ---- */

static void a_native_grant_goes_through_to_the_owner_and_back(void **state)
{
    struct fixture *f = *state;

    grant(f);
    assert_int_equal(f->status, WIRE_OK);
    assert_int_equal(f->ledger_seq, 11);
    assert_int_equal(f->nodes[0].peer.role, ROLE_ROUTER);
    assert_memory_equal(f->nodes[0].trace, "0123456789abcdef", 16);
}

/* By what their HELLO says. Without TLS no name is proven, so an empty one is told: three bytes. */
static void who_asked_goes_to_nodes_that_take_it(void **state)
{
    struct fixture *f = *state;

    f->authority = "system:mail";
    grant(f);
    size_t plain = f->nodes[0].size;
    assert_true(plain > 0);
    f->nodes[0].status = WIRE_NOT_OWNER;
    f->nodes[0].hint = (struct wire_hint){ CALLED_NODE, 1000 };
    grant(f);
    assert_int_equal(f->nodes[0].size, plain);
    assert_int_equal(f->nodes[1].size, plain + 3);
}

/* Methods that are not for clients are refused by the link, which logs link.refused. */
static void what_a_native_client_mumbles_names_it_in_the_log(void **state)
{
    static const uint8_t garbage[] = { 0xff, 0xff };
    struct fixture *f = *state;
    const struct call_request request = { .method = METHOD_GRANT,
                                          .deadline_ms = WAIT_MS,
                                          .body = { garbage, sizeof garbage },
                                          .done = client_done,
                                          .user = f };

    refused[0] = 0;
    CHECK(call_start(f->client_calls, f->client, &request, NULL) == ERR_OK);
    assert_true(loop_run_until(f->loop, is_answered, f, WAIT_MS));
    assert_int_equal(f->result, ERR_OK);
    assert_int_equal(f->status, WIRE_REFUSED);
    assert_int_equal(f->code, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_INVALID_ARGUMENT);
    assert_non_null(strstr(refused, "why=invalid_argument key=cert:test peer=127.0.0.1:"));
    assert_non_null(strstr(refused, "method=holdfast.v1.LedgerService/Grant"));
}

static void a_new_record_moves_a_call_that_its_old_owner_never_answers(void **state)
{
    struct fixture *f = *state;

    f->nodes[0].mute = true;
    send_grant(f, WAIT_MS);
    put_shard(f, 0, 12, 2);
    assert_true(loop_run_until(f->loop, is_answered, f, WAIT_MS));
    assert_int_equal(f->result, ERR_OK);
    assert_int_equal(f->ledger_seq, 12);
    put_shard(f, 0, 11, 3);
}

static void a_hint_reaches_the_owner_before_etcd_tells(void **state)
{
    struct fixture *f = *state;

    f->nodes[0].status = WIRE_NOT_OWNER;
    f->nodes[0].hint = (struct wire_hint){ 12, 1000 };
    grant(f);
    assert_int_equal(f->ledger_seq, 12);
    assert_int_equal(f->nodes[0].requests, 1);
}

static bool request_arrived(void *user)
{
    return ((struct fixture *)user)->nodes[0].requests > 0;
}

static void an_owner_that_dies_with_the_call_leaves_an_unknown_outcome(void **state)
{
    struct fixture *f = *state;

    f->nodes[0].mute = true;
    send_grant(f, WAIT_MS);
    assert_true(loop_run_until(f->loop, request_arrived, f, WAIT_MS));
    link_hub_free(f->nodes[0].hub);
    f->nodes[0].hub = NULL;
    assert_true(loop_run_until(f->loop, is_answered, f, WAIT_MS));
    assert_int_equal(f->result, ERR_OK);
    assert_int_equal(f->status, WIRE_REFUSED);
    assert_int_equal(f->code, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_OUTCOME_UNKNOWN);
}

static void a_stopping_router_answers_what_it_has_and_then_stops(void **state)
{
    struct fixture *f = *state;

    f->nodes[0].mute = true;
    send_grant(f, WAIT_MS);
    assert_true(loop_run_until(f->loop, request_arrived, f, WAIT_MS));
    router_process_drain(f->router);
    assert_false(f->stopped);
    assert_false(router_process_is_ready(f->router));
    assert_true(loop_run_until(f->loop, is_stopped, f, WAIT_MS));
    assert_true(loop_run_until(f->loop, is_answered, f, WAIT_MS));
    assert_int_equal(f->code, HOLDFAST__V1__ERROR_CODE__ERROR_CODE_OUTCOME_UNKNOWN);
}

/* Not drained: the open request is ended as unknown, and all memory is given back (asan). */
static void a_router_freed_with_open_requests_ends_them(void **state)
{
    struct fixture *f = *state;

    f->nodes[0].mute = true;
    send_grant(f, 10000);
    assert_true(loop_run_until(f->loop, request_arrived, f, WAIT_MS));
    router_process_free(f->router);
    f->router = NULL;
    assert_true(loop_run_until(f->loop, is_answered, f, WAIT_MS));
    assert_true(f->result == ERR_DISCONNECTED ||
                f->code == HOLDFAST__V1__ERROR_CODE__ERROR_CODE_OUTCOME_UNKNOWN);
}

/* The nodes of this test listen with nng, whatever the router dials with. */
static int setup_peer(void **state)
{
    return setup_with(state, "--node-transport=peer");
}

#define PEER(name)      cmocka_unit_test_setup_teardown(name, setup_peer, teardown)
#define TEST(name)      cmocka_unit_test_setup_teardown(name, setup, teardown)
#define IMPATIENT(name) cmocka_unit_test_setup_teardown(name, setup_impatient, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_native_grant_goes_through_to_the_owner_and_back),
        TEST(who_asked_goes_to_nodes_that_take_it),
        TEST(what_a_native_client_mumbles_names_it_in_the_log),
        TEST(a_new_record_moves_a_call_that_its_old_owner_never_answers),
        TEST(a_hint_reaches_the_owner_before_etcd_tells),
        IMPATIENT(an_owner_that_dies_with_the_call_leaves_an_unknown_outcome),
        IMPATIENT(a_stopping_router_answers_what_it_has_and_then_stops),
        TEST(a_router_freed_with_open_requests_ends_them),
        PEER(a_native_grant_goes_through_to_the_owner_and_back),
        PEER(a_router_freed_with_open_requests_ends_them),
    };
    return cmocka_run_group_tests(tests, start_etcd, stop_etcd);
}
