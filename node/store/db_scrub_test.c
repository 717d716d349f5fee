/* A pass in steps finds what the disk changed in cold rows, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/store/db.h"
#include "runtime/base/check.h"
#include "runtime/base/test_directory.h"

#define SHARDS      4u
#define ROWS        500u
#define VALUE_BYTES 200u
#define STEP_BYTES  10000u

struct test {
    char directory[TEST_DIRECTORY_BYTES];
    struct db_config config;
    struct db *db;
    atomic_bool stop;
};

static void open_db(struct test *test)
{
    char text[DB_TEXT_BYTES];

    assert_int_equal(db_open(&test->config, &test->db, text), ERR_OK);
}

static void reopen(struct test *test)
{
    db_close(test->db);
    open_db(test);
}

static int setup(void **state)
{
    struct test *test = mem_zalloc(sizeof *test);

    test_directory_make("scrub", test->directory);
    test->config = db_config_default();
    test->config.rate_bytes_per_s = 0;
    test->config.directory = test->directory;
    atomic_init(&test->stop, false);
    open_db(test);
    *state = test;
    return 0;
}

static int teardown(void **state)
{
    struct test *test = *state;

    db_close(test->db);
    test_directory_remove(test->directory);
    free(test);
    return 0;
}

/* Values that do not compress, so that rows fill many blocks. */
static void write_shard(struct test *test, uint32_t shard)
{
    struct state_write writes[ROWS];
    char keys[ROWS][16];
    struct blob *values[ROWS];
    uint32_t noise = shard + 1;

    for (uint32_t i = 0; i < ROWS; i++) {
        values[i] = mem_alloc(sizeof *values[i] + VALUE_BYTES);
        values[i]->refs = 1;
        values[i]->size = VALUE_BYTES;
        for (uint32_t k = 0; k < VALUE_BYTES; k++) {
            noise = noise * 1664525u + 1013904223u;
            values[i]->bytes[k] = (uint8_t)(noise >> 24);
        }
        snprintf(keys[i], sizeof keys[i], "p%06u", i);
        writes[i] = (struct state_write){ .key = slice_from_text(keys[i]), .value = values[i] };
    }
    CHECK(db_checkpoint_write(
              test->db, &(struct db_checkpoint){ .shard = shard,
                                                 .writes = writes,
                                                 .write_count = ROWS,
                                                 .meta_row = slice_from_text("meta") }) == ERR_OK);
    for (uint32_t i = 0; i < ROWS; i++)
        free(values[i]);
}

static void fill(struct test *test)
{
    for (uint32_t i = 0; i < SHARDS; i++)
        write_shard(test, i);
    assert_int_equal(db_flush(test->db), ERR_OK);
}

/* The only table there is. */
static void find_table(const struct test *test, char ret_path[384], long *ret_bytes)
{
    DIR *dir = opendir(test->directory);
    uint32_t count = 0;
    struct stat stat_of;

    for (struct dirent *item = readdir(dir); item != NULL; item = readdir(dir)) {
        if (strstr(item->d_name, ".sst") == NULL)
            continue;
        snprintf(ret_path, 384, "%s/%s", test->directory, item->d_name);
        count++;
    }
    closedir(dir);
    assert_int_equal(count, 1);
    assert_int_equal(stat(ret_path, &stat_of), 0);
    *ret_bytes = (long)stat_of.st_size;
}

static void flip(const char *path, long at)
{
    FILE *file = fopen(path, "r+b");

    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    int byte = fgetc(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_not_equal(fputc(byte ^ 0x20, file), EOF);
    assert_int_equal(fclose(file), 0);
}

static err scrub(struct test *test, uint32_t *ret_steps, uint64_t *ret_bytes)
{
    struct db_scrub pass;
    uint32_t steps = 0;
    err e = ERR_OK;

    db_scrub_begin(test->db, &pass, &test->stop);
    while (e == ERR_OK && !pass.complete) {
        e = db_scrub_step(test->db, &pass, STEP_BYTES, &test->stop);
        steps++;
    }
    if (ret_steps != NULL)
        *ret_steps = steps;
    if (ret_bytes != NULL)
        *ret_bytes = pass.row_bytes;
    db_scrub_deinit(&pass);
    return e;
}

static void read_shard(struct test *test, uint32_t shard)
{
    struct db_rows rows = { 0 };

    assert_int_equal(db_load_prefix(test->db, shard, slice_from_text("p"), ROWS, &rows), ERR_OK);
    assert_int_equal(rows.count, ROWS);
    db_rows_deinit(&rows);
}

/* ---- what is whole --------------------------------------------------------------------------- */

static void a_whole_database_passes_in_small_steps(void **state)
{
    struct test *test = *state;
    char text[DB_TEXT_BYTES];
    uint32_t steps;
    uint64_t bytes;

    assert_int_equal(scrub(test, &steps, &bytes), ERR_OK); /* An empty one. */
    assert_int_equal(steps, 1);
    assert_int_equal(bytes, 0);
    fill(test);
    write_shard(test, SHARDS); /* Not in a file yet. */
    assert_int_equal(scrub(test, &steps, &bytes), ERR_OK);
    assert_true(bytes > (SHARDS + 1) * ROWS * VALUE_BYTES);
    assert_true(bytes < (SHARDS + 1) * ROWS * (VALUE_BYTES + 32));
    assert_in_range(steps, bytes / STEP_BYTES / 2, bytes / STEP_BYTES + 1);
    assert_false(db_damage(test->db, text));
}

static void files_that_go_between_steps_are_no_damage(void **state)
{
    struct test *test = *state;
    char text[DB_TEXT_BYTES];
    struct db_scrub pass;
    uint32_t rounds = 0;

    fill(test);
    db_scrub_begin(test->db, &pass, &test->stop);
    while (!pass.complete) {
        assert_int_equal(db_scrub_step(test->db, &pass, STEP_BYTES, &test->stop), ERR_OK);
        if (rounds++ >= 40)
            continue;
        /* New files, until they are merged and the old ones go. */
        write_shard(test, rounds % SHARDS);
        assert_int_equal(db_flush(test->db), ERR_OK);
    }
    db_scrub_deinit(&pass);
    assert_true(rounds > 40);
    assert_false(db_damage(test->db, text));
}

static void a_step_stops_when_told_to(void **state)
{
    struct test *test = *state;
    struct db_scrub pass;

    fill(test);
    db_scrub_begin(test->db, &pass, &test->stop);
    atomic_store(&test->stop, true);
    assert_int_equal(db_scrub_step(test->db, &pass, STEP_BYTES, &test->stop), ERR_OK);
    assert_false(pass.complete);
    assert_int_equal(pass.row_bytes, 0);
    db_scrub_deinit(&pass);
}

/* ---- what is not ----------------------------------------------------------------------------- */

static void expect_found(struct test *test, const char *path)
{
    char text[DB_TEXT_BYTES];

    assert_false(db_damage(test->db, text)); /* Nothing else has met it. */
    assert_int_equal(scrub(test, NULL, NULL), ERR_CORRUPT);
    assert_true(db_damage(test->db, text));
    assert_non_null(strstr(text, strrchr(path, '/')));
}

static void a_changed_byte_that_nobody_reads_is_found(void **state)
{
    struct test *test = *state;
    char path[384];
    long bytes;

    fill(test);
    find_table(test, path, &bytes);
    db_close(test->db);
    flip(path, bytes / 2);
    open_db(test);
    read_shard(test, 0); /* Far from it. */
    expect_found(test, path);
}

static void it_is_found_wherever_rows_are(void **state)
{
    struct test *test = *state;
    char path[384];
    long bytes;

    fill(test);
    find_table(test, path, &bytes);
    for (long at = 0; at < bytes * 9 / 10; at += bytes / 40) {
        flip(path, at);
        reopen(test);
        expect_found(test, path);
        flip(path, at);
    }
    reopen(test);
    assert_int_equal(scrub(test, NULL, NULL), ERR_OK);
}

static void what_memory_has_does_not_hide_it(void **state)
{
    struct test *test = *state;
    char path[384];
    long bytes;

    fill(test);
    find_table(test, path, &bytes);
    for (uint32_t i = 0; i < SHARDS; i++)
        read_shard(test, i);
    flip(path, bytes / 2);
    for (uint32_t i = 0; i < SHARDS; i++)
        read_shard(test, i); /* Out of the cache of blocks. */
    expect_found(test, path);
}

static void it_is_found_under_rows_that_were_dropped(void **state)
{
    struct test *test = *state;
    char path[384];
    long bytes;

    fill(test);
    find_table(test, path, &bytes);
    flip(path, bytes / 2);
    for (uint32_t i = 0; i < SHARDS; i++)
        assert_int_equal(db_drop_shard(test->db, i), ERR_OK);
    expect_found(test, path); /* A merge would meet it. */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_whole_database_passes_in_small_steps, setup, teardown),
        cmocka_unit_test_setup_teardown(files_that_go_between_steps_are_no_damage, setup, teardown),
        cmocka_unit_test_setup_teardown(a_step_stops_when_told_to, setup, teardown),
        cmocka_unit_test_setup_teardown(a_changed_byte_that_nobody_reads_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(it_is_found_wherever_rows_are, setup, teardown),
        cmocka_unit_test_setup_teardown(what_memory_has_does_not_hide_it, setup, teardown),
        cmocka_unit_test_setup_teardown(it_is_found_under_rows_that_were_dropped, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
