/* Registrations against a real etcd. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "router/rpc/servers/servers.h"
#include "router/rpc/servers/servers_private.h"
#include "runtime/base/check.h"
#include "runtime/base/test_directory.h"
#include "runtime/cluster/cluster_key.h"
#include "runtime/etcd/etcd_process.h"

#define CLUSTER "test"
#define WAIT_MS 60000u
#define TTL_MS  10000u

static struct etcd_process process;
static char directory[TEST_DIRECTORY_BYTES];
static const struct log silent = { .level_min = LOG_ERROR };

struct fixture {
    struct loop *loop;
    struct etcd *etcd;
    struct servers *servers; /* A router, */
    struct servers *other;   /* and a second one. */
    bool done;
    err result;
    enum servers_register_outcome outcome;
    struct incarnation incarnation;
    enum servers_state state;
    struct servers_wait wait;
    bool known, live;
    uint32_t claims;     /* Questions to etcd that are not answered. */
    uint64_t generation; /* Of the cluster, as claims are asked; 0: not told. */
    int64_t live_lease;
    struct server_record record;
};

static int start_etcd(void **state)
{
    (void)state;
    test_directory_make("servers", directory);
    char data[96];
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

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);
    const char *endpoint = process.endpoint;
    struct servers_options options = { .cluster = CLUSTER, .log = &silent };

    CHECK(loop_new(&f->loop) == ERR_OK);
    CHECK(etcd_new(&(struct etcd_options){ .loop = loop_uv(f->loop),
                                           .endpoints = &endpoint,
                                           .endpoint_count = 1,
                                           .log = &silent },
                   &f->etcd) == ERR_OK);
    options.loop = f->loop;
    options.etcd = f->etcd;
    f->servers = servers_new(&options);
    f->other = servers_new(&options);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    servers_free(f->servers);
    servers_free(f->other);
    etcd_free(f->etcd);
    loop_free(f->loop);
    free(f);
    return 0;
}

static bool is_done(void *user)
{
    return ((struct fixture *)user)->done;
}

static bool never(void *user)
{
    (void)user;
    return false;
}

static void run(struct fixture *f)
{
    assert_true(loop_run_until(f->loop, is_done, f, WAIT_MS));
    f->done = false;
}

static void registered(void *user, enum servers_register_outcome outcome,
                       struct incarnation incarnation, uint32_t ttl_ms)
{
    struct fixture *f = user;

    CHECK(ttl_ms == TTL_MS);
    f->outcome = outcome;
    f->incarnation = incarnation;
    f->done = true;
}

static struct incarnation do_register(struct fixture *f)
{
    const struct server_record record = { .name = "place-1/job-2", .ttl_ms = TTL_MS };

    assert_int_equal(servers_register(f->servers, &(struct servers_newcomer){ &record, 3, WAIT_MS },
                                      registered, f),
                     ERR_OK);
    run(f);
    assert_int_equal(f->outcome, SERVERS_REGISTERED);
    return f->incarnation;
}

static void unregistered(void *user, err e)
{
    struct fixture *f = user;

    f->result = e;
    f->done = true;
}

static void renewed(void *user, enum servers_state state)
{
    struct fixture *f = user;

    f->state = state;
    f->done = true;
}

static enum servers_state renew(struct fixture *f, struct servers *servers,
                                struct incarnation incarnation)
{
    enum servers_state state;

    f->wait = (struct servers_wait){ .done = renewed, .user = f };
    state = servers_renew(servers, incarnation, &f->wait);
    if (state != SERVERS_PENDING)
        return state;
    run(f);
    return f->state;
}

/* A starved etcd may leave a renewal unsure; the next one knows. */
static enum servers_state renew_until_sure(struct fixture *f, struct servers *servers,
                                           struct incarnation incarnation)
{
    enum servers_state state = SERVERS_UNSURE;

    for (int i = 0; i < 500 && state == SERVERS_UNSURE; i++) {
        if (i > 0)
            (void)loop_run_until(f->loop, never, NULL, 20);
        state = renew(f, servers, incarnation);
    }
    return state;
}

static void looked(void *context, err e, const struct etcd_txn_result *result)
{
    struct fixture *f = context;
    const struct etcd_range_result *known = &result->ops[0].range;
    const struct etcd_range_result *live = &result->ops[1].range;

    CHECK(e == ERR_OK);
    f->known = known->kv_count == 1;
    f->live = live->kv_count == 1;
    f->live_lease = f->live ? live->kvs[0].lease : 0;
    if (f->known)
        CHECK(server_record_decode(known->kvs[0].value, &f->record, NULL) == ERR_OK);
    f->done = true;
}

static void look(struct fixture *f, struct incarnation incarnation)
{
    struct cluster_key known = cluster_key_server_known(CLUSTER, incarnation);
    struct cluster_key live = cluster_key_server_live(CLUSTER, incarnation);
    struct etcd_txn *txn = etcd_txn_new();

    etcd_txn_get(txn, ETCD_THEN, cluster_key_slice(&known));
    etcd_txn_get(txn, ETCD_THEN, cluster_key_slice(&live));
    CHECK(etcd_txn(f->etcd, txn, looked, &(struct etcd_wait){ 0, f, NULL }) == ERR_OK);
    etcd_txn_free(txn);
    run(f);
}

static void revoked(void *context, err e, const struct etcd_lease_result *result)
{
    struct fixture *f = context;

    (void)result;
    CHECK(e == ERR_OK);
    f->done = true;
}

static void lapse(struct fixture *f)
{
    CHECK(etcd_lease_revoke(f->etcd, f->record.lease_id, 0, revoked, f) == ERR_OK);
    run(f);
}

static void wrote(void *context, err e, const struct etcd_txn_result *result)
{
    struct fixture *f = context;

    (void)result;
    CHECK(e == ERR_OK);
    f->done = true;
}

/* As the coordinator does. */
static void mark_expiring(struct fixture *f, struct incarnation incarnation)
{
    struct cluster_key known = cluster_key_server_known(CLUSTER, incarnation);
    struct buf value = { 0 };

    f->record.state = SERVER_EXPIRING;
    server_record_encode(&f->record, &value);
    CHECK(
        etcd_put(f->etcd,
                 &(struct etcd_kv){ .key = cluster_key_slice(&known), .value = buf_slice(&value) },
                 wrote, &(struct etcd_wait){ 0, f, NULL }) == ERR_OK);
    buf_deinit(&value);
    run(f);
}

static void a_registration_is_live_and_known_under_a_growing_incarnation(void **state)
{
    struct fixture *f = *state;
    struct incarnation first = do_register(f);
    struct incarnation second = do_register(f);

    assert_int_equal(first.generation, 3);
    assert_true(incarnation_compare(first, second) < 0);
    look(f, first);
    assert_true(f->known && f->live);
    assert_int_equal(f->live_lease, f->record.lease_id);
    assert_string_equal(f->record.name, "place-1/job-2");
    assert_int_equal(f->record.state, SERVER_LIVE);
}

static void any_router_renews_and_not_more_than_once_a_second(void **state)
{
    struct fixture *f = *state;
    struct incarnation incarnation = do_register(f);

    uint64_t begun_ms = loop_now_ms(f->loop);
    assert_int_equal(renew_until_sure(f, f->servers, incarnation), SERVERS_ALIVE);
    assert_int_equal(renew_until_sure(f, f->other, incarnation), SERVERS_ALIVE);
    for (int i = 0; i < 10; i++)
        assert_int_equal(renew_until_sure(f, f->servers, incarnation), SERVERS_ALIVE);
    uint64_t keep_alives_max = 1 + (loop_now_ms(f->loop) - begun_ms) / 1000;
    assert_in_range(servers_stats(f->servers).keep_alives, 1, keep_alives_max);
}

static void a_router_knows_the_names_of_servers_it_met(void **state)
{
    struct fixture *f = *state;
    const struct incarnation server = do_register(f);

    assert_string_equal(servers_name(f->servers, server), "place-1/job-2");
    assert_string_equal(servers_name(f->other, server), "");
    assert_int_equal(renew_until_sure(f, f->other, server), SERVERS_ALIVE);
    assert_string_equal(servers_name(f->other, server), "place-1/job-2");
}

static void a_lapsed_lease_is_replaced_while_known_is_live(void **state)
{
    struct fixture *f = *state;
    struct incarnation incarnation = do_register(f);
    int64_t first_lease;

    look(f, incarnation);
    first_lease = f->live_lease;
    lapse(f);
    look(f, incarnation);
    assert_true(f->known && !f->live);
    assert_int_equal(renew_until_sure(f, f->servers, incarnation), SERVERS_ALIVE);
    look(f, incarnation);
    assert_true(f->live);
    assert_true(f->live_lease != first_lease);
    assert_int_equal(f->live_lease, f->record.lease_id);
    assert_int_equal(servers_stats(f->servers).reattached, 1);
    /* The other router knows nothing of it and finds the new lease. */
    assert_int_equal(renew_until_sure(f, f->other, incarnation), SERVERS_ALIVE);
    assert_int_equal(servers_stats(f->other).reattached, 0);
}

static void two_routers_that_reattach_at_once_agree_on_one_lease(void **state)
{
    struct fixture *f = *state;
    struct incarnation incarnation = do_register(f);
    struct fixture second = { 0 };

    look(f, incarnation);
    lapse(f);
    second.wait = (struct servers_wait){ .done = renewed, .user = &second };
    assert_int_equal(servers_renew(f->other, incarnation, &second.wait), SERVERS_PENDING);
    assert_int_equal(renew_until_sure(f, f->servers, incarnation), SERVERS_ALIVE);
    assert_true(loop_run_until(f->loop, is_done, &second, WAIT_MS));
    assert_int_not_equal(second.state, SERVERS_GONE); /* A starved etcd may leave it unsure. */
    look(f, incarnation);
    assert_true(f->live);
    assert_int_equal(f->live_lease, f->record.lease_id);
}

static void an_expiring_or_unknown_server_is_gone(void **state)
{
    struct fixture *f = *state;
    struct incarnation incarnation = do_register(f);

    look(f, incarnation);
    lapse(f);
    mark_expiring(f, incarnation);
    assert_int_equal(renew_until_sure(f, f->servers, incarnation), SERVERS_GONE);
    look(f, incarnation);
    assert_false(f->live);
    assert_int_equal(renew(f, f->servers, (struct incarnation){ 3, 999999 }), SERVERS_GONE);
    assert_int_equal(servers_stats(f->servers).remembered, 0);
}

static void an_unregistered_server_is_marked_and_cannot_come_back(void **state)
{
    struct fixture *f = *state;
    struct incarnation incarnation = do_register(f);

    for (int i = 0; i < 2; i++) { /* Repeating it is fine. */
        assert_int_equal(servers_unregister(f->servers, incarnation, WAIT_MS, unregistered, f),
                         ERR_OK);
        run(f);
        assert_int_equal(f->result, ERR_OK);
        look(f, incarnation);
        assert_true(f->known && !f->live);
        assert_int_equal(f->record.state, SERVER_EXPIRING);
    }
    assert_int_equal(renew_until_sure(f, f->other, incarnation), SERVERS_GONE);
}

static void no_more_are_registered_than_a_cluster_may_have(void **state)
{
    struct fixture *f = *state;
    const struct server_record record = { .name = "one-too-many", .ttl_ms = TTL_MS };
    struct servers_options options = {
        .loop = f->loop, .etcd = f->etcd, .cluster = CLUSTER, .log = &silent, .servers_max = 1
    };
    struct servers *servers = servers_new(&options);

    do_register(f);
    assert_int_equal(
        servers_register(servers, &(struct servers_newcomer){ &record, 3, WAIT_MS }, registered, f),
        ERR_OK);
    run(f);
    assert_int_equal(f->outcome, SERVERS_TOO_MANY);
    servers_free(servers);
}

static void without_etcd_renewals_are_unsure_and_then_do_not_wait(void **state)
{
    struct fixture *f = *state;
    struct incarnation incarnation = do_register(f);
    struct servers_wait wait = { .done = renewed, .user = f };
    const struct server_record record = { .name = "late", .ttl_ms = TTL_MS };

    etcd_process_kill(&process);
    assert_int_equal(renew(f, f->servers, incarnation), SERVERS_UNSURE);
    assert_int_equal(servers_renew(f->servers, incarnation, &wait), SERVERS_UNSURE);
    assert_int_equal(
        servers_register(f->servers, &(struct servers_newcomer){ &record, 3, 500 }, registered, f),
        ERR_OK);
    run(f);
    assert_int_equal(f->outcome, SERVERS_NOT_REGISTERED);

    assert_int_equal(etcd_process_restart(&process, 0), ERR_OK);
    assert_int_equal(renew_until_sure(f, f->other, incarnation), SERVERS_ALIVE);
}

static void claimed(void *user, enum servers_claim claim)
{
    struct fixture *f = user;

    CHECK(claim == (f->generation > 0 ? SERVERS_CLAIM_NEVER : SERVERS_CLAIM_GONE));
    f->done = --f->claims == 0;
}

static enum servers_claim claim(struct fixture *f, const char *key, uint64_t revision)
{
    const struct servers_claimant claimant = { { 9, revision }, key, WAIT_MS, f->generation };
    enum servers_claim claim = servers_claim(f->servers, &claimant, claimed, f);

    f->claims += claim == SERVERS_CLAIM_PENDING;
    return claim;
}

/* Of registrations that there never were: a key that asks for many keeps no other from etcd. */
static void one_key_has_so_many_questions_to_etcd_at_once(void **state)
{
    struct fixture *f = *state;
    uint64_t revision = 1;

    for (; revision <= SERVERS_CLAIMS_MAX; revision++)
        assert_int_equal(claim(f, "greedy", revision), SERVERS_CLAIM_PENDING);
    assert_int_equal(claim(f, "greedy", revision), SERVERS_CLAIM_UNSURE);
    assert_int_equal(claim(f, "modest", revision), SERVERS_CLAIM_PENDING);
    run(f);
    assert_int_equal(claim(f, "greedy", revision), SERVERS_CLAIM_PENDING);
    servers_cancel(f->servers, f); /* Its place comes back, too. */
    f->claims = 0;
    for (; revision <= 2 * SERVERS_CLAIMS_MAX; revision++)
        assert_int_equal(claim(f, "greedy", revision), SERVERS_CLAIM_PENDING);
    run(f);
    /* All who call without a key are as one, and theirs come back as well. */
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < SERVERS_CLAIMS_MAX; i++)
            assert_int_equal(claim(f, "", revision++), SERVERS_CLAIM_PENDING);
        assert_int_equal(claim(f, "", revision), SERVERS_CLAIM_UNSURE);
        run(f);
    }
}

/* Incarnations rise: one that is to come has nothing that a shard could know of it. */
static void one_that_is_to_come_was_never_registered(void **state)
{
    struct fixture *f = *state;

    f->generation = 8; /* The cluster's; 9 is asked for. */
    assert_int_equal(claim(f, "", 1), SERVERS_CLAIM_PENDING);
    run(f);
    f->generation = 9;
    assert_int_equal(claim(f, "", UINT64_MAX / 2), SERVERS_CLAIM_PENDING);
    run(f);
    f->generation = 0; /* Not known. */
    assert_int_equal(claim(f, "", UINT64_MAX / 2), SERVERS_CLAIM_PENDING);
    run(f);
}

static bool writes_its_registration(void *user)
{
    return ((const struct fixture *)user)->servers->tasks.next->incarnation.revision != 0;
}

/* Of a call that went away. The second registration stands behind the first in etcd's log. */
static void a_registration_is_given_up_while_etcd_writes_it(void **state)
{
    struct fixture *f = *state;
    const struct server_record record = { .name = "leaver", .ttl_ms = TTL_MS };

    assert_int_equal(servers_register(f->servers, &(struct servers_newcomer){ &record, 3, WAIT_MS },
                                      registered, f),
                     ERR_OK);
    const struct incarnation none = { 0 };
    assert_true(loop_run_until(f->loop, writes_its_registration, f, WAIT_MS));
    servers_cancel(f->servers, f);
    assert_memory_equal(&f->incarnation, &none, sizeof none);
    (void)do_register(f);
    assert_int_equal(servers_stats(f->servers).registered, 1);
}

static void one_key_registers_so_many_servers(void **state)
{
    const struct server_record mine = { .name = "a", .key = "greedy", .ttl_ms = TTL_MS };
    struct fixture *f = *state;

    for (uint64_t revision = 1; revision <= SERVERS_KEY_MAX; revision++) {
        assert_true(servers_has_room(f->servers, "greedy"));
        servers_remember(f->servers, (struct incarnation){ 9, revision }, &mine);
    }
    assert_false(servers_has_room(f->servers, "greedy"));
    assert_true(servers_has_room(f->servers, "modest"));
    assert_true(servers_has_room(f->servers, ""));
    servers_remember(f->servers, (struct incarnation){ 9, 7 }, &mine); /* Again: no more. */
    servers_forget(f->servers, (struct incarnation){ 9, 7 });
    assert_true(servers_has_room(f->servers, "greedy"));
    servers_remember(f->servers, (struct incarnation){ 9, 7 }, &mine);
    assert_false(servers_has_room(f->servers, "greedy"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_registration_is_live_and_known_under_a_growing_incarnation),
        TEST(any_router_renews_and_not_more_than_once_a_second),
        TEST(a_router_knows_the_names_of_servers_it_met),
        TEST(a_lapsed_lease_is_replaced_while_known_is_live),
        TEST(two_routers_that_reattach_at_once_agree_on_one_lease),
        TEST(an_expiring_or_unknown_server_is_gone),
        TEST(an_unregistered_server_is_marked_and_cannot_come_back),
        TEST(one_key_has_so_many_questions_to_etcd_at_once),
        TEST(one_that_is_to_come_was_never_registered),
        TEST(a_registration_is_given_up_while_etcd_writes_it),
        TEST(one_key_registers_so_many_servers),
        TEST(no_more_are_registered_than_a_cluster_may_have),
        TEST(without_etcd_renewals_are_unsure_and_then_do_not_wait),
    };
    return cmocka_run_group_tests(tests, start_etcd, stop_etcd);
}
