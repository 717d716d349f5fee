/* Real coordinator processes against a real etcd; nodes are stand-ins in this process that answer
 * calls over real links. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "idl/method.h"
#include "runtime/base/check.h"
#include "runtime/base/test_directory.h"
#include "runtime/cluster/shard_map.h"
#include "runtime/cluster/wire.h"
#include "runtime/etcd/etcd_lease.h"
#include "runtime/etcd/etcd_mirror.h"
#include "runtime/etcd/etcd_process.h"
#include "runtime/link/call.h"
#include "runtime/tls/certs.h"

#define CLUSTER "test"
#define SHARDS  16u
#define NODES   3u
#define WAIT_MS 60000u

struct fixture;

struct stand_in {
    struct fixture *fixture;
    struct link_hub *hub;
    struct calls *calls;
    struct link_listener *listener;
    struct link *coordinator;
    struct etcd_lease *lease;
    struct node_record record;
    uint32_t accepted; /* Reports the coordinator took. */
};

struct fixture {
    char directory[TEST_DIRECTORY_BYTES];
    struct etcd_process process;
    struct tls_config *tls[2]; /* TLS_CLIENT, TLS_SERVER. */
    struct loop *loop;
    struct loop_timer heartbeat; /* Conditions are looked at this often. */
    struct log log;
    struct etcd *etcd;
    struct etcd_mirror *mirror;
    struct shard_map *map;
    struct stand_in nodes[NODES];
    pid_t coordinators[2];
    bool policy_at[SHARDS];
    bool expired_at[SHARDS];
    bool server_known;
    uint32_t puts_open;
    bool (*done)(struct fixture *fixture);
    uint32_t shard; /* Of `done`. */
    uint64_t number;
};

/* ---- waiting ---- */
static bool done(void *user)
{
    struct fixture *fixture = user;

    return fixture->done(fixture);
}

static void wait_for(struct fixture *fixture, bool (*condition)(struct fixture *fixture))
{
    fixture->done = condition;
    assert_true(loop_run_until(fixture->loop, done, fixture, WAIT_MS));
}

static bool is_complete(struct fixture *fixture)
{
    return shard_map_complete(fixture->map);
}

static bool has_cluster(struct fixture *fixture)
{
    return shard_map_cluster(fixture->map) != NULL;
}

static bool policy_everywhere(struct fixture *fixture)
{
    return memchr(fixture->policy_at, false, SHARDS) == NULL;
}

static bool server_is_gone(struct fixture *fixture)
{
    return !fixture->server_known;
}

/* No shard is owned by the node `number`. */
static bool owns_nothing(struct fixture *fixture)
{
    for (uint32_t i = 0; i < SHARDS; i++) {
        if (shard_map_find(fixture->map, i)->record.owner == fixture->number)
            return false;
    }
    return true;
}

static bool epoch_rose(struct fixture *fixture)
{
    return shard_map_find(fixture->map, fixture->shard)->record.epoch > fixture->number;
}

static bool is_led_by_another(struct fixture *fixture)
{
    const struct coordinator_record *leader = shard_map_find_coordinator(fixture->map);

    return leader != NULL && (uint64_t)leader->name[0] != fixture->number;
}

static bool has_no_leader(struct fixture *fixture)
{
    return shard_map_find_coordinator(fixture->map) == NULL;
}

/* ---- etcd ---- */
static void apply(struct fixture *fixture, const struct shard_map_event *event)
{
    struct cluster_key_parts parts = cluster_key_parse(CLUSTER, event->key);
    struct record_error why;

    if (parts.kind == CLUSTER_KEY_SERVER_KNOWN)
        fixture->server_known = !event->deleted;
    if (shard_map_apply(fixture->map, event, NULL, &why) != ERR_OK)
        fail_msg("bad record: %s", why.text);
}

static void on_put(void *context, const struct etcd_kv *kv)
{
    apply(context, &(struct shard_map_event){ .key = kv->key,
                                              .value = kv->value,
                                              .create_revision = kv->create_revision,
                                              .mod_revision = kv->mod_revision });
}

static void on_deleted(void *context, struct slice key, int64_t revision)
{
    apply(context,
          &(struct shard_map_event){ .deleted = true, .key = key, .mod_revision = revision });
}

static void on_synced(void *context, int64_t revision)
{
    (void)context;
    (void)revision;
}

static void on_put_done(void *context, err e, const struct etcd_txn_result *result)
{
    struct fixture *fixture = context;

    (void)result;
    assert_int_equal(e, ERR_OK);
    fixture->puts_open--;
}

static void put(struct fixture *fixture, struct cluster_key key, struct buf *value, int64_t lease)
{
    struct etcd_kv kv = { .key = cluster_key_slice(&key),
                          .value = buf_slice(value),
                          .lease = lease };

    fixture->puts_open++;
    assert_int_equal(
        etcd_put(fixture->etcd, &kv, on_put_done, &(struct etcd_wait){ 0, fixture, NULL }), ERR_OK);
    buf_deinit(value);
}

/* ---- stand-ins for nodes ---- */
static void on_ready(void *user, struct link *link, const struct hello *peer)
{
    (void)user;
    (void)link;
    (void)peer;
}

static void on_frame(void *user, struct link *link, const struct frame *frame)
{
    struct stand_in *node = user;

    (void)calls_frame(node->calls, link, frame);
}

static void on_closed(void *user, struct link *link, enum link_close_reason reason,
                      const char *text)
{
    struct stand_in *node = user;

    (void)reason;
    (void)text;
    calls_closed(node->calls, link);
}

static void on_request(void *user, struct link *link, const struct frame *frame,
                       const struct call_reply *reply)
{
    struct stand_in *node = user;
    struct fixture *fixture = node->fixture;
    uint32_t shard = UINT32_MAX;

    (void)link;
    if (frame->method == METHOD_GET_NODE_STATUS) { /* It knows nothing that etcd does not. */
        assert_int_equal(call_answer(node->calls, reply, WIRE_OK, (struct slice){ NULL, 0 }),
                         ERR_OK);
        return;
    }
    if (frame->method == METHOD_APPLY_POLICY) {
        Holdfast__Internal__V1__ApplyPolicyRequest *request =
            holdfast__internal__v1__apply_policy_request__unpack(NULL, frame->body.size,
                                                                 frame->body.data);
        assert_non_null(request);
        assert_string_equal(request->policy->currencies[0]->name, "gold");
        shard = request->shard;
        fixture->policy_at[shard] = true;
        holdfast__internal__v1__apply_policy_request__free_unpacked(request, NULL);
    } else if (frame->method == METHOD_EXPIRE_SERVER) {
        Holdfast__Internal__V1__ExpireServerRequest *request =
            holdfast__internal__v1__expire_server_request__unpack(NULL, frame->body.size,
                                                                  frame->body.data);
        assert_non_null(request);
        assert_string_equal(request->incarnation, "1-77");
        shard = request->shard;
        fixture->expired_at[shard] = true;
        holdfast__internal__v1__expire_server_request__free_unpacked(request, NULL);
    } else if (frame->method == METHOD_TAKE_CUT) {
        Holdfast__Internal__V1__TakeCutRequest *request =
            holdfast__internal__v1__take_cut_request__unpack(NULL, frame->body.size,
                                                             frame->body.data);
        assert_non_null(request);
        shard = request->shard;
        holdfast__internal__v1__take_cut_request__free_unpacked(request, NULL);
    } else if (frame->method == METHOD_MEMBER_STATE || frame->method == METHOD_GET_DEFINED) {
        shard = 0; /* Whichever: nothing is told. */
    }
    assert_in_range(shard, 0, SHARDS - 1);
    assert_int_equal(call_answer(node->calls, reply, WIRE_OK, (struct slice){ NULL, 0 }), ERR_OK);
}

static struct link_handlers handlers(struct stand_in *node)
{
    return (struct link_handlers){
        .ready = on_ready, .frame = on_frame, .closed = on_closed, .user = node
    };
}

static void on_lease(void *context, struct etcd_lease *lease, enum etcd_lease_state state)
{
    struct stand_in *node = context;
    struct buf value = { 0 };

    if (state != ETCD_LEASE_HELD)
        return;
    node_record_encode(&node->record, &value);
    put(node->fixture, cluster_key_node(CLUSTER, node->record.replica_id), &value,
        etcd_lease_id(lease));
}

static void node_start(struct fixture *fixture, uint32_t i)
{
    struct stand_in *node = &fixture->nodes[i];
    struct link_hub_options hub = {
        .loop = fixture->loop,
        .log = &fixture->log,
        .self = { .role = ROLE_NODE, .replica_id = i + 1 },
        .cluster = CLUSTER,
        .tls_client = fixture->tls[TLS_CLIENT],
        .tls_server = fixture->tls[TLS_SERVER],
    };

    node->fixture = fixture;
    snprintf(hub.self.name, sizeof hub.self.name, "node-%u", i + 1);
    snprintf(hub.self.cluster_id, sizeof hub.self.cluster_id, "%s",
             shard_map_cluster(fixture->map)->cluster_id);
    assert_int_equal(link_hub_new(&hub, &node->hub), ERR_OK);
    assert_int_equal(calls_new(&(struct calls_options){ .hub = node->hub,
                                                        .loop = fixture->loop,
                                                        .request = on_request,
                                                        .user = node },
                               &node->calls),
                     ERR_OK);
    assert_int_equal(link_listen(node->hub,
                                 &(struct link_listen_options){ .transport = LINK_NNG,
                                                                .address = "127.0.0.1:0",
                                                                .handlers = handlers(node) },
                                 &node->listener),
                     ERR_OK);
    node->record = (struct node_record){ .replica_id = i + 1, .started_at_ms = 1 };
    snprintf(node->record.name, sizeof node->record.name, "node-%u", i + 1);
    snprintf(node->record.address, sizeof node->record.address, "127.0.0.1:%u",
             link_listener_port(node->listener));
    snprintf(node->record.peer_address, sizeof node->record.peer_address, "127.0.0.1:1");
    snprintf(node->record.version, sizeof node->record.version, "test");
    assert_int_equal(etcd_lease_start(fixture->etcd,
                                      &(struct etcd_lease_options){
                                          .ttl_ms = 60000, .changed = on_lease, .context = node },
                                      &node->lease),
                     ERR_OK);
}

/* As if it died: its lease is gone. */
static void node_stop(struct stand_in *node)
{
    if (node->lease != NULL)
        etcd_lease_stop(node->lease, true);
    node->lease = NULL;
}

static void on_reported(void *user, err result, const struct frame *response)
{
    struct stand_in *node = user;

    if (result != ERR_OK || response->status != WIRE_OK)
        return;
    Holdfast__Internal__V1__ReportOwnerResponse *answer =
        holdfast__internal__v1__report_owner_response__unpack(NULL, response->body.size,
                                                              response->body.data);
    assert_non_null(answer);
    node->accepted += answer->accepted != 0;
    holdfast__internal__v1__report_owner_response__free_unpacked(answer, NULL);
}

static bool link_ready(struct fixture *fixture)
{
    return link_is_ready(fixture->nodes[fixture->number].coordinator);
}

static bool report_accepted(struct fixture *fixture)
{
    return fixture->nodes[fixture->number].accepted > 0;
}

/* The node says that the shard's owner is closed. */
static void node_report(struct fixture *fixture, uint32_t i, uint32_t shard)
{
    struct stand_in *node = &fixture->nodes[i];
    struct shard_record record = shard_map_find(fixture->map, shard)->record;
    Holdfast__Internal__V1__ShardPosition position = HOLDFAST__INTERNAL__V1__SHARD_POSITION__INIT;
    Holdfast__Internal__V1__ShardPosition *positions[] = { &position };
    Holdfast__Internal__V1__ReportOwnerRequest report =
        HOLDFAST__INTERNAL__V1__REPORT_OWNER_REQUEST__INIT;
    char reason[] = "closed";
    uint8_t bytes[128];

    fixture->number = i;
    if (node->coordinator == NULL) {
        struct link_dial_options dial = {
            .transport = LINK_NNG,
            .address = shard_map_find_coordinator(fixture->map)->address,
            .handlers = handlers(node),
        };

        assert_int_equal(link_dial(node->hub, &dial, &node->coordinator), ERR_OK);
        wait_for(fixture, link_ready);
    }
    position.shard = shard;
    position.epoch = record.epoch;
    report.reporter = node->record.replica_id;
    report.owner = record.owner;
    report.reason = reason;
    report.since_ms = 400;
    report.n_shards = 1;
    report.shards = positions;
    struct call_request request = {
        .method = METHOD_REPORT_OWNER,
        .deadline_ms = 2000,
        .body = { bytes, holdfast__internal__v1__report_owner_request__pack(&report, bytes) },
        .done = on_reported,
        .user = node,
    };

    node->accepted = 0;
    assert_int_equal(call_start(node->calls, node->coordinator, &request, NULL), ERR_OK);
    wait_for(fixture, report_accepted);
}

/* ---- coordinators ---- */
static void run_coordinator(struct fixture *fixture, const char *name)
{
    char log_path[96], ca[96], cert[96], key[96];
    const char *arguments[] = { COORDINATOR_BINARY,
                                "--name",
                                name,
                                "--cluster",
                                CLUSTER,
                                "--etcd",
                                fixture->process.endpoint,
                                "--listen",
                                "127.0.0.1:0",
                                "--shard-count",
                                "16",
                                "--currencies",
                                "gold",
                                "--lease-ttl",
                                "8s",
                                "--server-wait",
                                "1s",
                                "--claim-calm",
                                "0",
                                "--tls-ca",
                                ca,
                                "--tls-cert",
                                cert,
                                "--tls-key",
                                key,
                                NULL };

    snprintf(log_path, sizeof log_path, "%s/%s.log", fixture->directory, name);
    snprintf(ca, sizeof ca, "%s/ca.crt", fixture->directory);
    snprintf(cert, sizeof cert, "%s/coordinator.crt", fixture->directory);
    snprintf(key, sizeof key, "%s/coordinator.key", fixture->directory);
    int fd = open(log_path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)dup2(fd, STDERR_FILENO);
    execv(arguments[0], (char *const *)(uintptr_t)arguments);
    _exit(127);
}

static void coordinator_start(struct fixture *fixture, uint32_t i)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        run_coordinator(fixture, i == 0 ? "a" : "b");
    fixture->coordinators[i] = pid;
}

/* Returns its exit status as waitpid gives it. */
static int coordinator_stop(struct fixture *fixture, uint32_t i, int signum)
{
    int status = 0;

    if (fixture->coordinators[i] == 0)
        return 0;
    assert_int_equal(kill(fixture->coordinators[i], signum), 0);
    assert_int_equal(waitpid(fixture->coordinators[i], &status, 0), fixture->coordinators[i]);
    fixture->coordinators[i] = 0;
    return status;
}

static uint32_t leader(struct fixture *fixture)
{
    const struct coordinator_record *record = shard_map_find_coordinator(fixture->map);

    assert_non_null(record);
    return record->name[0] == 'a' ? 0 : 1;
}

/* ---- life ---- */
static void no_log(void *sink, enum log_level level, const char *event,
                   const struct log_field *fields)
{
    (void)sink;
    (void)level;
    (void)event;
    (void)fields;
}

static void on_heartbeat(void *user)
{
    (void)user;
}

static void make_certificates(struct fixture *fixture)
{
    static const char *const roles[] = { "node", "coordinator" };
    char ca[96], cert[96], key[96];
    struct tls_error why;
    bool made;

    assert_int_equal(certs_make_ca(fixture->directory, CLUSTER, &made, &why), ERR_OK);
    for (size_t i = 0; i < ARRAY_SIZE(roles); i++) {
        char uri[96];
        const struct certs_leaf leaf = { .name = roles[i], .uri = uri };

        snprintf(uri, sizeof uri, "holdfast://%s/%s/*", CLUSTER, roles[i]);
        assert_int_equal(certs_make_leaf(fixture->directory, &leaf, &made, &why), ERR_OK);
    }
    snprintf(ca, sizeof ca, "%s/ca.crt", fixture->directory);
    snprintf(cert, sizeof cert, "%s/node.crt", fixture->directory);
    snprintf(key, sizeof key, "%s/node.key", fixture->directory);
    for (int side = TLS_CLIENT; side <= TLS_SERVER; side++) {
        struct tls_options options = { .side = (enum tls_side)side,
                                       .ca = { .path = ca },
                                       .cert = { .path = cert },
                                       .key = { .path = key },
                                       .verify_peer = true };

        assert_int_equal(tls_config_new(&options, &fixture->tls[side], &why), ERR_OK);
    }
}

static void connect_etcd(struct fixture *fixture)
{
    const char *endpoint = fixture->process.endpoint;
    struct cluster_key prefix = cluster_key_prefix(CLUSTER);

    assert_int_equal(etcd_new(&(struct etcd_options){ .loop = loop_uv(fixture->loop),
                                                      .endpoints = &endpoint,
                                                      .endpoint_count = 1,
                                                      .log = &fixture->log },
                              &fixture->etcd),
                     ERR_OK);
    fixture->map = shard_map_new(CLUSTER);
    assert_int_equal(
        etcd_mirror_start(fixture->etcd,
                          &(struct etcd_mirror_options){ .prefix = cluster_key_slice(&prefix),
                                                         .keys_max = CLUSTER_KEYS_MAX,
                                                         .put = on_put,
                                                         .deleted = on_deleted,
                                                         .synced = on_synced,
                                                         .context = fixture },
                          &fixture->mirror),
        ERR_OK);
}

static void fixture_start(struct fixture *fixture, uint32_t coordinator_count)
{
    char data[80];

    *fixture = (struct fixture){ .log = { .write = no_log, .level_min = LOG_ERROR } };
    test_directory_make("coordinator", fixture->directory);
    snprintf(data, sizeof data, "%s/etcd", fixture->directory);
    assert_int_equal(
        etcd_process_start(&(struct etcd_process_options){ .data_dir = data }, &fixture->process),
        ERR_OK);
    assert_int_equal(loop_new(&fixture->loop), ERR_OK);
    loop_timer_init(&fixture->heartbeat, fixture->loop, on_heartbeat, NULL);
    loop_timer_start_repeating(&fixture->heartbeat, 20);
    make_certificates(fixture);
    for (uint32_t i = 0; i < coordinator_count; i++)
        coordinator_start(fixture, i);
    connect_etcd(fixture);
    wait_for(fixture, has_cluster);
    for (uint32_t i = 0; i < NODES; i++)
        node_start(fixture, i);
    wait_for(fixture, is_complete);
}

static bool never(void *user)
{
    (void)user;
    return false;
}

static void fixture_stop(struct fixture *fixture)
{
    for (uint32_t i = 0; i < 2; i++)
        (void)coordinator_stop(fixture, i, SIGKILL);
    for (uint32_t i = 0; i < NODES; i++) {
        node_stop(&fixture->nodes[i]);
        link_hub_free(fixture->nodes[i].hub);
        calls_free(fixture->nodes[i].calls);
    }
    etcd_mirror_stop(fixture->mirror);
    etcd_free(fixture->etcd);
    (void)loop_run_until(fixture->loop, never, NULL, 100);
    loop_timer_stop(&fixture->heartbeat);
    loop_free(fixture->loop);
    shard_map_free(fixture->map);
    tls_config_free(fixture->tls[TLS_CLIENT]);
    tls_config_free(fixture->tls[TLS_SERVER]);
    etcd_process_stop(&fixture->process);
    test_directory_remove(fixture->directory);
}

/* ---- the tests ---- */
static void a_second_coordinator_takes_over_and_finishes(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_start(&fixture, 2);
    wait_for(&fixture, policy_everywhere);

    uint32_t first = leader(&fixture);

    node_stop(&fixture.nodes[0]);
    fixture.number = 1;
    wait_for(&fixture, owns_nothing);

    /* Killed: its lease has to lapse first. Meanwhile a node and a game server go. */
    assert_true(WIFSIGNALED(coordinator_stop(&fixture, first, SIGKILL)));
    struct server_record server = { .name = "server", .ttl_ms = 6000, .lease_id = 7 };
    struct buf value = { 0 };

    server_record_encode(&server, &value);
    put(&fixture, cluster_key_server_known(CLUSTER, (struct incarnation){ 1, 77 }), &value, 0);
    fixture.server_known = true;
    node_stop(&fixture.nodes[1]);
    fixture.number = (uint64_t)(first == 0 ? 'a' : 'b');
    wait_for(&fixture, is_led_by_another);
    fixture.number = 2;
    wait_for(&fixture, owns_nothing);
    wait_for(&fixture, server_is_gone);
    assert_null(memchr(fixture.expired_at, false, SHARDS));

    /* Asked to stop, it resigns at once. */
    assert_int_equal(coordinator_stop(&fixture, 1 - first, SIGTERM), 0);
    fixture.done = has_no_leader;
    assert_true(loop_run_until(fixture.loop, done, &fixture, 4000)); /* Before its lease ends. */
    fixture_stop(&fixture);
}

static bool has_written(struct fixture *fixture)
{
    return fixture->puts_open == 0;
}

/* Two keys each: more than the default limit of a mirror. */
static void register_servers(struct fixture *fixture, uint64_t first, uint64_t count)
{
    const struct server_record server = { .name = "server", .ttl_ms = 6000, .lease_id = 7 };
    struct etcd_txn *txn = etcd_txn_new();
    struct buf value = { 0 };

    server_record_encode(&server, &value);
    for (uint64_t i = first; i < first + count; i++) {
        struct cluster_key known =
            cluster_key_server_known(CLUSTER, (struct incarnation){ 1, 1000000 + i });
        struct cluster_key live =
            cluster_key_server_live(CLUSTER, (struct incarnation){ 1, 1000000 + i });
        etcd_txn_put(txn, ETCD_THEN, cluster_key_slice(&known), buf_slice(&value), 0);
        etcd_txn_put(txn, ETCD_THEN, cluster_key_slice(&live), buf_slice(&value), 0);
    }
    buf_deinit(&value);
    fixture->puts_open++;
    assert_int_equal(etcd_txn_until_definite(fixture->etcd, txn, on_put_done,
                                             &(struct etcd_wait){ 20000, fixture, NULL }),
                     ERR_OK);
    etcd_txn_free(txn);
    wait_for(fixture, has_written);
}

static bool has_leader(struct fixture *fixture)
{
    return !has_no_leader(fixture);
}

static void a_coordinator_starts_among_many_game_servers(void **state)
{
    const uint64_t count = ETCD_MIRROR_KEYS_MAX / 2 + 500;
    struct fixture fixture;

    (void)state;
    fixture_start(&fixture, 1);
    for (uint64_t i = 0; i < count; i += 64)
        register_servers(&fixture, i, count - i < 64 ? count - i : 64);
    assert_int_equal(coordinator_stop(&fixture, 0, SIGTERM), 0);
    wait_for(&fixture, has_no_leader);
    coordinator_start(&fixture, 0);
    wait_for(&fixture, has_leader);
    fixture_stop(&fixture);
}

static void reports_of_two_nodes_move_a_shard(void **state)
{
    struct fixture fixture;
    struct shard_record before, after;

    (void)state;
    fixture_start(&fixture, 1);
    before = shard_map_find(fixture.map, 5)->record;
    for (uint32_t i = 0; i < NODES; i++) {
        if (i + 1 != before.owner)
            node_report(&fixture, i, 5);
    }
    fixture.shard = 5;
    fixture.number = before.epoch;
    wait_for(&fixture, epoch_rose);
    after = shard_map_find(fixture.map, 5)->record;
    assert_int_equal(after.epoch, before.epoch + 1);
    assert_true(after.owner != before.owner);
    fixture_stop(&fixture);
}

static void a_coordinator_outlives_an_outage_of_etcd(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_start(&fixture, 1);
    etcd_process_kill(&fixture.process);
    (void)loop_run_until(fixture.loop, never, NULL, 9000); /* Longer than its lease. */
    assert_int_equal(waitpid(fixture.coordinators[0], NULL, WNOHANG), 0);
    assert_int_equal(etcd_process_restart(&fixture.process, 0), ERR_OK);
    node_stop(&fixture.nodes[2]);
    fixture.number = 3;
    wait_for(&fixture, owns_nothing);
    assert_int_equal(coordinator_stop(&fixture, 0, SIGTERM), 0);
    fixture_stop(&fixture);
}

static void on_range(void *context, err e, const struct etcd_range_result *result)
{
    struct fixture *fixture = context;

    assert_int_equal(e, ERR_OK);
    fixture->number = (uint64_t)result->total;
}

static bool has_number(struct fixture *fixture)
{
    return fixture->number != UINT64_MAX;
}

static void keys_are_counted(struct fixture *fixture, struct cluster_key prefix)
{
    struct etcd_range range = { .key = cluster_key_slice(&prefix), .prefix = true };

    fixture->number = UINT64_MAX;
    assert_int_equal(
        etcd_range(fixture->etcd, &range, on_range, &(struct etcd_wait){ 0, fixture, NULL }),
        ERR_OK);
    wait_for(fixture, has_number);
}

static bool is_elected_again(struct fixture *fixture)
{
    keys_are_counted(fixture, cluster_key_election_prefix(CLUSTER));
    return fixture->number > 0;
}

/* An empty etcd under the same address: without memory it would be a new cluster. */
static void nothing_is_written_to_an_etcd_that_went_back(void **state)
{
    struct fixture fixture;
    char data[96];

    (void)state;
    fixture_start(&fixture, 1);
    etcd_process_kill(&fixture.process);
    snprintf(data, sizeof data, "%s/etcd", fixture.directory);
    test_directory_remove(data);
    assert_int_equal(etcd_process_restart(&fixture.process, 0), ERR_OK);
    for (int tries = 0; !is_elected_again(&fixture); tries++) {
        assert_in_range(tries, 0, 200);
        (void)loop_run_until(fixture.loop, never, NULL, 100);
    }
    (void)loop_run_until(fixture.loop, never, NULL, 1000);
    keys_are_counted(&fixture, cluster_key_cluster(CLUSTER));
    assert_int_equal(fixture.number, 0);
    keys_are_counted(&fixture, cluster_key_shards_prefix(CLUSTER));
    assert_int_equal(fixture.number, 0);
    assert_int_equal(coordinator_stop(&fixture, 0, SIGTERM), 0);
    fixture_stop(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_coordinator_takes_over_and_finishes),
        cmocka_unit_test(a_coordinator_starts_among_many_game_servers),
        cmocka_unit_test(reports_of_two_nodes_move_a_shard),
        cmocka_unit_test(a_coordinator_outlives_an_outage_of_etcd),
        cmocka_unit_test(nothing_is_written_to_an_etcd_that_went_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
