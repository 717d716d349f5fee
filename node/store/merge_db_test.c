/*
 * What is durable of the mergeable class: batches are whole or not there, SIGKILL takes nothing
 * that was acknowledged, a torn tail is dropped, other damage is told, and shards do not touch each
 * other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <rocksdb/c.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/store/merge_db.h"
#include "runtime/base/check.h"
#include "runtime/base/test_directory.h"

#define SHARDS 3u
#define ROUNDS 10u

static void ignore(void *sink, enum log_level level, const char *event,
                   const struct log_field *fields)
{
    (void)sink;
    (void)level;
    (void)event;
    (void)fields;
}
static const struct log quiet = { .write = ignore };

struct test {
    char directory[TEST_DIRECTORY_BYTES];
    char path[TEST_DIRECTORY_BYTES + 16];
    struct merge_db *db;
    char text[MERGE_DB_TEXT_BYTES];
};

static void must_open(struct test *test)
{
    if (merge_db_open(test->path, &quiet, &test->db, test->text) != ERR_OK)
        fail_msg("%s", test->text);
}

static void close_db(struct test *test)
{
    merge_db_close(test->db);
    test->db = NULL;
}

static int setup(void **state)
{
    struct test *test = mem_zalloc(sizeof *test);

    test_directory_make("merge_db", test->directory);
    snprintf(test->path, sizeof test->path, "%s/mergeable", test->directory);
    *state = test;
    return 0;
}

static int teardown(void **state)
{
    struct test *test = *state;

    close_db(test);
    test_directory_remove(test->directory);
    free(test);
    return 0;
}

/* ---- what a shard has: a number as its state, the same in a row; numbered log records ---- */

struct found {
    uint64_t state, row, members;
    uint64_t log_first, log_last; /* 0: none. */
    bool gap;
};

static uint64_t number_of(struct slice value)
{
    struct reader reader = reader_from(value);

    return read_u64_be(&reader);
}

static void on_members(void *user, struct slice members)
{
    ((struct found *)user)->members = number_of(members);
}

static void on_state(void *user, struct slice state)
{
    ((struct found *)user)->state = number_of(state);
}

static void on_row(void *user, struct slice key, struct slice row)
{
    assert_true(slice_equal(key, SLICE_LITERAL("row")));
    ((struct found *)user)->row = number_of(row);
}

static void on_log(void *user, uint64_t number, struct slice record)
{
    struct found *found = user;

    assert_int_equal(number_of(record), number);
    found->gap |= found->log_last != 0 && number != found->log_last + 1;
    if (found->log_first == 0)
        found->log_first = number;
    found->log_last = number;
}

static err read_shard(struct test *test, uint32_t shard, struct found *ret_found)
{
    *ret_found = (struct found){ 0 };
    return merge_db_read(test->db, shard,
                         &(struct merge_db_visit){ .members = on_members,
                                                   .state = on_state,
                                                   .row = on_row,
                                                   .log = on_log,
                                                   .user = ret_found });
}

static struct slice bytes_of(uint64_t number, uint8_t ret_bytes[8])
{
    struct buf bytes = { 0 };

    buf_put_u32_be(&bytes, (uint32_t)(number >> 32));
    buf_put_u32_be(&bytes, (uint32_t)number);
    memcpy(ret_bytes, bytes.data, 8);
    buf_deinit(&bytes);
    return (struct slice){ ret_bytes, 8 };
}

static void add_log(struct merge_batch *batch, uint32_t shard, uint64_t number)
{
    uint8_t bytes[8];

    merge_batch_log(batch, shard, number, bytes_of(number, bytes));
}

static void add_checkpoint(struct merge_batch *batch, uint32_t shard, uint64_t number)
{
    uint8_t bytes[8];

    merge_batch_state(batch, shard, bytes_of(number, bytes));
    merge_batch_row(batch, shard, SLICE_LITERAL("row"), bytes_of(number, bytes));
    merge_batch_cut(batch, shard, number + 1);
}

static void write_one(struct test *test, void (*add)(struct merge_batch *, uint32_t, uint64_t),
                      uint32_t shard, uint64_t number)
{
    struct merge_batch *batch = merge_batch_new();

    add(batch, shard, number);
    merge_db_write(test->db, batch);
    merge_batch_free(batch);
}

/* ---- tests ---- */

static void a_checkpoint_takes_its_log_away_and_leaves_other_shards_alone(void **state)
{
    struct test *test = *state;
    struct found found;
    bool has;

    assert_false(merge_db_exists(test->path));
    must_open(test);
    for (uint64_t i = 1; i <= 5; i++) {
        write_one(test, add_log, 1, i);
        write_one(test, add_log, 2, i);
    }
    write_one(test, add_checkpoint, 1, 3);
    close_db(test);
    assert_true(merge_db_exists(test->path));
    must_open(test);
    assert_int_equal(read_shard(test, 1, &found), ERR_OK);
    assert_int_equal(found.state, 3);
    assert_int_equal(found.row, 3);
    assert_int_equal(found.log_first, 4);
    assert_int_equal(found.log_last, 5);
    assert_int_equal(read_shard(test, 2, &found), ERR_OK);
    assert_int_equal(found.state, 0);
    assert_int_equal(found.log_first, 1);
    assert_int_equal(merge_db_has(test->db, 0, &has), ERR_OK);
    assert_false(has);
    assert_int_equal(merge_db_has(test->db, 2, &has), ERR_OK);
    assert_true(has);
    assert_false(merge_db_lost(test->db));
}

static void a_dropped_shard_is_gone_and_its_neighbours_are_not(void **state)
{
    struct test *test = *state;
    struct merge_batch *batch = merge_batch_new();
    struct found found;
    bool has;

    must_open(test);
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        write_one(test, add_checkpoint, shard, 7);
    merge_batch_drop(batch, 1);
    merge_db_write(test->db, batch);
    merge_batch_free(batch);
    assert_int_equal(merge_db_has(test->db, 1, &has), ERR_OK);
    assert_false(has);
    for (uint32_t shard = 0; shard < SHARDS; shard += 2) {
        assert_int_equal(read_shard(test, shard, &found), ERR_OK);
        assert_int_equal(found.row, 7);
    }
}

/* The latest log file of RocksDB. */
static void wal_path(const struct test *test, char ret_path[512])
{
    DIR *directory = opendir(test->path);
    char latest[256] = "";

    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        size_t size = strlen(entry->d_name);
        if (size > 4 && strcmp(entry->d_name + size - 4, ".log") == 0 &&
            strcmp(entry->d_name, latest) > 0)
            snprintf(latest, sizeof latest, "%s", entry->d_name);
    }
    closedir(directory);
    assert_true(latest[0] != 0);
    snprintf(ret_path, 512, "%s/%s", test->path, latest);
}

/* A child that writes without closing: what a killed process leaves. */
static void leave_records(struct test *test, uint64_t count)
{
    int status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        must_open(test);
        for (uint64_t i = 1; i <= count; i++)
            write_one(test, add_log, 0, i);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void a_torn_tail_is_dropped(void **state)
{
    struct test *test = *state;
    struct found found;
    struct stat size;
    char path[512];

    leave_records(test, 20);
    wal_path(test, path);
    assert_int_equal(stat(path, &size), 0);
    assert_int_equal(truncate(path, size.st_size - 5), 0);
    must_open(test);
    assert_int_equal(read_shard(test, 0, &found), ERR_OK);
    assert_int_equal(found.log_first, 1);
    assert_int_equal(found.log_last, 19);
}

/* Batches that were acknowledged stand behind what cannot be read. */
static void damage(struct test *test)
{
    struct stat size;
    char path[512];

    leave_records(test, 3000);
    wal_path(test, path);
    assert_int_equal(stat(path, &size), 0);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, size.st_size / 2, SEEK_SET), 0);
    for (int i = 0; i < 40; i++)
        fputc(0x5a, file);
    fclose(file);
}

static void damage_in_the_middle_is_told_and_a_new_database_says_so_for_ever(void **state)
{
    struct test *test = *state;

    damage(test);
    for (int i = 0; i < 2; i++) /* To look at it changes nothing. */
        assert_int_equal(merge_db_open(test->path, &quiet, &test->db, test->text), ERR_CORRUPT);
    assert_int_equal(merge_db_begin_again(test->path, &quiet, &test->db, test->text), ERR_OK);
    assert_true(merge_db_lost(test->db));
    close_db(test);
    must_open(test);
    assert_true(merge_db_lost(test->db));
}

static void forbid_files(bool forbid)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = forbid ? 3 : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* The next start finds what is damaged, or what says that it was: not an empty one. */
static void a_replacement_that_fails_is_tried_again(void **state)
{
    struct test *test = *state;

    damage(test);
    forbid_files(true);
    assert_int_equal(merge_db_begin_again(test->path, &quiet, &test->db, test->text), ERR_IO);
    forbid_files(false);
    assert_true(merge_db_exists(test->path));
    assert_int_equal(merge_db_open(test->path, &quiet, &test->db, test->text), ERR_CORRUPT);
    assert_int_equal(merge_db_begin_again(test->path, &quiet, &test->db, test->text), ERR_OK);
    assert_true(merge_db_lost(test->db));
}

/* A crash between the two renames: the damaged one stands aside, the new one is not in its place.
 */
static void a_replacement_that_is_made_takes_its_place_at_the_next_start(void **state)
{
    struct test *test = *state;
    char beside[TEST_DIRECTORY_BYTES + 32];

    damage(test);
    assert_int_equal(merge_db_begin_again(test->path, &quiet, &test->db, test->text), ERR_OK);
    close_db(test);
    snprintf(beside, sizeof beside, "%s.new", test->path);
    assert_int_equal(rename(test->path, beside), 0);
    assert_true(merge_db_exists(test->path));
    must_open(test);
    assert_true(merge_db_lost(test->db));
}

static void put_raw(const struct test *test, struct slice key, struct slice value)
{
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_writeoptions_t *write_options = rocksdb_writeoptions_create();
    char *error = NULL;
    rocksdb_t *rocks = rocksdb_open(options, test->path, &error);

    assert_null(error);
    rocksdb_put(rocks, write_options, (const char *)key.data, key.size, (const char *)value.data,
                value.size, &error);
    assert_null(error);
    rocksdb_close(rocks);
    rocksdb_writeoptions_destroy(write_options);
    rocksdb_options_destroy(options);
}

static void a_count_of_batches_that_cannot_be_read_is_damage(void **state)
{
    struct test *test = *state;
    const uint8_t key[] = { 0xff, 0xff, 'N' };

    must_open(test);
    close_db(test);
    put_raw(test, (struct slice){ key, sizeof key }, SLICE_LITERAL("four"));
    assert_int_equal(merge_db_open(test->path, &quiet, &test->db, test->text), ERR_CORRUPT);
}

/* ---- SIGKILL ---- */

struct ack {
    uint64_t number;
    uint32_t shard;
};

static void run_child(struct test *test, int pipe_end, const uint64_t *last)
{
    uint64_t next[SHARDS];

    alarm(300);
    must_open(test);
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        next[shard] = last[shard] + 1;
    for (uint32_t turn = 0;; turn++) {
        uint32_t shard = turn % SHARDS;
        struct ack ack = { .number = next[shard], .shard = shard };

        write_one(test, turn % 17 == 5 ? add_checkpoint : add_log, shard, next[shard]++);
        CHECK(write(pipe_end, &ack, sizeof ack) == sizeof ack);
    }
}

static void look(struct test *test, uint64_t *last, const uint64_t *acked)
{
    must_open(test);
    for (uint32_t shard = 0; shard < SHARDS; shard++) {
        struct found found;

        assert_int_equal(read_shard(test, shard, &found), ERR_OK);
        assert_false(found.gap);
        assert_int_equal(found.row, found.state);
        if (found.log_first != 0)
            assert_int_equal(found.log_first, found.state + 1);
        last[shard] = found.log_last > found.state ? found.log_last : found.state;
        assert_true(last[shard] >= acked[shard]);
    }
    close_db(test);
}

static void every_acknowledged_batch_survives_sigkill(void **state)
{
    struct test *test = *state;
    uint64_t last[SHARDS] = { 0 }, acked[SHARDS] = { 0 };

    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct ack ack;
        uint32_t count = 0;
        int ends[2];
        int status;

        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            close(ends[0]);
            run_child(test, ends[1], last);
        }
        close(ends[1]);
        while (read(ends[0], &ack, sizeof ack) == sizeof ack) {
            acked[ack.shard] = ack.number;
            if (++count == 11 + round * 37)
                assert_int_equal(kill(child, SIGKILL), 0);
        }
        close(ends[0]);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        look(test, last, acked);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_checkpoint_takes_its_log_away_and_leaves_other_shards_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(a_dropped_shard_is_gone_and_its_neighbours_are_not, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_torn_tail_is_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(
            damage_in_the_middle_is_told_and_a_new_database_says_so_for_ever, setup, teardown),
        cmocka_unit_test_setup_teardown(a_replacement_that_fails_is_tried_again, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_replacement_that_is_made_takes_its_place_at_the_next_start, setup, teardown),
        cmocka_unit_test_setup_teardown(a_count_of_batches_that_cannot_be_read_is_damage, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(every_acknowledged_batch_survives_sigkill, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
