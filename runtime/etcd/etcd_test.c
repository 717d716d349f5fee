/* The client against a real etcd: one process for all tests, on free loopback ports. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/base/check.h"
#include "runtime/etcd/etcd.h"
#include "runtime/etcd/etcd_election.h"
#include "runtime/etcd/etcd_lease.h"
#include "runtime/etcd/etcd_mirror.h"
#include "runtime/etcd/etcd_process.h"
#include "runtime/etcd/etcd_watch.h"

enum { WAIT_MS = 20000 };

static struct etcd_process server;
static char server_dir[64];

static int start_server(void **state)
{
    char template[] = "/tmp/etcd_test_XXXXXX";
    (void)state;

    CHECK(mkdtemp(template) != NULL);
    snprintf(server_dir, sizeof server_dir, "%s", template);
    char data_dir[80];
    snprintf(data_dir, sizeof data_dir, "%s/data", server_dir);
    struct etcd_process_options options = { .data_dir = data_dir };
    return etcd_process_start(&options, &server) == ERR_OK ? 0 : -1;
}

static int stop_server(void **state)
{
    char command[96];
    (void)state;

    etcd_process_stop(&server);
    snprintf(command, sizeof command, "rm -rf %s", server_dir);
    return system(command);
}

/* One loop with one or more clients. */
struct world {
    uv_loop_t loop;
    uv_timer_t tick; /* Wakes the loop, so that waits end in time. */
    struct etcd *etcd;
    int rollbacks;
    struct etcd_rollback rollback;
};

static void tick(uv_timer_t *timer)
{
    (void)timer;
}

static void count_rollback(void *context, const struct etcd_rollback *rollback)
{
    struct world *world = context;

    world->rollbacks++;
    world->rollback = *rollback;
}

static struct etcd *client_new(struct world *world, const char *endpoint, uint64_t cluster_id,
                               int64_t revision)
{
    const char *endpoints[] = { endpoint };
    struct etcd_options options = { .loop = &world->loop,
                                    .endpoints = endpoints,
                                    .endpoint_count = 1,
                                    .timeout_ms = 3000,
                                    .cluster_id_known = cluster_id,
                                    .revision_known = revision,
                                    .rolled_back = count_rollback,
                                    .context = world };
    struct etcd *etcd;

    assert_int_equal(etcd_new(&options, &etcd), ERR_OK);
    return etcd;
}

static void world_init(struct world *world)
{
    memset(world, 0, sizeof *world);
    assert_int_equal(uv_loop_init(&world->loop), 0);
    uv_timer_init(&world->loop, &world->tick);
    uv_timer_start(&world->tick, tick, 5, 5);
    world->etcd = client_new(world, server.endpoint, 0, 0);
}

static void world_deinit(struct world *world)
{
    etcd_free(world->etcd);
    uv_close((uv_handle_t *)&world->tick, NULL);
    uv_run(&world->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&world->loop), 0);
}

#define RUN_UNTIL(world, condition)                                                                \
    do {                                                                                           \
        uint64_t until_ms_ = uv_hrtime() / 1000000 + WAIT_MS;                                      \
        while (!(condition)) {                                                                     \
            uv_run(&(world)->loop, UV_RUN_ONCE);                                                   \
            if (uv_hrtime() / 1000000 > until_ms_)                                                 \
                fail_msg("not within %d ms: %s", (int)WAIT_MS, #condition);                        \
        }                                                                                          \
    } while (0)

/* ---- One call, waited for ---- */

struct answer {
    bool done;
    err e;
    bool succeeded;
    uint32_t attempts;
    int64_t revision;
    size_t op_count;
    size_t kv_count;
    char value[64];
    int64_t create_revision, mod_revision;
    bool inner_succeeded;
    int64_t deleted;
    int64_t lease_id;
};

static void keep_kvs(struct answer *a, const struct etcd_range_result *range)
{
    a->kv_count = range->kv_count;
    if (range->kv_count == 0)
        return;
    snprintf(a->value, sizeof a->value, "%.*s", (int)range->kvs[0].value.size,
             (const char *)range->kvs[0].value.data);
    a->create_revision = range->kvs[0].create_revision;
    a->mod_revision = range->kvs[0].mod_revision;
}

static void txn_done(void *context, err e, const struct etcd_txn_result *result)
{
    struct answer *a = context;

    assert_false(a->done);
    a->done = true;
    a->e = e;
    assert_true((e == ERR_OK) == (result != NULL));
    if (e != ERR_OK)
        return;
    a->succeeded = result->succeeded;
    a->attempts = result->attempts;
    a->revision = result->header.revision;
    a->op_count = result->op_count;
    for (size_t i = 0; i < result->op_count; i++) {
        if (result->ops[i].kind == ETCD_OP_RANGE)
            keep_kvs(a, &result->ops[i].range);
        if (result->ops[i].kind == ETCD_OP_TXN)
            a->inner_succeeded = result->ops[i].txn->succeeded;
        a->deleted += result->ops[i].deleted;
    }
}

static void range_done(void *context, err e, const struct etcd_range_result *result)
{
    struct answer *a = context;

    a->done = true;
    a->e = e;
    if (e != ERR_OK)
        return;
    a->revision = result->header.revision;
    keep_kvs(a, result);
}

static void lease_done(void *context, err e, const struct etcd_lease_result *result)
{
    struct answer *a = context;

    a->done = true;
    a->e = e;
    if (e == ERR_OK)
        a->lease_id = result->lease_id;
}

static struct answer put(struct world *world, const char *key, const char *value, int64_t lease)
{
    struct answer a = { 0 };
    struct etcd_kv kv = { .key = slice_from_text(key),
                          .value = slice_from_text(value),
                          .lease = lease };

    assert_int_equal(etcd_put(world->etcd, &kv, 0, txn_done, &a, NULL), ERR_OK);
    assert_false(a.done);
    RUN_UNTIL(world, a.done);
    return a;
}

static struct answer get(struct world *world, const char *key)
{
    struct answer a = { 0 };
    struct etcd_range range = { .key = slice_from_text(key) };

    assert_int_equal(etcd_range(world->etcd, &range, 0, range_done, &a, NULL), ERR_OK);
    RUN_UNTIL(world, a.done);
    return a;
}

static struct answer commit(struct world *world, struct etcd_txn *txn)
{
    struct answer a = { 0 };

    assert_int_equal(etcd_txn(world->etcd, txn, 0, txn_done, &a, NULL), ERR_OK);
    etcd_txn_free(txn);
    RUN_UNTIL(world, a.done);
    return a;
}

static void erase(struct world *world, const char *key)
{
    struct etcd_txn *txn = etcd_txn_new();

    etcd_txn_delete(txn, ETCD_THEN, slice_from_text(key));
    assert_int_equal(commit(world, txn).e, ERR_OK);
}

/* ---- Tests ---- */

static void compare_decides_the_branch(void **state)
{
    struct world world;
    struct etcd_txn *txn = etcd_txn_new();
    struct slice key = SLICE_LITERAL("cmp/a");
    (void)state;

    world_init(&world);
    etcd_txn_compare(txn, key, ETCD_CREATE_REVISION, ETCD_EQUAL, 0);
    etcd_txn_put(txn, ETCD_THEN, key, SLICE_LITERAL("one"), 0);
    etcd_txn_get(txn, ETCD_ELSE, key);
    struct answer first = { 0 }, second = { 0 };
    assert_int_equal(etcd_txn(world.etcd, txn, 0, txn_done, &first, NULL), ERR_OK);
    RUN_UNTIL(&world, first.done);
    assert_true(first.e == ERR_OK && first.succeeded && first.attempts == 1);
    assert_int_equal(etcd_txn(world.etcd, txn, 0, txn_done, &second, NULL), ERR_OK);
    RUN_UNTIL(&world, second.done);
    etcd_txn_free(txn);
    assert_true(second.e == ERR_OK && !second.succeeded);
    assert_string_equal(second.value, "one");
    assert_true(second.mod_revision == first.revision);
    txn = etcd_txn_new();
    etcd_txn_compare(txn, key, ETCD_MOD_REVISION, ETCD_EQUAL, first.revision);
    etcd_txn_compare_value(txn, key, ETCD_EQUAL, SLICE_LITERAL("one"));
    etcd_txn_compare(txn, key, ETCD_LEASE, ETCD_EQUAL, 0);
    etcd_txn_compare(txn, key, ETCD_VERSION, ETCD_LESS, 2);
    etcd_txn_put(txn, ETCD_THEN, key, SLICE_LITERAL("two"), 0);
    assert_true(commit(&world, txn).succeeded);
    assert_string_equal(get(&world, "cmp/a").value, "two");
    assert_true(etcd_revision_seen(world.etcd) > first.revision);
    world_deinit(&world);
}

static void nested_transactions_each_decide(void **state)
{
    struct world world;
    struct etcd_txn *outer = etcd_txn_new();
    (void)state;

    world_init(&world);
    for (int i = 0; i < 40; i++) {
        struct etcd_txn *inner = etcd_txn_new();
        char key[32];
        snprintf(key, sizeof key, "nest/%d", i);
        etcd_txn_compare(inner, slice_from_text(key), ETCD_VERSION, ETCD_EQUAL, 0);
        etcd_txn_put(inner, ETCD_THEN, slice_from_text(key), SLICE_LITERAL("v"), 0);
        etcd_txn_get(inner, ETCD_ELSE, slice_from_text(key));
        etcd_txn_nest(outer, ETCD_THEN, inner);
    }
    struct answer a = commit(&world, outer);
    assert_int_equal(a.e, ERR_OK);
    assert_true(a.succeeded && a.inner_succeeded && a.op_count == 40);
    struct etcd_txn *txn = etcd_txn_new();
    etcd_txn_delete_prefix(txn, ETCD_THEN, SLICE_LITERAL("nest/"));
    assert_int_equal(commit(&world, txn).deleted, 40);
    world_deinit(&world);
}

static void refused_request_is_definite(void **state)
{
    struct world world;
    struct etcd_txn *txn = etcd_txn_new();
    (void)state;

    world_init(&world);
    etcd_txn_put(txn, ETCD_THEN, SLICE_LITERAL("dup"), SLICE_LITERAL("1"), 0);
    etcd_txn_put(txn, ETCD_THEN, SLICE_LITERAL("dup"), SLICE_LITERAL("2"), 0);
    assert_int_equal(commit(&world, txn).e, ERR_INVALID);
    assert_int_equal(put(&world, "leased", "x", 12345).e, ERR_NOT_FOUND);
    world_deinit(&world);
}

struct lease_story {
    struct world *world;
    enum etcd_lease_state states[16];
    int count;
};

static void note_lease(void *context, struct etcd_lease *lease, enum etcd_lease_state s)
{
    struct lease_story *story = context;
    (void)lease;

    assert_true(story->count < 16);
    story->states[story->count++] = s;
}

static void leased_key_dies_with_its_lease(void **state)
{
    struct world world;
    struct answer grant = { 0 };
    (void)state;

    world_init(&world);
    assert_int_equal(etcd_lease_grant(world.etcd, 0, 1, 0, lease_done, &grant, NULL), ERR_OK);
    RUN_UNTIL(&world, grant.done);
    assert_true(grant.e == ERR_OK && grant.lease_id > INT64_C(1) << 53);
    assert_int_equal(put(&world, "lease/a", "x", grant.lease_id).e, ERR_OK);
    assert_int_equal(get(&world, "lease/a").kv_count, 1);
    /* Nobody keeps it alive. */
    struct answer alive = { 0 };
    RUN_UNTIL(&world, get(&world, "lease/a").kv_count == 0);
    assert_int_equal(etcd_lease_keep_alive(world.etcd, grant.lease_id, 0, lease_done, &alive, NULL),
                     ERR_OK);
    RUN_UNTIL(&world, alive.done);
    assert_int_equal(alive.e, ERR_NOT_FOUND);
    world_deinit(&world);
}

static void kept_lease_outlives_its_ttl_and_dies_by_revocation(void **state)
{
    struct world world;
    struct lease_story story = { .world = &world };
    struct etcd_lease_options options = { .ttl_ms = 1000,
                                          .changed = note_lease,
                                          .context = &story };
    struct etcd_lease *lease;
    (void)state;

    world_init(&world);
    assert_int_equal(etcd_lease_start(world.etcd, &options, &lease), ERR_OK);
    RUN_UNTIL(&world, story.count == 1);
    assert_int_equal(story.states[0], ETCD_LEASE_HELD);
    assert_int_equal(put(&world, "lease/b", "x", etcd_lease_id(lease)).e, ERR_OK);
    uint64_t until_ms = uv_hrtime() / 1000000 + 3000;
    RUN_UNTIL(&world, uv_hrtime() / 1000000 > until_ms);
    assert_true(etcd_lease_held(lease) && story.count == 1);
    assert_int_equal(get(&world, "lease/b").kv_count, 1);
    struct answer revoke = { 0 };
    assert_int_equal(etcd_lease_revoke(world.etcd, etcd_lease_id(lease), 0, lease_done, &revoke),
                     ERR_OK);
    RUN_UNTIL(&world, story.count == 2);
    assert_int_equal(story.states[1], ETCD_LEASE_LOST);
    assert_false(etcd_lease_held(lease));
    assert_int_equal(get(&world, "lease/b").kv_count, 0);
    etcd_lease_stop(lease, false);
    world_deinit(&world);
}

/* A frozen etcd: the clock here says "may be lost"; after the thaw it is held again, or lost. */
static void silence_for_a_ttl_makes_a_lease_uncertain(void **state)
{
    struct world world;
    struct lease_story story = { .world = &world };
    struct etcd_lease_options options = { .ttl_ms = 1000,
                                          .changed = note_lease,
                                          .context = &story };
    struct etcd_lease *lease;
    (void)state;

    world_init(&world);
    assert_int_equal(etcd_lease_start(world.etcd, &options, &lease), ERR_OK);
    RUN_UNTIL(&world, story.count == 1);
    uint64_t frozen_ms = uv_hrtime() / 1000000;
    kill(server.pid, SIGSTOP);
    RUN_UNTIL(&world, story.count == 2);
    uint64_t after_ms = uv_hrtime() / 1000000 - frozen_ms;
    kill(server.pid, SIGCONT);
    assert_int_equal(story.states[1], ETCD_LEASE_UNCERTAIN);
    assert_in_range(after_ms, 1000, 2500); /* etcd grants no less than 2 s. */
    RUN_UNTIL(&world, story.count == 3);
    etcd_lease_stop(lease, true);
    RUN_UNTIL(&world, etcd_calls_pending(world.etcd) == 0);
    world_deinit(&world);
}

static void timeout_is_an_unknown_outcome(void **state)
{
    struct world world;
    struct answer a = { 0 };
    struct etcd_kv kv = { .key = SLICE_LITERAL("stop/a"), .value = SLICE_LITERAL("late") };
    (void)state;

    world_init(&world);
    assert_int_equal(put(&world, "stop/warm", "x", 0).e, ERR_OK);
    kill(server.pid, SIGSTOP);
    assert_int_equal(etcd_put(world.etcd, &kv, 300, txn_done, &a, NULL), ERR_OK);
    RUN_UNTIL(&world, a.done);
    kill(server.pid, SIGCONT);
    assert_int_equal(a.e, ERR_TIMEOUT);
    assert_int_equal(err_retry(a.e), RETRY_UNKNOWN_OUTCOME);
    /* It may have committed or not; what is certain is only that etcd knows. */
    assert_int_equal(get(&world, "stop/a").e, ERR_OK);
    world_deinit(&world);
}

static void refused_connection_is_definite(void **state)
{
    struct world world;
    struct answer a = { 0 };
    struct etcd_kv kv = { .key = SLICE_LITERAL("k"), .value = SLICE_LITERAL("v") };
    (void)state;

    world_init(&world);
    struct etcd *nowhere = client_new(&world, "http://127.0.0.1:1", 0, 0);
    assert_int_equal(etcd_put(nowhere, &kv, 0, txn_done, &a, NULL), ERR_OK);
    RUN_UNTIL(&world, a.done);
    assert_int_equal(a.e, ERR_UNAVAILABLE);
    a = (struct answer){ 0 };
    struct etcd_txn *txn = etcd_txn_new();
    etcd_txn_put(txn, ETCD_THEN, kv.key, kv.value, 0);
    assert_int_equal(etcd_txn_until_definite(nowhere, txn, 200, txn_done, &a, NULL), ERR_OK);
    etcd_txn_free(txn);
    RUN_UNTIL(&world, a.done);
    assert_int_equal(a.e, ERR_UNAVAILABLE);
    etcd_free(nowhere);
    world_deinit(&world);
}

static void dead_endpoint_is_passed_over(void **state)
{
    struct world world;
    const char *endpoints[] = { "http://127.0.0.1:1", server.endpoint };
    struct answer a = { 0 };
    struct etcd *etcd;
    struct etcd_kv kv = { .key = SLICE_LITERAL("over"), .value = SLICE_LITERAL("v") };
    (void)state;

    world_init(&world);
    struct etcd_options options = { .loop = &world.loop,
                                    .endpoints = endpoints,
                                    .endpoint_count = 2 };
    assert_int_equal(etcd_new(&options, &etcd), ERR_OK);
    assert_int_equal(etcd_put(etcd, &kv, 0, txn_done, &a, NULL), ERR_OK);
    RUN_UNTIL(&world, a.done);
    assert_int_equal(a.e, ERR_OK);
    etcd_free(etcd);
    world_deinit(&world);
}

/* Frozen, then killed, then started again: repeats recognise an attempt that got through. */
static void repeated_transaction_reaches_a_definite_answer(void **state)
{
    struct world world;
    struct answer a = { 0 };
    struct slice key = SLICE_LITERAL("until/a");
    struct etcd_txn *txn = etcd_txn_new();
    (void)state;

    world_init(&world);
    assert_int_equal(put(&world, "until/warm", "x", 0).e, ERR_OK);
    etcd_txn_compare(txn, key, ETCD_CREATE_REVISION, ETCD_EQUAL, 0);
    etcd_txn_put(txn, ETCD_THEN, key, SLICE_LITERAL("unique-7"), 0);
    etcd_txn_get(txn, ETCD_ELSE, key);
    kill(server.pid, SIGSTOP);
    assert_int_equal(etcd_txn_until_definite(world.etcd, txn, 0, txn_done, &a, NULL), ERR_OK);
    etcd_txn_free(txn);
    uint64_t until_ms = uv_hrtime() / 1000000 + 500;
    RUN_UNTIL(&world, uv_hrtime() / 1000000 > until_ms);
    assert_false(a.done);
    etcd_process_kill(&server);
    RUN_UNTIL(&world, uv_hrtime() / 1000000 > until_ms + 300);
    assert_false(a.done);
    assert_int_equal(etcd_process_restart(&server, 0), ERR_OK);
    RUN_UNTIL(&world, a.done);
    assert_int_equal(a.e, ERR_OK);
    assert_true(a.attempts > 1);
    assert_true(a.succeeded || strcmp(a.value, "unique-7") == 0);
    assert_string_equal(get(&world, "until/a").value, "unique-7");
    world_deinit(&world);
}

static void cancelled_call_says_nothing(void **state)
{
    struct world world;
    struct answer a = { 0 };
    struct etcd_call *call;
    struct etcd_kv kv = { .key = SLICE_LITERAL("c"), .value = SLICE_LITERAL("v") };
    (void)state;

    world_init(&world);
    assert_int_equal(etcd_put(world.etcd, &kv, 0, txn_done, &a, &call), ERR_OK);
    etcd_call_cancel(call);
    assert_int_equal(put(&world, "c2", "v", 0).e, ERR_OK);
    assert_false(a.done);
    /* And those that are still pending when the client goes. */
    assert_int_equal(etcd_put(world.etcd, &kv, 0, txn_done, &a, NULL), ERR_OK);
    world_deinit(&world);
    assert_false(a.done);
}

static void queue_is_bounded(void **state)
{
    struct world world;
    static struct answer answers[ETCD_QUEUE_MAX + ETCD_CALLS_MAX];
    struct etcd_range range = { .key = SLICE_LITERAL("q") };
    size_t sent = 0, done = 0;
    err e = ERR_OK;
    (void)state;

    world_init(&world);
    while (e == ERR_OK && sent < ARRAY_SIZE(answers)) {
        e = etcd_range(world.etcd, &range, 60000, range_done, &answers[sent], NULL);
        sent += e == ERR_OK ? 1u : 0u;
    }
    assert_int_equal(sent, ETCD_QUEUE_MAX + ETCD_CALLS_MAX);
    assert_int_equal(etcd_range(world.etcd, &range, 0, range_done, &answers[0], NULL), ERR_FULL);
    RUN_UNTIL(&world, etcd_calls_pending(world.etcd) == 0);
    for (size_t i = 0; i < sent; i++)
        done += answers[i].done && answers[i].e == ERR_OK ? 1u : 0u;
    assert_int_equal(done, sent);
    world_deinit(&world);
}

/* ---- Watch and mirror ---- */

struct watch_story {
    char trace[512];
    int established;
    int64_t reset;
};

static void note_events(void *context, const struct etcd_event *events, size_t count,
                        int64_t revision)
{
    struct watch_story *story = context;

    assert_true(revision == events[count - 1].kv.mod_revision);
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(story->trace);
        snprintf(story->trace + used, sizeof story->trace - used, "%s%.*s=%.*s ",
                 events[i].deleted ? "-" : "", (int)events[i].kv.key.size,
                 (const char *)events[i].kv.key.data, (int)events[i].kv.value.size,
                 events[i].kv.value.size > 0 ? (const char *)events[i].kv.value.data : "");
    }
}

static void note_established(void *context)
{
    ((struct watch_story *)context)->established++;
}

static void note_reset(void *context, int64_t compact_revision)
{
    ((struct watch_story *)context)->reset = compact_revision;
}

static void watch_resumes_after_etcd_was_killed(void **state)
{
    struct world world;
    struct watch_story story = { 0 };
    struct etcd_watch *watch;
    (void)state;

    world_init(&world);
    struct etcd_watch_options options = { .key = SLICE_LITERAL("w/"),
                                          .prefix = true,
                                          .start_revision = put(&world, "w/0", "0", 0).revision,
                                          .events = note_events,
                                          .reset = note_reset,
                                          .established = note_established,
                                          .context = &story };
    assert_int_equal(etcd_watch_start(world.etcd, &options, &watch), ERR_OK);
    put(&world, "w/1", "1", 0);
    put(&world, "other", "1", 0);
    RUN_UNTIL(&world, strcmp(story.trace, "w/0=0 w/1=1 ") == 0);
    etcd_process_kill(&server);
    assert_int_equal(etcd_process_restart(&server, 0), ERR_OK);
    put(&world, "w/2", "2", 0);
    RUN_UNTIL(&world, put(&world, "w/3", "3", 0).e == ERR_OK);
    erase(&world, "w/0");
    RUN_UNTIL(&world, strstr(story.trace, "-w/0") != NULL);
    assert_non_null(strstr(story.trace, "w/0=0 w/1=1 w/"));
    assert_non_null(strstr(story.trace, "w/3=3 -w/0= "));
    assert_int_equal(story.established, 2);
    assert_true(story.reset == 0);
    etcd_watch_stop(watch);
    world_deinit(&world);
}

static void compact(int64_t revision)
{
    char command[160];

    snprintf(command, sizeof command,
             "ETCDCTL_API=3 etcdctl --endpoints=%s compact %lld >/dev/null 2>&1", server.endpoint,
             (long long)revision);
    assert_int_equal(system(command), 0);
}

static void watch_of_compacted_revisions_is_reset(void **state)
{
    struct world world;
    struct watch_story story = { 0 };
    struct etcd_watch *watch;
    (void)state;

    world_init(&world);
    int64_t first = put(&world, "z/0", "0", 0).revision;
    put(&world, "z/1", "1", 0);
    compact(put(&world, "z/2", "2", 0).revision);
    struct etcd_watch_options options = { .key = SLICE_LITERAL("z/"),
                                          .prefix = true,
                                          .start_revision = first,
                                          .events = note_events,
                                          .reset = note_reset,
                                          .context = &story };
    assert_int_equal(etcd_watch_start(world.etcd, &options, &watch), ERR_OK);
    RUN_UNTIL(&world, story.reset > first);
    assert_string_equal(story.trace, "");
    etcd_watch_stop(watch);
    world_deinit(&world);
}

struct mirror_story {
    char trace[512];
    int synced;
    int resets;
    struct etcd_mirror *stop_at_put; /* Stopped from within the callback. */
};

static void mirror_put(void *context, const struct etcd_kv *kv)
{
    struct mirror_story *story = context;
    size_t used = strlen(story->trace);

    snprintf(story->trace + used, sizeof story->trace - used, "%.*s=%.*s ", (int)kv->key.size,
             (const char *)kv->key.data, (int)kv->value.size, (const char *)kv->value.data);
    if (story->stop_at_put != NULL)
        etcd_mirror_stop(story->stop_at_put);
}

static void mirror_deleted(void *context, struct slice key, int64_t revision)
{
    struct mirror_story *story = context;
    size_t used = strlen(story->trace);
    (void)revision;

    snprintf(story->trace + used, sizeof story->trace - used, "-%.*s ", (int)key.size,
             (const char *)key.data);
}

static void mirror_synced(void *context, int64_t revision)
{
    (void)revision;
    ((struct mirror_story *)context)->synced++;
}

static void mirror_reset(void *context)
{
    ((struct mirror_story *)context)->resets++;
}

static struct etcd_mirror *mirror_begin(struct etcd *etcd, const char *prefix, uint64_t refresh_ms,
                                        struct mirror_story *story)
{
    struct etcd_mirror_options options = { .prefix = slice_from_text(prefix),
                                           .refresh_ms = refresh_ms,
                                           .put = mirror_put,
                                           .deleted = mirror_deleted,
                                           .synced = mirror_synced,
                                           .reset = mirror_reset,
                                           .context = story };
    struct etcd_mirror *mirror;

    assert_int_equal(etcd_mirror_start(etcd, &options, &mirror), ERR_OK);
    return mirror;
}

static void mirror_tells_each_change_once(void **state)
{
    struct world world;
    struct mirror_story story = { 0 };
    (void)state;

    world_init(&world);
    put(&world, "m/1", "a", 0);
    struct etcd_mirror *mirror = mirror_begin(world.etcd, "m/", 50, &story);
    RUN_UNTIL(&world, story.synced == 1);
    assert_string_equal(story.trace, "m/1=a ");
    put(&world, "m/2", "b", 0);
    erase(&world, "m/1");
    put(&world, "m/1", "c", 0);
    erase(&world, "m/2");
    RUN_UNTIL(&world, strstr(story.trace, "-m/2 ") != NULL);
    int synced = story.synced;
    RUN_UNTIL(&world, story.synced > synced + 3);
    assert_string_equal(story.trace, "m/1=a m/2=b -m/1 m/1=c -m/2 ");
    etcd_mirror_stop(mirror);
    world_deinit(&world);
}

/* While etcd is away and compacted, the watch cannot tell; the range does. */
static void mirror_repairs_what_a_watch_missed(void **state)
{
    struct world world;
    struct mirror_story story = { 0 };
    struct world other;
    (void)state;

    world_init(&world);
    world_init(&other);
    put(&world, "r/1", "a", 0);
    put(&world, "r/2", "b", 0);
    struct etcd_mirror *mirror = mirror_begin(world.etcd, "r/", 0, &story);
    RUN_UNTIL(&world, story.synced == 1);
    /* Only the other loop runs: this mirror hears nothing until its stream is broken. */
    erase(&other, "r/1");
    compact(put(&other, "r/3", "c", 0).revision);
    etcd_process_kill(&server);
    assert_int_equal(etcd_process_restart(&server, 0), ERR_OK);
    RUN_UNTIL(&world, strstr(story.trace, "r/3=c") != NULL && strstr(story.trace, "-r/1") != NULL);
    assert_null(strstr(strstr(story.trace, "r/2") + 1, "r/2"));
    etcd_mirror_stop(mirror);
    world_deinit(&world);
    world_deinit(&other);
}

static void mirror_may_be_stopped_from_its_callback(void **state)
{
    struct world world;
    struct mirror_story story = { 0 };
    (void)state;

    world_init(&world);
    put(&world, "s/1", "a", 0);
    put(&world, "s/2", "a", 0);
    story.stop_at_put = mirror_begin(world.etcd, "s/", 0, &story);
    RUN_UNTIL(&world, story.trace[0] != '\0');
    assert_string_equal(story.trace, "s/1=a ");
    world_deinit(&world);
}

/* ---- Rollback ---- */

static void revision_going_back_freezes_mirrors_until_accepted(void **state)
{
    struct world world;
    struct mirror_story story = { 0 };
    (void)state;

    world_init(&world);
    put(&world, "back/1", "a", 0);
    struct etcd *etcd =
        client_new(&world, server.endpoint, etcd_cluster_id_seen(world.etcd), INT64_C(1) << 40);
    struct etcd_mirror *mirror = mirror_begin(etcd, "back/", 20, &story);
    RUN_UNTIL(&world, world.rollbacks == 1);
    assert_int_equal(world.rollback.kind, ETCD_REVISION_WENT_BACK);
    assert_true(world.rollback.revision_known == INT64_C(1) << 40);
    assert_true(etcd_rolled_back(etcd));
    RUN_UNTIL(&world, etcd_calls_pending(etcd) == 0);
    assert_string_equal(story.trace, "");
    etcd_rollback_accept(etcd);
    RUN_UNTIL(&world, story.synced > 1);
    assert_int_equal(story.resets, 1);
    assert_string_equal(story.trace, "back/1=a ");
    assert_int_equal(world.rollbacks, 1);
    etcd_mirror_stop(mirror);
    etcd_free(etcd);
    world_deinit(&world);
}

static void another_cluster_id_is_reported(void **state)
{
    struct world world;
    struct answer a = { 0 };
    struct etcd_range range = { .key = SLICE_LITERAL("x") };
    (void)state;

    world_init(&world);
    struct etcd *etcd = client_new(&world, server.endpoint, 7, 0);
    assert_int_equal(etcd_range(etcd, &range, 0, range_done, &a, NULL), ERR_OK);
    RUN_UNTIL(&world, a.done);
    assert_int_equal(world.rollbacks, 1);
    assert_int_equal(world.rollback.kind, ETCD_CLUSTER_ID_CHANGED);
    assert_true(world.rollback.cluster_id_known == 7);
    etcd_free(etcd);
    world_deinit(&world);
}

/* ---- Election ---- */

struct candidate {
    struct etcd_election *election;
    int elected, lost;
    char leader[32];
};

static void note_elected(void *context, struct slice key, int64_t create_revision)
{
    struct candidate *c = context;

    assert_true(key.size > 0 && create_revision > 0);
    c->elected++;
}

static void note_lost(void *context)
{
    ((struct candidate *)context)->lost++;
}

static void note_leader(void *context, const struct etcd_kv *kv)
{
    struct candidate *c = context;

    snprintf(c->leader, sizeof c->leader, "%.*s", kv != NULL ? (int)kv->value.size : 0,
             kv != NULL ? (const char *)kv->value.data : "");
}

static void campaign(struct etcd *etcd, const char *prefix, const char *name, uint64_t ttl_ms,
                     struct candidate *candidate)
{
    struct etcd_election_options options = { .prefix = slice_from_text(prefix),
                                             .value = slice_from_text(name),
                                             .ttl_ms = ttl_ms,
                                             .elected = note_elected,
                                             .lost = note_lost,
                                             .leader_changed = note_leader,
                                             .context = candidate };

    assert_int_equal(etcd_election_start(etcd, &options, &candidate->election), ERR_OK);
}

static void leadership_passes_when_the_leader_resigns(void **state)
{
    struct world world;
    struct candidate one = { 0 }, two = { 0 };
    (void)state;

    world_init(&world);
    struct etcd *second = client_new(&world, server.endpoint, 0, 0);
    campaign(world.etcd, "elect/", "one", 5000, &one);
    RUN_UNTIL(&world, one.elected == 1);
    campaign(second, "elect/", "two", 5000, &two);
    RUN_UNTIL(&world, strcmp(two.leader, "one") == 0);
    struct etcd_txn *txn = etcd_txn_new();
    etcd_election_compare(one.election, txn);
    etcd_txn_put(txn, ETCD_THEN, SLICE_LITERAL("by-leader"), SLICE_LITERAL("1"), 0);
    assert_true(commit(&world, txn).succeeded);
    txn = etcd_txn_new(); /* What the deposed leader would still send. */
    etcd_election_compare(one.election, txn);
    etcd_txn_put(txn, ETCD_THEN, SLICE_LITERAL("by-leader"), SLICE_LITERAL("2"), 0);
    assert_int_equal(two.elected, 0);
    etcd_election_stop(one.election);
    RUN_UNTIL(&world, two.elected == 1);
    assert_string_equal(two.leader, "two");
    assert_true(etcd_election_is_leader(two.election));
    assert_false(commit(&world, txn).succeeded);
    etcd_election_stop(two.election);
    RUN_UNTIL(&world, etcd_calls_pending(second) == 0);
    etcd_free(second);
    world_deinit(&world);
}

/* The leader's loop stands still past its TTL: the other is elected, and the first, once it runs
 * again, must say lost before anything else. */
static void leadership_passes_when_the_leader_stalls(void **state)
{
    struct world first, second;
    struct candidate one = { 0 }, two = { 0 };
    (void)state;

    world_init(&first);
    world_init(&second);
    campaign(first.etcd, "stall/", "one", 1000, &one);
    RUN_UNTIL(&first, one.elected == 1);
    campaign(second.etcd, "stall/", "two", 1000, &two);
    RUN_UNTIL(&second, two.elected == 1);
    assert_false(etcd_election_is_leader(one.election));
    RUN_UNTIL(&first, one.lost == 1 && strcmp(one.leader, "two") == 0);
    assert_int_equal(one.elected, 1);
    etcd_election_stop(one.election);
    etcd_election_stop(two.election);
    world_deinit(&first);
    world_deinit(&second);
}

static void deleted_candidate_takes_a_new_place(void **state)
{
    struct world world;
    struct candidate one = { 0 };
    struct etcd_txn *txn = etcd_txn_new();
    (void)state;

    world_init(&world);
    campaign(world.etcd, "gone/", "one", 5000, &one);
    RUN_UNTIL(&world, one.elected == 1);
    etcd_txn_delete_prefix(txn, ETCD_THEN, SLICE_LITERAL("gone/"));
    assert_int_equal(commit(&world, txn).deleted, 1);
    RUN_UNTIL(&world, one.lost == 1 && one.elected == 2);
    etcd_election_stop(one.election);
    world_deinit(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compare_decides_the_branch),
        cmocka_unit_test(nested_transactions_each_decide),
        cmocka_unit_test(refused_request_is_definite),
        cmocka_unit_test(leased_key_dies_with_its_lease),
        cmocka_unit_test(kept_lease_outlives_its_ttl_and_dies_by_revocation),
        cmocka_unit_test(silence_for_a_ttl_makes_a_lease_uncertain),
        cmocka_unit_test(timeout_is_an_unknown_outcome),
        cmocka_unit_test(refused_connection_is_definite),
        cmocka_unit_test(dead_endpoint_is_passed_over),
        cmocka_unit_test(repeated_transaction_reaches_a_definite_answer),
        cmocka_unit_test(cancelled_call_says_nothing),
        cmocka_unit_test(queue_is_bounded),
        cmocka_unit_test(watch_resumes_after_etcd_was_killed),
        cmocka_unit_test(watch_of_compacted_revisions_is_reset),
        cmocka_unit_test(mirror_tells_each_change_once),
        cmocka_unit_test(mirror_repairs_what_a_watch_missed),
        cmocka_unit_test(mirror_may_be_stopped_from_its_callback),
        cmocka_unit_test(revision_going_back_freezes_mirrors_until_accepted),
        cmocka_unit_test(another_cluster_id_is_reported),
        cmocka_unit_test(leadership_passes_when_the_leader_resigns),
        cmocka_unit_test(leadership_passes_when_the_leader_stalls),
        cmocka_unit_test(deleted_candidate_takes_a_new_place),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
