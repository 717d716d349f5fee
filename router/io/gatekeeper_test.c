#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "idl/error_code.h"
#include "router/io/gatekeeper.h"
#include "runtime/base/check.h"
#include "runtime/base/test_directory.h"
#include "runtime/etcd/etcd_process.h"
#include "runtime/jwt/jwt_vectors.h"
#include "runtime/loop/loop.h"

#define CLUSTER "gate"
#define WAIT_MS 60000

static struct etcd_process process;
static char directory[TEST_DIRECTORY_BYTES];

static const struct log silent = { .level_min = LOG_ERROR };

struct fixture {
    struct loop *loop;
    struct etcd *etcd;
    struct router_config config;
    struct key_feed *keys;
    struct player_keys *player_keys;
    struct player_gate *players;
    struct gatekeeper *gatekeeper;
    struct arena arena;
    uint64_t now_ms;
    uint64_t wall_ms;
    const char *text;   /* Of the key that is asked for. */
    const char *device; /* NULL: none is named. */
    bool done;
    Holdfast__V1__ErrorDetail detail;
    struct gatekeeper_guest guest;
};

static int start_etcd(void **state)
{
    char data[96];

    (void)state;
    test_directory_make("gatekeeper", directory);
    snprintf(data, sizeof data, "%s/etcd", directory);
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

static bool is_complete(void *user)
{
    return key_feed_complete(((struct fixture *)user)->keys);
}

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);
    const char *endpoint = process.endpoint;

    f->now_ms = 100000;
    f->wall_ms = 1000;
    f->config.failure_rate = 5;
    f->config.player_audience = "game";
    f->config.player_issuer = "";
    f->config.player_skew = 30000;
    f->config.player_token_share = 100;
    CHECK(loop_new(&f->loop) == ERR_OK);
    CHECK(etcd_new(&(struct etcd_options){ .loop = loop_uv(f->loop),
                                           .endpoints = &endpoint,
                                           .endpoint_count = 1,
                                           .log = &silent },
                   &f->etcd) == ERR_OK);
    CHECK(key_feed_new(
              &(struct key_feed_options){
                  .etcd = f->etcd, .cluster = CLUSTER, .seed = 1, .log = &silent },
              &f->keys) == ERR_OK);
    f->gatekeeper = gatekeeper_new(
        &(struct gatekeeper_options){ .config = &f->config, .keys = f->keys, .log = &silent });
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    gatekeeper_free(f->gatekeeper);
    player_gate_free(f->players);
    player_keys_free(f->player_keys);
    key_feed_free(f->keys);
    etcd_free(f->etcd);
    loop_free(f->loop);
    arena_deinit(&f->arena);
    free(f);
    return 0;
}

static err ask(struct fixture *f, enum method_id method, const char *key, const char *peer)
{
    holdfast__v1__error_detail__init(&f->detail);
    return gatekeeper_ask(
        f->gatekeeper,
        &(struct gatekeeper_visit){ .method = method_find(method),
                                    .api_key = slice_from_text(key),
                                    .device = slice_from_text(f->device != NULL ? f->device : ""),
                                    .peer = peer,
                                    .arena = &f->arena,
                                    .now_ms = f->now_ms,
                                    .wall_ms = f->wall_ms },
        &f->guest, &f->detail);
}

static err ask_again(struct fixture *f, enum method_id method, const char *key)
{
    holdfast__v1__error_detail__init(&f->detail);
    return gatekeeper_ask_again(f->gatekeeper,
                                &(struct gatekeeper_visit){ .method = method_find(method),
                                                            .api_key = slice_from_text(key),
                                                            .peer = "10.0.0.1:1",
                                                            .arena = &f->arena,
                                                            .now_ms = f->now_ms,
                                                            .wall_ms = f->wall_ms },
                                &f->guest, &f->detail);
}

static bool is_welcome(struct fixture *f, enum method_id method, const char *key)
{
    return gatekeeper_welcomes(f->gatekeeper,
                               &(struct gatekeeper_visit){ .method = method_find(method),
                                                           .api_key = slice_from_text(key),
                                                           .wall_ms = 1000 });
}

static void on_written(void *context, err e, const struct etcd_txn_result *result)
{
    struct fixture *f = context;

    (void)result;
    CHECK(e == ERR_OK);
    f->done = true;
}

static bool is_done(void *user)
{
    return ((struct fixture *)user)->done;
}

/* A key of the test's making, in text, and its record. */
static struct api_key_record record_of(uint8_t number, char ret_text[API_KEY_TEXT_SIZE])
{
    uint8_t secret[API_KEY_SECRET_BYTES] = { number };
    struct api_key_record record = { .name = "test", .scopes = SCOPE_PAYMENTS };

    api_key_print(secret, ret_text);
    api_key_digest(CLUSTER, secret, record.digest);
    api_key_id(record.digest, record.id);
    return record;
}

static void commit(struct fixture *f, struct etcd_txn *txn)
{
    f->done = false;
    CHECK(etcd_txn(f->etcd, txn, on_written, &(struct etcd_wait){ 0, f, NULL }) == ERR_OK);
    CHECK(loop_run_until(f->loop, is_done, f, WAIT_MS));
    etcd_txn_free(txn);
}

static void issue_value(struct fixture *f, const struct api_key_record *record, struct slice value)
{
    const struct cluster_key key = cluster_key_api_key(CLUSTER, record->id);
    struct etcd_txn *txn = etcd_txn_new();

    etcd_txn_put(txn, ETCD_THEN, cluster_key_slice(&key), value, 0);
    commit(f, txn);
}

static void issue(struct fixture *f, const struct api_key_record *record)
{
    struct buf json = { 0 };

    api_key_record_encode(record, &json);
    issue_value(f, record, buf_slice(&json));
    buf_deinit(&json);
}

static void take_back(struct fixture *f, const struct api_key_record *record)
{
    const struct cluster_key key = cluster_key_api_key(CLUSTER, record->id);
    struct etcd_txn *txn = etcd_txn_new();

    etcd_txn_delete(txn, ETCD_THEN, cluster_key_slice(&key));
    commit(f, txn);
}

static bool is_good(void *user)
{
    struct fixture *f = user;
    struct key_entry *entry;

    return key_table_find(key_feed_table(f->keys), slice_from_text(f->text), 1000, &entry) ==
           KEY_FOUND;
}

static bool is_bad(void *user)
{
    return !is_good(user);
}

static void await_good(struct fixture *f, const char *text)
{
    f->text = text;
    assert_true(loop_run_until(f->loop, is_good, f, WAIT_MS));
}

static void a_key_opens_its_scope_from_its_issue_to_its_revocation(void **state)
{
    struct fixture *f = *state;
    char text[API_KEY_TEXT_SIZE];
    struct api_key_record record = record_of(1, text);

    assert_int_equal(ask(f, METHOD_GRANT, text, "10.0.0.1:1"), ERR_PERMISSION);
    assert_int_equal(f->detail.code, CODE(UNAVAILABLE)); /* It may be good: not known yet. */
    assert_int_equal(ask_again(f, METHOD_GRANT, text), ERR_PERMISSION);
    assert_int_equal(f->detail.code, CODE(UNAVAILABLE));
    assert_true(loop_run_until(f->loop, is_complete, f, WAIT_MS));
    assert_int_equal(ask(f, METHOD_GRANT, text, "10.0.0.1:1"), ERR_PERMISSION);
    assert_int_equal(f->detail.code, CODE(UNAUTHENTICATED));
    issue(f, &record);
    await_good(f, text);
    assert_int_equal(ask(f, METHOD_GRANT, text, "10.0.0.1:1"), ERR_OK);
    assert_int_equal(f->guest.scopes, SCOPE_PAYMENTS);
    assert_true(is_welcome(f, METHOD_WATCH_INCIDENTS, text));
    assert_false(is_welcome(f, METHOD_SET_POLICY, text));
    assert_int_equal(ask(f, METHOD_SET_POLICY, text, "10.0.0.1:1"), ERR_PERMISSION);
    assert_int_equal(f->detail.code, CODE(PERMISSION_DENIED));
    assert_string_equal(f->detail.limit, "scope admin");
    take_back(f, &record);
    assert_true(loop_run_until(f->loop, is_bad, f, WAIT_MS));
    assert_false(is_welcome(f, METHOD_WATCH_INCIDENTS, text));
    assert_int_equal(ask(f, METHOD_GRANT, text, "10.0.0.1:1"), ERR_PERMISSION);
    assert_int_equal(f->detail.code, CODE(UNAUTHENTICATED));
    assert_int_equal(gatekeeper_refused(f->gatekeeper, GATEKEEPER_UNKNOWN_KEY), 2);
}

static void a_record_that_becomes_unreadable_closes_its_key(void **state)
{
    struct fixture *f = *state;
    char text[API_KEY_TEXT_SIZE];
    struct api_key_record record = record_of(2, text);

    issue(f, &record);
    await_good(f, text);
    issue_value(f, &record, SLICE_LITERAL("{}"));
    assert_true(loop_run_until(f->loop, is_bad, f, WAIT_MS));
    take_back(f, &record);
}

static void a_key_has_its_own_rate_or_the_routers(void **state)
{
    struct fixture *f = *state;
    char text[API_KEY_TEXT_SIZE];
    struct api_key_record record = record_of(3, text);

    f->config.key_rate = 3;
    record.rate_per_s = 2;
    issue(f, &record);
    await_good(f, text);
    for (int i = 0; i < 2; i++)
        assert_int_equal(ask(f, METHOD_GRANT, text, "10.0.0.1:1"), ERR_OK);
    assert_int_equal(f->guest.rate_per_s, 2);
    assert_int_equal(ask(f, METHOD_GRANT, text, "10.0.0.2:1"), ERR_PERMISSION);
    assert_int_equal(f->detail.code, CODE(THROTTLED));
    assert_int_equal(f->detail.retry_after_ms, 500);
    take_back(f, &record);
    assert_true(loop_run_until(f->loop, is_bad, f, WAIT_MS));
    record.rate_per_s = 0;
    issue(f, &record);
    await_good(f, text);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ask(f, METHOD_GRANT, text, "10.0.0.1:1"), ERR_OK);
    assert_int_equal(ask(f, METHOD_GRANT, text, "10.0.0.1:1"), ERR_PERMISSION);
    take_back(f, &record);
}

/* An IPv6 host has a whole /64, so that counts as one; the port never counts. */
static void an_address_has_a_rate(void **state)
{
    struct fixture *f = *state;
    char text[API_KEY_TEXT_SIZE];
    struct api_key_record record = record_of(4, text);

    f->config.address_rate = 2;
    issue(f, &record);
    await_good(f, text);
    assert_int_equal(ask(f, METHOD_GRANT, text, "10.0.0.1:1"), ERR_OK);
    assert_int_equal(ask(f, METHOD_GRANT, text, "10.0.0.1:2"), ERR_OK);
    assert_int_equal(ask(f, METHOD_GRANT, text, "10.0.0.1:3"), ERR_PERMISSION);
    assert_int_equal(f->detail.code, CODE(THROTTLED));
    assert_int_equal(ask(f, METHOD_GRANT, text, "10.0.0.2:1"), ERR_OK);
    assert_int_equal(ask(f, METHOD_GRANT, text, "[2001:db8::1]:1"), ERR_OK);
    assert_int_equal(ask(f, METHOD_GRANT, text, "[2001:db8::2:1]:1"), ERR_OK);
    assert_int_equal(ask(f, METHOD_GRANT, text, "[2001:db8::3]:1"), ERR_PERMISSION);
    assert_int_equal(ask(f, METHOD_GRANT, text, "[2001:db8:0:1::3]:1"), ERR_OK);
    /* IPv4, as a socket of both kinds names it: each address is one. */
    assert_int_equal(ask(f, METHOD_GRANT, text, "[::ffff:10.0.0.3]:1"), ERR_OK);
    assert_int_equal(ask(f, METHOD_GRANT, text, "[::ffff:10.0.0.3]:2"), ERR_OK);
    assert_int_equal(ask(f, METHOD_GRANT, text, "[::ffff:10.0.0.3]:3"), ERR_PERMISSION);
    assert_int_equal(ask(f, METHOD_GRANT, text, "[::ffff:10.0.0.4]:1"), ERR_OK);
    take_back(f, &record);
}

static void whoever_guesses_is_held_back_but_not_who_has_a_key(void **state)
{
    struct fixture *f = *state;
    char text[API_KEY_TEXT_SIZE], wrong[API_KEY_TEXT_SIZE];
    struct api_key_record record = record_of(5, text);

    (void)record_of(6, wrong);
    issue(f, &record);
    await_good(f, text);
    assert_int_equal(ask(f, METHOD_GRANT, text, "10.0.0.1:1"), ERR_OK);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(ask(f, METHOD_GRANT, i == 0 ? "" : wrong, "10.0.0.1:1"), ERR_PERMISSION);
        assert_int_equal(f->detail.code, CODE(UNAUTHENTICATED));
    }
    assert_int_equal(ask(f, METHOD_GRANT, wrong, "10.0.0.1:1"), ERR_PERMISSION);
    assert_int_equal(f->detail.code, CODE(THROTTLED));
    assert_true(f->detail.retry_after_ms > 0);
    assert_int_equal(ask(f, METHOD_GRANT, text, "10.0.0.1:1"), ERR_OK);
    assert_int_equal(ask(f, METHOD_GRANT, wrong, "10.0.0.2:1"), ERR_PERMISSION);
    assert_int_equal(f->detail.code, CODE(UNAUTHENTICATED));
    f->now_ms += 1000;
    assert_int_equal(ask(f, METHOD_GRANT, wrong, "10.0.0.1:1"), ERR_PERMISSION);
    assert_int_equal(f->detail.code, CODE(UNAUTHENTICATED));
    take_back(f, &record);
}

/* Other callers of its address fail all the time, and the keys change. */
static void a_key_is_let_in_whatever_others_of_its_address_do(void **state)
{
    struct fixture *f = *state;
    char old[API_KEY_TEXT_SIZE], changed[API_KEY_TEXT_SIZE], wrong[API_KEY_TEXT_SIZE];
    struct api_key_record old_record = record_of(7, old), record = record_of(8, changed);

    (void)record_of(9, wrong);
    issue(f, &old_record);
    await_good(f, old);
    assert_int_equal(ask(f, METHOD_GRANT, old, "10.0.0.1:1"), ERR_OK);
    for (int i = 0; i < 6; i++)
        assert_int_equal(ask(f, METHOD_GRANT, wrong, "10.0.0.1:1"), ERR_PERMISSION);
    assert_int_equal(f->detail.code, CODE(THROTTLED));
    issue(f, &record);
    await_good(f, changed);
    assert_int_equal(ask(f, METHOD_GRANT, old, "10.0.0.1:1"), ERR_OK);
    assert_int_equal(ask_again(f, METHOD_GRANT, changed), ERR_OK);
    take_back(f, &old_record);
    take_back(f, &record);
}

static void without_keys_everybody_is_let_in(void **state)
{
    struct fixture *f = *state;
    struct gatekeeper *open = gatekeeper_new(
        &(struct gatekeeper_options){ .config = &f->config, .keys = NULL, .log = &silent });
    struct gatekeeper *keys = f->gatekeeper;

    f->gatekeeper = open;
    assert_int_equal(ask(f, METHOD_SET_POLICY, "", "10.0.0.1:1"), ERR_OK);
    assert_int_equal(f->guest.scopes, SCOPES_ALL);
    f->gatekeeper = keys;
    gatekeeper_free(open);
}

/* ---- players ---- */

/* A file of that content in the test's directory, put there whole. */
static void put_file(const char *keys)
{
    char path[128], part[128];

    snprintf(path, sizeof path, "%s/players.json", directory);
    snprintf(part, sizeof part, "%s/players.part", directory);
    FILE *file = fopen(part, "w");
    CHECK(file != NULL && fprintf(file, "{\"keys\":[%s]}", keys) > 0 && fclose(file) == 0);
    CHECK(rename(part, path) == 0);
}

/* By this clock every signature takes a millisecond. */
static uint64_t signature_clock_ns(void)
{
    static uint64_t now_ns;

    now_ns += 1000000;
    return now_ns;
}

static void take_tokens(struct fixture *f, const char *keys)
{
    static char path[128];

    put_file(keys);
    snprintf(path, sizeof path, "%s/players.json", directory);
    CHECK(player_keys_new(
              &(struct player_keys_options){
                  .loop = f->loop, .log = &silent, .source = path, .ca = "" },
              &f->player_keys) == ERR_OK);
    f->players = player_gate_new(&f->config, f->player_keys, signature_clock_ns);
    gatekeeper_free(f->gatekeeper);
    f->gatekeeper = gatekeeper_new(&(struct gatekeeper_options){
        .config = &f->config, .keys = f->keys, .players = f->players, .log = &silent });
    f->wall_ms = PLAYER_ISSUED_S * 1000ull + 1000;
}

static void assert_denied(struct fixture *f, const char *token, Holdfast__V1__ErrorCode code,
                          const char *field)
{
    assert_int_equal(ask(f, METHOD_GET_BALANCES, token, "10.0.0.1:1"), ERR_PERMISSION);
    assert_int_equal(f->detail.code, code);
    assert_string_equal(f->detail.field, field);
}

static void a_players_token_opens_a_players_reads(void **state)
{
    static const char *const tokens[] = { PLAYER_HS256, PLAYER_RS256, PLAYER_ES256 };
    struct fixture *f = *state;

    take_tokens(f, PLAYER_SECRET "," PLAYER_RSA "," PLAYER_EC);
    for (size_t i = 0; i < ARRAY_SIZE(tokens); i++) {
        assert_int_equal(ask(f, METHOD_GET_BALANCES, tokens[i], "10.0.0.1:1"), ERR_OK);
        assert_string_equal(f->guest.player, "ada");
        assert_string_equal(f->guest.key_id, "player");
        assert_int_equal(f->guest.scopes, 0);
        assert_true(f->guest.key != 0 && f->guest.bucket == NULL && f->guest.authority == 0);
        assert_int_equal(ask(f, METHOD_GRANT, tokens[i], "10.0.0.1:1"), ERR_PERMISSION);
        assert_int_equal(f->detail.code, CODE(PERMISSION_DENIED));
        assert_string_equal(f->detail.field, "authorization");
        assert_false(is_welcome(f, METHOD_WATCH_INCIDENTS, tokens[i]));
    }
    assert_int_equal(gatekeeper_refused(f->gatekeeper, GATEKEEPER_PLAYER_METHOD), 3);
    assert_int_equal(player_gate_signatures(f->players), 3);
    assert_int_equal(player_gate_keys(f->players), 3);
}

static void a_token_that_has_expired_meanwhile_is_refused(void **state)
{
    struct fixture *f = *state;
    const struct gatekeeper_visit later = {
        .method = method_find(METHOD_GET_BALANCES),
        .api_key = SLICE_LITERAL(PLAYER_RS256),
        .peer = "10.0.0.1:1",
        .arena = &f->arena,
        .now_ms = f->now_ms,
        .wall_ms = (PLAYER_EXPIRES_S + 31) * 1000ull,
    };

    take_tokens(f, PLAYER_RSA);
    assert_int_equal(ask(f, METHOD_GET_BALANCES, PLAYER_RS256, "10.0.0.1:1"), ERR_OK);
    holdfast__v1__error_detail__init(&f->detail);
    assert_int_equal(gatekeeper_ask_again(f->gatekeeper, &later, &f->guest, &f->detail),
                     ERR_PERMISSION);
    assert_int_equal(f->detail.code, CODE(UNAUTHENTICATED));
    assert_string_equal(f->detail.field, "exp");
    assert_int_equal(player_gate_refused(f->players, JWT_EXPIRED), 1);
}

static void tokens_that_are_refused_spend_the_addresss_allowance(void **state)
{
    struct fixture *f = *state;

    take_tokens(f, PLAYER_RSA);
    assert_int_equal(ask(f, METHOD_GET_BALANCES, PLAYER_RS256, "10.0.0.1:1"), ERR_OK);
    for (int i = 0; i < 5; i++)
        assert_denied(f, PLAYER_ES256, CODE(UNAUTHENTICATED), "kid");
    assert_denied(f, PLAYER_ES256, CODE(THROTTLED), "");
    assert_true(f->detail.retry_after_ms > 0);
    assert_int_equal(gatekeeper_refused(f->gatekeeper, GATEKEEPER_PLAYER_TOKEN), 5);
    assert_int_equal(gatekeeper_refused(f->gatekeeper, GATEKEEPER_FAILURE_RATE), 1);
    assert_int_equal(player_gate_refused(f->players, JWT_UNKNOWN_KEY), 5);
    /* One that is remembered comes in; another address is another matter. */
    assert_int_equal(ask(f, METHOD_GET_BALANCES, PLAYER_RS256, "10.0.0.1:1"), ERR_OK);
    assert_int_equal(ask(f, METHOD_GET_BALANCES, PLAYER_ES256, "10.0.0.2:1"), ERR_PERMISSION);
    assert_int_equal(f->detail.code, CODE(UNAUTHENTICATED));
    assert_null(strstr(f->detail.message, "eyJ"));
}

/* Ten milliseconds of a second, five of them for addresses in doubt; each signature takes
 * one. The first of an address is no failure yet. */
static void signatures_have_a_share_of_the_loops_time(void **state)
{
    struct fixture *f = *state;
    char wrong[] = PLAYER_ES256;
    char *byte = &wrong[sizeof wrong - 12];

    f->config.player_token_share = 1;
    f->config.failure_rate = 1000;
    take_tokens(f, PLAYER_EC "," PLAYER_RSA);
    *byte = *byte == 'A' ? 'B' : 'A';
    for (unsigned i = 0; i < 1 + 5; i++)
        assert_denied(f, wrong, CODE(UNAUTHENTICATED), "signature");
    assert_denied(f, wrong, CODE(THROTTLED), "");
    assert_true(f->detail.retry_after_ms > 0);
    assert_int_equal(gatekeeper_refused(f->gatekeeper, GATEKEEPER_SIGNATURE_TIME), 1);
    assert_int_equal(player_gate_refused(f->players, JWT_SIGNATURE), 6);
    /* The other half is for other addresses. */
    assert_int_equal(ask(f, METHOD_GET_BALANCES, PLAYER_RS256, "10.0.0.2:1"), ERR_OK);
    for (unsigned i = 0; i < 3; i++) {
        char peer[24];
        snprintf(peer, sizeof peer, "10.0.1.%u:1", i);
        assert_int_equal(ask(f, METHOD_GET_BALANCES, wrong, peer), ERR_PERMISSION);
        assert_int_equal(f->detail.code, CODE(UNAUTHENTICATED));
    }
    assert_int_equal(ask(f, METHOD_GET_BALANCES, PLAYER_ES256, "10.0.0.3:1"), ERR_PERMISSION);
    assert_int_equal(f->detail.code, CODE(THROTTLED));
    assert_int_equal(ask(f, METHOD_GET_BALANCES, PLAYER_RS256, "10.0.0.1:1"), ERR_OK);
    f->now_ms += 1000;
    assert_int_equal(ask(f, METHOD_GET_BALANCES, PLAYER_ES256, "10.0.0.3:1"), ERR_OK);
    assert_int_equal(player_gate_signatures(f->players), 6 + 1 + 3 + 1);
}

/* An address that fails more slowly than its failure rate is in doubt all the same: it gets half.
 */
static void an_address_is_in_doubt_for_a_second_after_each_failure(void **state)
{
    struct fixture *f = *state;
    char wrong[] = PLAYER_ES256;
    char *byte = &wrong[sizeof wrong - 12];
    unsigned tries = 0;

    f->config.player_token_share = 1;
    f->config.failure_rate = 1000;
    take_tokens(f, PLAYER_EC "," PLAYER_RSA);
    *byte = *byte == 'A' ? 'B' : 'A';
    do {
        f->now_ms += 30;
        assert_int_equal(ask(f, METHOD_GET_BALANCES, wrong, "10.0.0.1:1"), ERR_PERMISSION);
    } while (f->detail.code == CODE(UNAUTHENTICATED) && ++tries < 100);
    assert_in_range(tries, 6, 8);
    assert_int_equal(ask(f, METHOD_GET_BALANCES, PLAYER_RS256, "10.0.0.2:1"), ERR_OK);
    f->now_ms += 10000; /* The doubt is over. */
    for (unsigned i = 0; i < 3; i++)
        assert_denied(f, wrong, CODE(UNAUTHENTICATED), "signature");
}

static void a_player_has_a_rate(void **state)
{
    struct fixture *f = *state;

    f->config.player_token_rate = 2;
    take_tokens(f, PLAYER_RSA "," PLAYER_EC);
    assert_int_equal(ask(f, METHOD_GET_BALANCES, PLAYER_RS256, "10.0.0.1:1"), ERR_OK);
    assert_int_equal(ask(f, METHOD_GET_BALANCES, PLAYER_ES256, "10.0.0.2:1"), ERR_OK);
    assert_denied(f, PLAYER_RS256, CODE(THROTTLED), "");
    assert_int_equal(f->detail.retry_after_ms, 500);
    assert_int_equal(gatekeeper_refused(f->gatekeeper, GATEKEEPER_PLAYER_RATE), 1);
}

static void players_writes_count_for_their_address_and_device(void **state)
{
    struct fixture *f = *state;

    f->config.player_address_writes = 3;
    f->config.player_device_writes = 2;
    take_tokens(f, PLAYER_RSA "," PLAYER_EC);
    f->device = "phone";
    assert_int_equal(ask(f, METHOD_FAVORITE, PLAYER_RS256, "[2001:db8::1]:1"), ERR_OK);
    assert_int_equal(ask(f, METHOD_UNFAVORITE, PLAYER_ES256, "[2001:db8::1]:2"), ERR_OK);
    assert_int_equal(ask(f, METHOD_FAVORITE, PLAYER_RS256, "10.0.0.1:1"), ERR_PERMISSION);
    assert_int_equal(f->detail.code, CODE(THROTTLED));
    assert_in_range(f->detail.retry_after_ms, 30000, 30060);
    assert_int_equal(gatekeeper_refused(f->gatekeeper, GATEKEEPER_DEVICE_WRITES), 1);
    f->device = NULL;
    assert_int_equal(ask(f, METHOD_FAVORITE, PLAYER_RS256, "[2001:db8::2]:1"), ERR_OK);
    assert_int_equal(ask(f, METHOD_FAVORITE, PLAYER_RS256, "[2001:db8::3]:1"), ERR_PERMISSION);
    assert_int_equal(f->detail.code, CODE(THROTTLED));
    assert_in_range(f->detail.retry_after_ms, 20000, 20060);
    assert_int_equal(gatekeeper_refused(f->gatekeeper, GATEKEEPER_ADDRESS_WRITES), 1);
    assert_int_equal(ask(f, METHOD_FAVORITE, PLAYER_RS256, "[2001:db9::3]:1"), ERR_OK);
    f->device = "phone"; /* Reads are not counted, and take no part of a limit that is spent. */
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(ask(f, METHOD_GET_BALANCES, PLAYER_RS256, "[2001:db8::1]:1"), ERR_OK);
}

static bool has_two_keys(void *user)
{
    return player_gate_keys(((struct fixture *)user)->players) == 2;
}

static bool has_failed(void *user)
{
    return player_keys_stats(((struct fixture *)user)->player_keys).failures > 0;
}

static void keys_in_a_file_are_followed(void **state)
{
    struct fixture *f = *state;

    take_tokens(f, PLAYER_RSA);
    assert_denied(f, PLAYER_ES256, CODE(UNAUTHENTICATED), "kid");
    put_file(PLAYER_EC "," PLAYER_SECRET);
    assert_true(loop_run_until(f->loop, has_two_keys, f, WAIT_MS));
    assert_int_equal(ask(f, METHOD_GET_BALANCES, PLAYER_ES256, "10.0.0.1:1"), ERR_OK);
    assert_denied(f, PLAYER_RS256, CODE(UNAUTHENTICATED), "kid");
    put_file("{");
    assert_true(loop_run_until(f->loop, has_failed, f, WAIT_MS));
    assert_int_equal(ask(f, METHOD_GET_BALANCES, PLAYER_HS256, "10.0.0.1:1"), ERR_OK);
}

static void without_keys_for_them_a_token_is_an_unknown_key(void **state)
{
    struct fixture *f = *state;

    assert_true(loop_run_until(f->loop, is_complete, f, WAIT_MS));
    assert_int_equal(ask(f, METHOD_GET_BALANCES, PLAYER_RS256, "10.0.0.1:1"), ERR_PERMISSION);
    assert_int_equal(f->detail.code, CODE(UNAUTHENTICATED));
    assert_int_equal(gatekeeper_refused(f->gatekeeper, GATEKEEPER_UNKNOWN_KEY), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_key_opens_its_scope_from_its_issue_to_its_revocation),
        TEST(a_record_that_becomes_unreadable_closes_its_key),
        TEST(a_key_has_its_own_rate_or_the_routers),
        TEST(an_address_has_a_rate),
        TEST(whoever_guesses_is_held_back_but_not_who_has_a_key),
        TEST(a_key_is_let_in_whatever_others_of_its_address_do),
        TEST(without_keys_everybody_is_let_in),
        TEST(a_players_token_opens_a_players_reads),
        TEST(a_token_that_has_expired_meanwhile_is_refused),
        TEST(tokens_that_are_refused_spend_the_addresss_allowance),
        TEST(signatures_have_a_share_of_the_loops_time),
        TEST(an_address_is_in_doubt_for_a_second_after_each_failure),
        TEST(a_player_has_a_rate),
        TEST(players_writes_count_for_their_address_and_device),
        TEST(keys_in_a_file_are_followed),
        TEST(without_keys_for_them_a_token_is_an_unknown_key),
    };
    return cmocka_run_group_tests(tests, start_etcd, stop_etcd);
}
