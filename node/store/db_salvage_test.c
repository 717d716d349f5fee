/* What can be read of a damaged database is kept, and what cannot is said to be lost. */
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

#define SHARDS 6u
#define EMPTY  5u /* A shard without rows. */
#define ROWS   200u

struct test {
    char from[TEST_DIRECTORY_BYTES], to[TEST_DIRECTORY_BYTES];
    struct db_config config;
    char text[DB_TEXT_BYTES];
};

static int setup(void **state)
{
    struct test *test = mem_zalloc(sizeof *test);

    test_directory_make("damaged", test->from);
    test_directory_make("salvaged", test->to);
    test->config = db_config_default();
    test->config.rate_bytes_per_s = 0;
    *state = test;
    return 0;
}

static int teardown(void **state)
{
    struct test *test = *state;

    test_directory_remove(test->from);
    test_directory_remove(test->to);
    free(test);
    return 0;
}

static struct db *open_at(struct test *test, const char *directory)
{
    struct db *db = NULL;

    test->config.directory = directory;
    return db_open(&test->config, &db, test->text) == ERR_OK ? db : NULL;
}

static void write_shard(struct db *db, uint32_t shard)
{
    struct state_write writes[ROWS];
    char keys[ROWS][16];
    struct blob *value = mem_alloc(sizeof *value + 64);

    value->refs = 1;
    value->size = 64;
    memset(value->bytes, (int)('a' + shard), value->size);
    for (uint32_t i = 0; i < ROWS; i++) {
        snprintf(keys[i], sizeof keys[i], "p%06u", i);
        writes[i] = (struct state_write){ .key = slice_from_text(keys[i]), .value = value };
    }
    CHECK(db_checkpoint_write(db, &(struct db_checkpoint){ .shard = shard,
                                                           .writes = writes,
                                                           .write_count = ROWS,
                                                           .meta_row = slice_from_text("meta") }) ==
          ERR_OK);
    free(value);
}

static void fill(struct test *test)
{
    struct db *db = open_at(test, test->from);

    assert_non_null(db);
    for (uint32_t i = 0; i < SHARDS; i++) {
        if (i != EMPTY)
            write_shard(db, i);
    }
    db_close(db);
}

static void find_file(const struct test *test, const char *part, char ret_path[384])
{
    DIR *dir = opendir(test->from);

    ret_path[0] = '\0';
    for (struct dirent *item = readdir(dir); item != NULL; item = readdir(dir)) {
        if (strstr(item->d_name, part) != NULL)
            snprintf(ret_path, 384, "%s/%s", test->from, item->d_name);
    }
    closedir(dir);
    assert_true(ret_path[0] != '\0');
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

/* All of it, or nothing if it is lost. */
static void expect_shard(struct db *db, uint32_t shard, bool lost)
{
    struct db_rows rows = { 0 };
    struct buf meta = { 0 };
    bool there = !lost && shard != EMPTY;

    assert_int_equal(db_load_meta(db, shard, &meta), there ? ERR_OK : ERR_NOT_FOUND);
    assert_int_equal(db_load_prefix(db, shard, slice_from_text("p"), 9999, &rows), ERR_OK);
    assert_int_equal(rows.count, there ? ROWS : 0);
    for (uint32_t i = 0; i < rows.count; i++) {
        assert_int_equal(rows.rows[i].value.size, 64);
        assert_int_equal(rows.rows[i].value.data[63], 'a' + shard);
    }
    db_rows_deinit(&rows);
    buf_deinit(&meta);
}

/* Returns how many shards are lost; none is there in part. */
static uint32_t salvage(struct test *test)
{
    bool lost[SHARDS] = { false };
    struct db *damaged = open_at(test, test->from);
    struct db *to = open_at(test, test->to);
    uint32_t count = 0;

    assert_non_null(to);
    assert_int_equal(db_salvage(damaged, to, SHARDS, lost), ERR_OK);
    if (damaged != NULL)
        db_close(damaged);
    db_close(to);
    to = open_at(test, test->to);
    for (uint32_t i = 0; i < SHARDS; i++) {
        expect_shard(to, i, lost[i]);
        CHECK(db_drop_shard(to, i) == ERR_OK);
        count += lost[i];
    }
    db_close(to);
    return count;
}

static void a_whole_database_is_copied_whole(void **state)
{
    struct test *test = *state;

    fill(test);
    assert_int_equal(salvage(test), 0);
}

static void shards_beside_a_changed_byte_are_kept(void **state)
{
    struct test *test = *state;
    struct stat stat_buf;
    char path[384];
    uint32_t some = 0;

    fill(test);
    find_file(test, ".sst", path);
    assert_int_equal(stat(path, &stat_buf), 0);
    for (uint32_t i = 1; i < 40; i++) {
        long at = (long)stat_buf.st_size * (long)i / 40;

        flip(path, at);
        uint32_t lost = salvage(test);
        some += lost > 0 && lost < SHARDS;
        flip(path, at);
    }
    assert_true(some > 10);
}

static void of_one_that_does_not_open_nothing_is_left(void **state)
{
    struct test *test = *state;
    struct stat stat_buf;
    char path[384];

    fill(test);
    find_file(test, "MANIFEST", path);
    assert_int_equal(stat(path, &stat_buf), 0);
    flip(path, (long)stat_buf.st_size / 2);
    assert_int_equal(salvage(test), SHARDS);
}

/* A snapshot was about to take the shard's place: which rows count depends on the log. */
static void half_an_installation_is_lost(void **state)
{
    struct test *test = *state;
    bool lost[SHARDS];

    fill(test);
    struct db *db = open_at(test, test->from);
    assert_int_equal(db_stage_begin(db, 2), ERR_OK);
    assert_int_equal(db_stage_switch(db, 2, slice_from_text("other")), ERR_OK);
    struct db *to = open_at(test, test->to);
    assert_int_equal(db_salvage(db, to, SHARDS, lost), ERR_OK);
    for (uint32_t i = 0; i < SHARDS; i++) {
        assert_int_equal(lost[i], i == 2);
        expect_shard(to, i, lost[i]);
    }
    db_close(db);
    db_close(to);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_whole_database_is_copied_whole),
        TEST(shards_beside_a_changed_byte_are_kept),
        TEST(of_one_that_does_not_open_nothing_is_left),
        TEST(half_an_installation_is_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
