/* A replica that was removed drops its shard although the database has no room at first, also after
 * a new start. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <rocksdb/c.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "node/io/worker/workers.h"
#include "node/rpc/handlers.h"
#include "runtime/base/check.h"
#include "runtime/base/test_directory.h"

#define SHARD   1u
#define SHARDS  2u
#define SELF    7u
#define OTHER   8u
#define WAIT_MS 60000u

/* Which of the database's flushes find no room: bit n is the n-th. */
static atomic_uint full_flushes;
static atomic_uint flushes;

/* In place of the library's. */
void rocksdb_flush(rocksdb_t *db, const rocksdb_flushoptions_t *options, char **error)
{
    void (*flush)(rocksdb_t *, const rocksdb_flushoptions_t *, char **) = NULL;
    void *symbol = dlsym(RTLD_NEXT, "rocksdb_flush");

    if (atomic_load(&full_flushes) >> atomic_fetch_add(&flushes, 1) & 1u) {
        *error = strdup("IO error: No space left on device: while appending");
        return;
    }
    memcpy(&flush, &symbol, sizeof flush);
    flush(db, options, error);
}

struct fixture {
    char directory[TEST_DIRECTORY_BYTES];
    struct log log;
    struct loop *loop;
    struct node_log *store_log;
    struct db *db;
    struct shard_views *views;
    struct workers *workers;
    bool serves;
    uint32_t dropped, no_space;
};

static void on_log(void *sink, enum log_level level, const char *event,
                   const struct log_field *fields)
{
    struct fixture *f = sink;

    (void)level;
    (void)fields;
    f->dropped += strcmp(event, "shard.dropped") == 0;
    f->no_space += strcmp(event, "shard.snapshot_no_space") == 0;
}

static void on_send(void *user, uint64_t replica, const struct rep_message *message,
                    const uint8_t *trace)
{
    (void)user;
    (void)replica;
    (void)message;
    (void)trace;
}

static void on_send_encoded(void *user, uint64_t replica, struct slice bytes, const uint8_t *trace)
{
    (void)user;
    (void)replica;
    (void)bytes;
    (void)trace;
}

static void on_answer(void *user, uint64_t call, const struct shard_reply *reply, struct slice body)
{
    (void)user;
    (void)call;
    (void)reply;
    (void)body;
}

static void on_role_changed(void *user, uint32_t shard)
{
    struct fixture *f = user;

    f->serves |= shard == SHARD;
}

static void on_damaged(void *user, uint32_t shard, const char *text)
{
    (void)user;
    (void)shard;
    fail_msg("%s", text);
}

static void open_store(struct fixture *f)
{
    char text[DB_TEXT_BYTES] = "";
    char path[2][96];
    struct node_log_config log = node_log_config_default();
    struct db_config db = db_config_default();

    for (int i = 0; i < 2; i++) {
        (void)snprintf(path[i], sizeof path[i], "%s/%s", f->directory, i == 0 ? "log" : "db");
        assert_true(mkdir(path[i], 0700) == 0 || errno == EEXIST);
    }
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

/* The process starts, on what stands in the directory. */
static void start(struct fixture *f)
{
    bool damaged = true;

    assert_int_equal(loop_new(&f->loop), ERR_OK);
    open_store(f);
    f->views = shard_views_new(SHARDS);
    struct workers_options options = {
        .worker = { .loop = f->loop,
                    .log = &f->log,
                    .store_log = f->store_log,
                    .db = f->db,
                    .views = f->views,
                    .handlers = node_handlers(),
                    .self = SELF,
                    .shard_count = SHARDS,
                    .limits = shard_limits_default(),
                    .cache_bytes = 16u * 1024 * 1024,
                    .resident_max_bytes = UINT64_MAX,
                    .checkpoint_interval_ms = 10 * WAIT_MS,
                    .tick_ms = 5,
                    .loads_max = 8,
                    .ops = { .send = on_send,
                             .answer = on_answer,
                             .role_changed = on_role_changed,
                             .damaged = on_damaged },
                    .user = f },
        .send_encoded = on_send_encoded,
        .count = 1,
        .calls_max = 1,
    };
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

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);

    f->log = (struct log){ .write = on_log, .sink = f, .level_min = LOG_INFO };
    test_directory_make("worker_snapshot", f->directory);
    start(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    stop(f);
    atomic_store(&full_flushes, 0);
    test_directory_remove(f->directory);
    free(f);
    return 0;
}

static void record(struct fixture *f, uint64_t epoch, uint64_t member)
{
    const struct rep_record record = {
        .generation = 1,
        .epoch = epoch,
        .owner = member,
        .membership = { .config = epoch, .count = 1, .members = { member } },
    };

    workers_record(f->workers, SHARD, &record);
}

static bool is_serving(void *user)
{
    const struct fixture *f = user;
    return f->serves;
}

static bool is_dropped(void *user)
{
    const struct fixture *f = user;
    return f->dropped > 0;
}

/* The switch finds no room, and later the end of it. */
static void a_switch_waits_until_the_database_has_room(void **state)
{
    struct fixture *f = *state;

    record(f, 1, SELF);
    assert_true(loop_run_until(f->loop, is_serving, f, WAIT_MS));
    atomic_store(&flushes, 0);
    atomic_store(&full_flushes, 1u << 0 | 1u << 2);
    record(f, 2, OTHER);
    assert_true(loop_run_until(f->loop, is_dropped, f, WAIT_MS));
    assert_int_equal(f->no_space, 2);
    assert_int_equal(atomic_load(&flushes), 4);
}

static bool is_switching(void *user)
{
    (void)user;
    return atomic_load(&flushes) > 0;
}

/* It was stopped before the end of the switch, and started with no room for it. */
static void a_start_in_mid_switch_waits_until_the_database_has_room(void **state)
{
    struct fixture *f = *state;

    record(f, 1, SELF);
    assert_true(loop_run_until(f->loop, is_serving, f, WAIT_MS));
    atomic_store(&flushes, 0);
    record(f, 2, OTHER);
    assert_true(loop_run_until(f->loop, is_switching, f, WAIT_MS));
    stop(f);
    atomic_store(&flushes, 0);
    atomic_store(&full_flushes, 1u << 0 | 1u << 1);
    start(f);
    assert_int_equal(f->no_space, 2);
    assert_int_equal(f->dropped, 0);
    assert_false(db_reset_due(f->db, SHARD));
}

static bool is_swept(void *user)
{
    struct fixture *f = user;
    return db_stage_is_empty(f->db, SHARD);
}

/* An attempt of an earlier life, which the disk or the end of its process cut short. */
static void what_a_snapshot_left_aside_is_dropped_at_the_next_start(void **state)
{
    struct fixture *f = *state;
    struct buf rows = { 0 };

    stop(f);
    assert_int_equal(loop_new(&f->loop), ERR_OK);
    open_store(f);
    buf_put_bytes(&rows, SLICE_LITERAL("x"));
    buf_put_bytes(&rows, SLICE_LITERAL("left aside"));
    assert_int_equal(db_stage_put(f->db, SHARD, buf_slice(&rows)), ERR_OK);
    buf_deinit(&rows);
    assert_false(db_stage_is_empty(f->db, SHARD));
    node_log_close(f->store_log);
    db_close(f->db);
    loop_free(f->loop);
    start(f);
    assert_true(loop_run_until(f->loop, is_swept, f, WAIT_MS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_switch_waits_until_the_database_has_room, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_a_snapshot_left_aside_is_dropped_at_the_next_start,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_start_in_mid_switch_waits_until_the_database_has_room,
                                        setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
