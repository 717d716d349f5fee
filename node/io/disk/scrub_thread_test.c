/* The scrub's thread: it comes round, says what it found on the loop, and stops at once. */
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

#include "node/io/disk/scrub.h"
#include "runtime/base/check.h"
#include "runtime/base/test_directory.h"

#define ROWS        600u
#define VALUE_BYTES 1000u
#define WAIT_MS     60000u
#define STOP_MS_MAX 200u /* What a node that is told to stop may wait for it. */

static const struct log silent = { .level_min = LOG_ERROR + 1 };

struct test {
    char directory[TEST_DIRECTORY_BYTES];
    char db_path[80], log_path[80];
    struct loop *loop;
    struct db *db;
    struct node_log *store_log;
    struct scrub *scrub;
    uint32_t told;
    char text[DB_TEXT_BYTES];
};

static void on_damaged(void *user, uint32_t shard, const char *text)
{
    struct test *test = user;

    assert_int_equal(shard, 0);
    test->told++;
    snprintf(test->text, sizeof test->text, "%s", text);
}

static void open_db(struct test *test)
{
    struct db_config config = db_config_default();
    char text[DB_TEXT_BYTES];

    config.directory = test->db_path;
    config.log = &silent;
    assert_int_equal(db_open(&config, &test->db, text), ERR_OK);
}

static int setup(void **state)
{
    struct test *test = mem_zalloc(sizeof *test);
    struct node_log_config config = node_log_config_default();

    test_directory_make("scrub", test->directory);
    snprintf(test->db_path, sizeof test->db_path, "%s/db", test->directory);
    snprintf(test->log_path, sizeof test->log_path, "%s/log", test->directory);
    assert_int_equal(mkdir(test->db_path, 0700), 0);
    assert_int_equal(mkdir(test->log_path, 0700), 0);
    config.directory = test->log_path;
    config.replica_id = 1;
    config.shard_count = 4;
    config.segment_bytes = 4u * 1024u * 1024u;
    config.log = &silent;
    assert_int_equal(node_log_open(&config, &test->store_log), ERR_OK);
    open_db(test);
    assert_int_equal(loop_new(&test->loop), ERR_OK);
    *state = test;
    return 0;
}

static int teardown(void **state)
{
    struct test *test = *state;

    scrub_free(test->scrub);
    loop_free(test->loop);
    db_close(test->db);
    node_log_close(test->store_log);
    test_directory_remove(test->directory);
    free(test);
    return 0;
}

static void fill(struct test *test)
{
    struct blob *value = mem_zalloc(sizeof *value + VALUE_BYTES);
    struct state_write writes[ROWS];
    char keys[ROWS][16];
    uint32_t noise = 1;

    value->refs = 1;
    value->size = VALUE_BYTES;
    for (uint32_t i = 0; i < VALUE_BYTES; i++) {
        noise = noise * 1664525u + 1013904223u;
        value->bytes[i] = (uint8_t)(noise >> 24);
    }
    for (uint32_t i = 0; i < ROWS; i++) {
        snprintf(keys[i], sizeof keys[i], "p%06u", i);
        writes[i] = (struct state_write){ .key = slice_from_text(keys[i]), .value = value };
    }
    assert_int_equal(db_checkpoint_write(
                         test->db, &(struct db_checkpoint){ .writes = writes,
                                                            .write_count = ROWS,
                                                            .meta_row = slice_from_text("meta") }),
                     ERR_OK);
    free(value);
    assert_int_equal(db_flush(test->db), ERR_OK);
}

static void start(struct test *test, uint64_t period_ms, uint64_t rate_bytes_per_s)
{
    test->scrub = scrub_new(&(struct scrub_options){ .loop = test->loop,
                                                     .log = &silent,
                                                     .db = test->db,
                                                     .store_log = test->store_log,
                                                     .period_ms = period_ms,
                                                     .rate_bytes_per_s = rate_bytes_per_s,
                                                     .damaged = on_damaged,
                                                     .user = test });
}

/* Until it has read so much, and come so often to an end. */
static void wait_for(struct test *test, uint64_t bytes, uint64_t passes,
                     struct scrub_stats *ret_stats)
{
    for (uint32_t i = 0; i < WAIT_MS; i++) {
        scrub_stats_get(test->scrub, ret_stats);
        if (ret_stats->bytes >= bytes && ret_stats->passes >= passes)
            return;
        usleep(1000);
    }
    fail_msg("%llu bytes, %llu passes", (unsigned long long)ret_stats->bytes,
             (unsigned long long)ret_stats->passes);
}

static bool told(void *user)
{
    const struct test *test = user;

    return test->told > 0;
}

static void stop_promptly(struct test *test)
{
    uint64_t began_ns = loop_clock_ns();

    scrub_free(test->scrub);
    test->scrub = NULL;
    assert_in_range((loop_clock_ns() - began_ns) / 1000000u, 0, STOP_MS_MAX);
}

static void passes_come_round(void **state)
{
    struct test *test = *state;
    struct scrub_stats stats;

    scrub_stats_get(NULL, &stats);
    assert_int_equal(stats.passes, 0);
    fill(test);
    start(test, 160, 1024u * 1024u * 1024u);
    wait_for(test, 0, 3, &stats);
    assert_true(stats.bytes >= 3 * ROWS * VALUE_BYTES);
    assert_in_range(stats.last_pass_ms, loop_wall_ms() - WAIT_MS, loop_wall_ms());
    assert_int_equal(stats.damage, 0);
    assert_int_equal(test->told, 0);
}

static void it_stops_at_once_before_its_first_pass_and_amid_one(void **state)
{
    struct test *test = *state;
    struct scrub_stats stats;

    fill(test);
    start(test, 86400000, 1024u * 1024u);
    stop_promptly(test);
    start(test, 16, 64u * 1024u); /* Ten seconds for what there is. */
    wait_for(test, 1, 0, &stats);
    assert_int_equal(stats.passes, 0);
    assert_true(stats.bytes < ROWS * VALUE_BYTES);
    stop_promptly(test);
}

static void spoil_table(struct test *test)
{
    DIR *dir = opendir(test->db_path);
    char path[400] = "";

    for (struct dirent *item = readdir(dir); item != NULL; item = readdir(dir)) {
        if (strstr(item->d_name, ".sst") != NULL)
            snprintf(path, sizeof path, "%s/%s", test->db_path, item->d_name);
    }
    closedir(dir);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 1000, SEEK_SET), 0);
    int byte = fgetc(file);
    assert_int_equal(fseek(file, 1000, SEEK_SET), 0);
    assert_int_not_equal(fputc(byte ^ 1, file), EOF);
    assert_int_equal(fclose(file), 0);
}

static void damage_is_told_once_on_the_loop(void **state)
{
    struct test *test = *state;
    struct scrub_stats stats;
    char text[DB_TEXT_BYTES];

    fill(test);
    spoil_table(test);
    start(test, 160, 1024u * 1024u * 1024u);
    assert_true(loop_run_until(test->loop, told, test, WAIT_MS));
    assert_non_null(strstr(test->text, ".sst"));
    assert_true(db_damage(test->db, text));
    assert_string_equal(test->text, text);
    test->told = 0;
    assert_false(loop_run_until(test->loop, told, test, 400)); /* Two periods more. */
    scrub_stats_get(test->scrub, &stats);
    assert_int_equal(stats.damage, 1);
    assert_int_equal(stats.passes, 0);
    stop_promptly(test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(passes_come_round, setup, teardown),
        cmocka_unit_test_setup_teardown(it_stops_at_once_before_its_first_pass_and_amid_one, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(damage_is_told_once_on_the_loop, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
