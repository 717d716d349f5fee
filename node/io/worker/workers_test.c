#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pthread.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "holdfast/internal/v1/node.pb-c.h"
#include "holdfast/v1/ledger.pb-c.h"
#include "idl/method.h"
#include "node/io/worker/workers.h"
#include "node/rpc/handlers.h"
#include "runtime/base/check.h"
#include "runtime/base/id.h"
#include "runtime/base/test_directory.h"

/* Three workers, six shards with one replica each: every worker has two, the first on the loop of
 * this thread. */
#define SELF      7u
#define WORKERS   3u
#define SHARDS    6u
#define GRANTS    40u
#define CALLS_MAX 4096u
#define WAIT_MS   60000u

struct fixture {
    struct loop *loop;
    struct log log;
    struct node_log *store_log;
    struct db *db;
    struct shard_views *views;
    struct workers *workers;
    pthread_t thread; /* This one. */
    char directory[TEST_DIRECTORY_BYTES];
    uint32_t answers, answers_wanted;
    uint32_t ok, not_owner;
    uint32_t roles;
    uint64_t next_call[SHARDS]; /* Grants: the greatest answered one of each shard. */
    bool out_of_order;
    uint32_t ids;
    struct buf body;
};

static void log_nothing(void *sink, enum log_level level, const char *event,
                        const struct log_field *fields)
{
    (void)sink;
    (void)level;
    (void)event;
    (void)fields;
}

/* ---- callbacks: all on the test's thread ---- */

static void on_send(void *user, uint64_t replica, const struct rep_message *message,
                    const uint8_t *trace)
{
    (void)trace;
    (void)user;
    (void)replica;
    (void)message;
}

static void on_send_encoded(void *user, uint64_t replica, struct slice bytes, const uint8_t *trace)
{
    (void)trace;
    (void)user;
    (void)replica;
    (void)bytes;
}

/* A call's number is 1000 times its place in the shard's order, plus its shard. */
static void on_answer(void *user, uint64_t call, const struct shard_reply *reply, struct slice body)
{
    struct fixture *f = user;
    uint32_t shard = (uint32_t)(call % 1000);

    assert_true(pthread_equal(f->thread, pthread_self()));
    f->answers++;
    f->ok += reply->status == REPLY_OK;
    f->not_owner += reply->status == REPLY_NOT_OWNER;
    f->out_of_order |= call / 1000 <= f->next_call[shard];
    f->next_call[shard] = call / 1000;
    buf_clear(&f->body);
    buf_append(&f->body, body.data, body.size);
}

static void on_role_changed(void *user, uint32_t shard)
{
    struct fixture *f = user;

    (void)shard;
    assert_true(pthread_equal(f->thread, pthread_self()));
    f->roles++;
}

static void on_damaged(void *user, uint32_t shard, const char *text)
{
    (void)user;
    (void)shard;
    fail_msg("%s", text);
}

/* ---- the node around them ---- */

static void open_store(struct fixture *f)
{
    char text[DB_TEXT_BYTES] = "";
    char path[2][96];
    struct node_log_config log = node_log_config_default();
    struct db_config db = db_config_default();

    snprintf(path[0], sizeof path[0], "%s/log", f->directory);
    snprintf(path[1], sizeof path[1], "%s/db", f->directory);
    log.directory = path[0];
    log.replica_id = SELF;
    log.shard_count = SHARDS;
    log.segment_bytes = 4u * 1024 * 1024;
    log.bytes_max = 64u * 1024 * 1024;
    log.log = &f->log;
    db.directory = path[1];
    db.log = &f->log;
    assert_int_equal(db_open(&db, &f->db, text), ERR_OK);
    assert_int_equal(node_log_open(&log, &f->store_log), ERR_OK);
}

static void start(struct fixture *f)
{
    bool damaged = true;
    struct workers_options options = {
        .worker = { .log = &f->log,
                    .handlers = node_handlers(),
                    .self = SELF,
                    .shard_count = SHARDS,
                    .limits = shard_limits_default(),
                    .cache_bytes = 16u * 1024 * 1024,
                    .resident_max_bytes = 1, /* Always given back. */
                    .checkpoint_interval_ms = 100,
                    .tick_ms = 5,
                    .loads_max = 8,
                    .ops = { .send = on_send,
                             .answer = on_answer,
                             .role_changed = on_role_changed,
                             .damaged = on_damaged },
                    .user = f },
        .send_encoded = on_send_encoded,
        .count = WORKERS,
        .calls_max = CALLS_MAX,
    };

    assert_int_equal(loop_new(&f->loop), ERR_OK);
    open_store(f);
    f->views = shard_views_new(SHARDS);
    options.worker.loop = f->loop;
    options.worker.store_log = f->store_log;
    options.worker.db = f->db;
    options.worker.views = f->views;
    assert_int_equal(workers_new(&options, &f->workers, &damaged), ERR_OK);
    assert_false(damaged);
}

static void stop(struct fixture *f)
{
    workers_free(f->workers);
    shard_views_free(f->views);
    node_log_close(f->store_log);
    db_close(f->db);
    loop_free(f->loop);
}

static bool all_serve(void *user)
{
    struct fixture *f = user;
    struct shard_view view;

    for (uint32_t shard = 0; shard < SHARDS; shard++) {
        if (!shard_views_find(f->views, shard, &view) || !view.serving)
            return false;
    }
    return true;
}

static bool all_answered(void *user)
{
    const struct fixture *f = user;
    return f->answers >= f->answers_wanted;
}

static err ask(struct fixture *f, uint64_t number, uint32_t method, struct slice bytes)
{
    const struct worker_request request = {
        .shard = (uint32_t)(number % 1000),
        .method = method,
        .call = number,
        .deadline_ms = loop_now_ms(f->loop) + WAIT_MS,
        .bytes = bytes,
        .arrived_ns = loop_clock_ns(),
        .trace = { 0xab, 0xcd },
    };

    return workers_call(f->workers, &request);
}

static void call(struct fixture *f, uint64_t number, uint32_t method,
                 const ProtobufCMessage *request)
{
    struct buf bytes = { 0 };
    size_t size = protobuf_c_message_get_packed_size(request);

    protobuf_c_message_pack(request, buf_reserve(&bytes, size));
    bytes.size = size;
    f->answers_wanted++;
    assert_int_equal(ask(f, number, method, buf_slice(&bytes)), ERR_OK);
    buf_deinit(&bytes);
}

static void wait_answers(struct fixture *f)
{
    assert_true(loop_run_until(f->loop, all_answered, f, WAIT_MS));
}

static void own(struct fixture *f, uint32_t shard, uint64_t epoch)
{
    struct rep_record record = { .generation = epoch,
                                 .epoch = epoch,
                                 .owner = SELF,
                                 .membership = { .config = 1, .count = 1, .members = { SELF } } };
    workers_record(f->workers, shard, &record);
}

static void apply_policies(struct fixture *f)
{
    Holdfast__Internal__V1__ApplyPolicyRequest request =
        HOLDFAST__INTERNAL__V1__APPLY_POLICY_REQUEST__INIT;
    Holdfast__V1__Policy policy = HOLDFAST__V1__POLICY__INIT;
    Holdfast__V1__CurrencyPolicy gold = HOLDFAST__V1__CURRENCY_POLICY__INIT;
    Holdfast__V1__CurrencyPolicy *currencies[] = { &gold };

    gold.name = "gold";
    policy.version = 1;
    policy.n_currencies = 1;
    policy.currencies = currencies;
    request.policy = &policy;
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        call(f, 1000 + shard, METHOD_APPLY_POLICY, &request.base);
    wait_answers(f);
    assert_int_equal(f->ok, SHARDS);
}

/* The `place`-th call of the shard: one more gold for its one player. */
static void grant(struct fixture *f, uint32_t shard, uint64_t place)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__CurrencyAmount gold = HOLDFAST__V1__CURRENCY_AMOUNT__INIT;
    Holdfast__V1__CurrencyAmount *currencies[] = { &gold };
    char id[UUID_TEXT_SIZE];
    uint8_t random[10] = { 0 };

    store_u32(random + 4, ++f->ids); /* Bits of earlier bytes give way to the version. */
    struct uuid uuid = uuid_v7_make(loop_wall_ms(), random);
    uuid_print(&uuid, id);
    gold.currency = "gold";
    gold.amount = 1;
    request.player_id = "42";
    request.op_id = id;
    request.authority = "system:payments";
    request.n_currencies = 1;
    request.currencies = currencies;
    call(f, place * 1000 + shard, METHOD_GRANT, &request.base);
}

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);
    char path[96];

    f->thread = pthread_self();
    f->log = (struct log){ .write = log_nothing, .level_min = LOG_ERROR };
    test_directory_make("workers", f->directory);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", f->directory, i == 0 ? "log" : "db");
        assert_int_equal(mkdir(path, 0700), 0);
    }
    start(f);
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        own(f, shard, 1);
    assert_true(loop_run_until(f->loop, all_serve, f, WAIT_MS));
    apply_policies(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    stop(f);
    test_directory_remove(f->directory);
    buf_deinit(&f->body);
    free(f);
    return 0;
}

static void grant_everywhere(struct fixture *f)
{
    for (uint64_t place = 2; place < 2 + GRANTS; place++) {
        for (uint32_t shard = 0; shard < SHARDS; shard++)
            grant(f, shard, place);
    }
}

static void calls_to_every_worker_are_answered_here_in_the_order_of_their_shard(void **state)
{
    struct fixture *f = *state;

    grant_everywhere(f);
    wait_answers(f);
    assert_int_equal(f->answers, f->answers_wanted);
    assert_int_equal(f->ok, f->answers_wanted);
    assert_false(f->out_of_order);
    assert_true(f->roles >= SHARDS);
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        assert_int_equal(f->next_call[shard], 1 + GRANTS);
}

static int64_t balance_after_next_grant(struct fixture *f, uint32_t shard, uint64_t place)
{
    grant(f, shard, place);
    wait_answers(f);
    Holdfast__V1__GrantResponse *response =
        holdfast__v1__grant_response__unpack(NULL, f->body.size, f->body.data);
    assert_non_null(response);
    int64_t balance = response->balances[0]->amount;
    holdfast__v1__grant_response__free_unpacked(response, NULL);
    return balance;
}

static void what_was_answered_is_there_after_a_checkpoint_and_a_restart(void **state)
{
    struct fixture *f = *state;
    struct shard_view view;

    grant_everywhere(f);
    wait_answers(f);
    workers_checkpoint_all(f->workers);
    stop(f);
    start(f);
    for (uint32_t shard = 0; shard < SHARDS; shard++) {
        assert_true(shard_views_find(f->views, shard, &view));
        own(f, shard, 2);
    }
    assert_true(loop_run_until(f->loop, all_serve, f, WAIT_MS));
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        assert_int_equal(balance_after_next_grant(f, shard, 2 + GRANTS), GRANTS + 1);
}

static void a_stop_with_calls_under_way_ends_and_answers_nothing_more(void **state)
{
    struct fixture *f = *state;
    uint32_t answers = f->answers;

    grant_everywhere(f);
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        workers_cancel(f->workers, shard, 2000 + shard);
    stop(f);
    assert_int_equal(f->answers, answers);
    start(f);
}

static void a_shard_that_is_not_held_is_answered_not_owner_or_refused_at_once(void **state)
{
    struct fixture *f = *state;

    stop(f);
    f->answers = f->answers_wanted = 0;
    test_directory_remove(f->directory);
    assert_int_equal(mkdir(f->directory, 0700), 0);
    for (int i = 0; i < 2; i++) {
        char path[96];
        snprintf(path, sizeof path, "%s/%s", f->directory, i == 0 ? "log" : "db");
        assert_int_equal(mkdir(path, 0700), 0);
    }
    start(f);
    assert_int_equal(ask(f, 1000, METHOD_GRANT, (struct slice){ 0 }), ERR_NOT_FOUND);
    f->answers_wanted = 1;
    assert_int_equal(ask(f, 1001, METHOD_GRANT, (struct slice){ 0 }), ERR_OK);
    wait_answers(f);
    assert_int_equal(f->not_owner, 1);
}

static void calls_beyond_the_limit_are_refused_and_the_others_answered(void **state)
{
    struct fixture *f = *state;
    struct slice nonsense = SLICE_LITERAL("\xff");
    uint32_t taken = 0;

    f->answers_wanted = f->answers;
    while (ask(f, (2 + taken) * 1000ull + 1, METHOD_GRANT, nonsense) == ERR_OK)
        taken++;
    assert_int_equal(taken, CALLS_MAX);
    f->answers_wanted += taken;
    wait_answers(f);
    assert_int_equal(workers_message(f->workers, 3, nonsense, NULL), ERR_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            calls_to_every_worker_are_answered_here_in_the_order_of_their_shard, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_answered_is_there_after_a_checkpoint_and_a_restart,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_stop_with_calls_under_way_ends_and_answers_nothing_more,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_shard_that_is_not_held_is_answered_not_owner_or_refused_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(calls_beyond_the_limit_are_refused_and_the_others_answered,
                                        setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
