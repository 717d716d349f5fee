/* Calls and leases against a real etcd. */
#include "runtime/etcd/etcd_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "runtime/base/check.h"
#include "runtime/etcd/etcd_lease.h"

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
    assert_int_equal(etcd_txn(world.etcd, txn, txn_done, &(struct etcd_wait){ 0, &first, NULL }),
                     ERR_OK);
    RUN_UNTIL(&world, first.done);
    assert_true(first.e == ERR_OK && first.succeeded && first.attempts == 1);
    assert_int_equal(etcd_txn(world.etcd, txn, txn_done, &(struct etcd_wait){ 0, &second, NULL }),
                     ERR_OK);
    RUN_UNTIL(&world, second.done);
    etcd_txn_free(txn);
    assert_true(second.e == ERR_OK && !second.succeeded);
    assert_string_equal(second.value, "one");
    assert_true(second.mod_revision == first.revision);
    txn = etcd_txn_new();
    etcd_txn_compare(txn, key, ETCD_MOD_REVISION, ETCD_EQUAL, first.revision);
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
    etcd_txn_delete(txn, ETCD_THEN, SLICE_LITERAL("nest/39"));
    assert_int_equal(commit(&world, txn).deleted, 1);
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

/* Long enough that a starved machine does not lose what is kept alive. */
#define KEPT_TTL_MS 5000u

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
    assert_int_equal(
        etcd_lease_grant(world.etcd, 0, 5, lease_done, &(struct etcd_wait){ 0, &grant, NULL }),
        ERR_OK);
    RUN_UNTIL(&world, grant.done);
    assert_true(grant.e == ERR_OK && grant.lease_id > INT64_C(1) << 53);
    assert_int_equal(put(&world, "lease/a", "x", grant.lease_id).e, ERR_OK);
    assert_int_equal(get(&world, "lease/a").kv_count, 1);
    /* It is not kept alive. */
    struct answer alive = { 0 };
    RUN_UNTIL(&world, get(&world, "lease/a").kv_count == 0);
    assert_int_equal(etcd_lease_keep_alive(world.etcd, grant.lease_id, lease_done,
                                           &(struct etcd_wait){ 0, &alive, NULL }),
                     ERR_OK);
    RUN_UNTIL(&world, alive.done);
    assert_int_equal(alive.e, ERR_NOT_FOUND);
    world_deinit(&world);
}

static void kept_lease_outlives_its_ttl_and_dies_by_revocation(void **state)
{
    struct world world;
    struct lease_story story = { .world = &world };
    struct etcd_lease_options options = { .ttl_ms = KEPT_TTL_MS,
                                          .changed = note_lease,
                                          .context = &story };
    struct etcd_lease *lease;
    (void)state;

    world_init(&world);
    assert_int_equal(etcd_lease_start(world.etcd, &options, &lease), ERR_OK);
    RUN_UNTIL(&world, story.count == 1);
    assert_int_equal(story.states[0], ETCD_LEASE_HELD);
    assert_int_equal(put(&world, "lease/b", "x", etcd_lease_id(lease)).e, ERR_OK);
    uint64_t until_ms = uv_hrtime() / 1000000 + KEPT_TTL_MS + 1000;
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
/* Returns once all its threads have stopped: on a busy machine one may answer after the signal. */
static void server_stop(void)
{
    int status = 0;

    assert_int_equal(kill(server.pid, SIGSTOP), 0);
    assert_int_equal(waitpid(server.pid, &status, WUNTRACED), server.pid);
    assert_true(WIFSTOPPED(status));
}

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
    server_stop();
    RUN_UNTIL(&world, story.count == 2);
    uint64_t after_ms = uv_hrtime() / 1000000 - frozen_ms;
    kill(server.pid, SIGCONT);
    assert_int_equal(story.states[1], ETCD_LEASE_UNCERTAIN);
    assert_in_range(after_ms, 1000, WAIT_MS); /* Later only when this process was starved. */
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
    server_stop();
    assert_int_equal(etcd_put(world.etcd, &kv, txn_done, &(struct etcd_wait){ 300, &a, NULL }),
                     ERR_OK);
    RUN_UNTIL(&world, a.done);
    kill(server.pid, SIGCONT);
    assert_int_equal(a.e, ERR_TIMEOUT);
    assert_int_equal(err_retry(a.e), RETRY_UNKNOWN_OUTCOME);
    /* It may have committed or not; what is certain is only that etcd knows. */
    assert_int_equal(get(&world, "stop/a").e, ERR_OK);
    world_deinit(&world);
}

/* Each by itself, at its own time, on connections that were used before. */
static void no_call_waits_past_its_time(void **state)
{
    enum { CALLS = 12, TIMEOUT_MS = 2000, LATE_MS = 3000 };
    struct world world;
    struct answer answers[CALLS] = { { 0 } };
    const struct etcd_range range = { .key = SLICE_LITERAL("late/a") };
    (void)state;

    world_init(&world);
    assert_int_equal(get(&world, "late/a").e, ERR_OK);
    server_stop();
    uint64_t begun_ms = uv_hrtime() / 1000000;
    for (int i = 0; i < CALLS; i++) {
        uint64_t next_ms = begun_ms + 7 * (uint64_t)i;
        RUN_UNTIL(&world, uv_hrtime() / 1000000 >= next_ms);
        assert_int_equal(etcd_range(world.etcd, &range, range_done,
                                    &(struct etcd_wait){ TIMEOUT_MS, &answers[i], NULL }),
                         ERR_OK);
    }
    for (int i = 0; i < CALLS; i++)
        RUN_UNTIL(&world, answers[i].done);
    uint64_t took_ms = uv_hrtime() / 1000000 - begun_ms;
    kill(server.pid, SIGCONT);
    for (int i = 0; i < CALLS; i++)
        assert_int_equal(answers[i].e, ERR_TIMEOUT);
    assert_in_range(took_ms, TIMEOUT_MS, TIMEOUT_MS + LATE_MS);
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
    assert_int_equal(etcd_put(nowhere, &kv, txn_done, &(struct etcd_wait){ 0, &a, NULL }), ERR_OK);
    RUN_UNTIL(&world, a.done);
    assert_int_equal(a.e, ERR_UNAVAILABLE);
    a = (struct answer){ 0 };
    struct etcd_txn *txn = etcd_txn_new();
    etcd_txn_put(txn, ETCD_THEN, kv.key, kv.value, 0);
    assert_int_equal(
        etcd_txn_until_definite(nowhere, txn, txn_done, &(struct etcd_wait){ 200, &a, NULL }),
        ERR_OK);
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
    assert_int_equal(etcd_put(etcd, &kv, txn_done, &(struct etcd_wait){ 0, &a, NULL }), ERR_OK);
    RUN_UNTIL(&world, a.done);
    assert_int_equal(a.e, ERR_OK);
    etcd_free(etcd);
    world_deinit(&world);
}

struct told {
    bool done;
    err e;
    struct etcd_status_result status;
};

static void status_done(void *context, err e, const struct etcd_status_result *result)
{
    struct told *told = context;

    told->done = true;
    told->e = e;
    if (e == ERR_OK)
        told->status = *result;
}

/* Unlike any other call: the question is how that endpoint is. */
static void status_is_asked_of_one_endpoint_and_no_other(void **state)
{
    struct world world;
    struct etcd *etcd;
    const char *endpoints[] = { "http://127.0.0.1:1", server.endpoint };
    struct etcd_options options = { .endpoints = endpoints, .endpoint_count = 2 };
    struct told dead = { 0 }, live = { 0 };
    (void)state;

    world_init(&world);
    options.loop = &world.loop;
    assert_int_equal(etcd_new(&options, &etcd), ERR_OK);
    assert_int_equal(etcd_endpoint_count(etcd), 2);
    assert_string_equal(etcd_endpoint(etcd, 0), endpoints[0]);
    assert_int_equal(etcd_status(etcd, 0, status_done, &(struct etcd_wait){ 0, &dead, NULL }),
                     ERR_OK);
    assert_int_equal(etcd_status(etcd, 1, status_done, &(struct etcd_wait){ 0, &live, NULL }),
                     ERR_OK);
    RUN_UNTIL(&world, dead.done && live.done);
    assert_int_equal(dead.e, ERR_UNAVAILABLE);
    assert_int_equal(live.e, ERR_OK);
    assert_true(live.status.leader != 0 && live.status.database_bytes > 0);
    assert_true(live.status.version[0] == '3');
    assert_string_equal(live.status.errors, "");
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
    server_stop();
    assert_int_equal(
        etcd_txn_until_definite(world.etcd, txn, txn_done, &(struct etcd_wait){ 0, &a, NULL }),
        ERR_OK);
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
    assert_int_equal(etcd_put(world.etcd, &kv, txn_done, &(struct etcd_wait){ 0, &a, &call }),
                     ERR_OK);
    etcd_call_cancel(call);
    assert_int_equal(put(&world, "c2", "v", 0).e, ERR_OK);
    assert_false(a.done);
    /* And those that are still pending when the client goes. */
    assert_int_equal(etcd_put(world.etcd, &kv, txn_done, &(struct etcd_wait){ 0, &a, NULL }),
                     ERR_OK);
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
        e = etcd_range(world.etcd, &range, range_done,
                       &(struct etcd_wait){ 60000, &answers[sent], NULL });
        sent += e == ERR_OK ? 1u : 0u;
    }
    assert_int_equal(sent, ETCD_QUEUE_MAX + ETCD_CALLS_MAX);
    assert_int_equal(
        etcd_range(world.etcd, &range, range_done, &(struct etcd_wait){ 0, &answers[0], NULL }),
        ERR_FULL);
    RUN_UNTIL(&world, etcd_calls_pending(world.etcd) == 0);
    for (size_t i = 0; i < sent; i++)
        done += answers[i].done && answers[i].e == ERR_OK ? 1u : 0u;
    assert_int_equal(done, sent);
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
        cmocka_unit_test(no_call_waits_past_its_time),
        cmocka_unit_test(refused_connection_is_definite),
        cmocka_unit_test(dead_endpoint_is_passed_over),
        cmocka_unit_test(status_is_asked_of_one_endpoint_and_no_other),
        cmocka_unit_test(repeated_transaction_reaches_a_definite_answer),
        cmocka_unit_test(cancelled_call_says_nothing),
        cmocka_unit_test(queue_is_bounded),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
