/* A data directory belongs to one cluster, one replica and one process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/store/datadir.h"
#include "runtime/base/check.h"
#include "runtime/base/test_directory.h"

#define CLUSTER_A "0190a0b0-0000-7000-8000-00000000000a"
#define CLUSTER_B "0190a0b0-0000-7000-8000-00000000000b"

struct test {
    char root[TEST_DIRECTORY_BYTES];
    char path[80];
    struct datadir_config config;
    char text[DATADIR_ERROR_BYTES];
};

static int setup(void **state)
{
    struct test *test = mem_zalloc(sizeof *test);

    test_directory_make("datadir", test->root);
    snprintf(test->path, sizeof test->path, "%s/node", test->root);
    test->config = (struct datadir_config){
        .path = test->path, .cluster_id = CLUSTER_A, .new_replica_id = 42, .shard_count = 64
    };
    *state = test;
    return 0;
}

static int teardown(void **state)
{
    struct test *test = *state;

    test_directory_remove(test->root);
    free(test);
    return 0;
}

static struct datadir *must_open(struct test *test)
{
    struct datadir *dir = NULL;

    if (datadir_open(&test->config, &dir, test->text) != ERR_OK)
        fail_msg("%s", test->text);
    return dir;
}

static void expect_refused(struct test *test, err expected, const char *first, const char *second)
{
    struct datadir *dir = NULL;

    assert_int_equal(datadir_open(&test->config, &dir, test->text), expected);
    assert_null(dir);
    if (strstr(test->text, first) == NULL || strstr(test->text, second) == NULL)
        fail_msg("the text lacks \"%s\" or \"%s\": %s", first, second, test->text);
}

static void the_replica_id_is_minted_once(void **state)
{
    struct test *test = *state;
    struct datadir *dir = must_open(test);
    struct stat stat_buf;

    assert_int_equal(datadir_identity_get(dir)->replica_id, 42);
    assert_int_equal(stat(datadir_log_path(dir), &stat_buf), 0);
    assert_int_equal(stat(datadir_db_path(dir), &stat_buf), 0);
    datadir_close(dir);
    test->config.new_replica_id = 43;
    dir = must_open(test);
    assert_int_equal(datadir_identity_get(dir)->replica_id, 42);
    assert_string_equal(datadir_identity_get(dir)->cluster_id, CLUSTER_A);
    datadir_close(dir);
}

static void a_second_process_is_told_who_holds_it(void **state)
{
    struct test *test = *state;
    int ready[2], finish[2];
    char byte = 0;

    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(finish), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct datadir *dir = NULL;

        close(finish[1]);
        if (datadir_open(&test->config, &dir, test->text) != ERR_OK)
            _exit(1);
        if (write(ready[1], "r", 1) != 1)
            _exit(2);
        _exit(read(finish[0], &byte, 1) < 0);
    }
    char pid[32];
    close(ready[1]);
    close(finish[0]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    snprintf(pid, sizeof pid, "process %ld", (long)child);
    expect_refused(test, ERR_CONFLICT, pid, test->path);
    test->text[0] = 0;
    assert_true(datadir_is_held(test->path, test->text));
    assert_non_null(strstr(test->text, pid));
    close(finish[1]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 0);
    /* Its death releases the directory. */
    assert_false(datadir_is_held(test->path, test->text));
    assert_false(datadir_is_held("/nonexistent", test->text));
    datadir_close(must_open(test));
    close(ready[0]);
}

static void another_clusters_directory_is_refused(void **state)
{
    struct test *test = *state;

    datadir_close(must_open(test));
    test->config.cluster_id = CLUSTER_B;
    expect_refused(test, ERR_PERMISSION, CLUSTER_A, CLUSTER_B);
    test->config.cluster_id = CLUSTER_A;
    test->config.shard_count = 128;
    expect_refused(test, ERR_PERMISSION, "64", "128");
}

static void bad_configuration_is_named(void **state)
{
    struct test *test = *state;

    test->config.cluster_id = "not-a-uuid";
    expect_refused(test, ERR_INVALID, "cluster_id", "not-a-uuid");
    test->config.cluster_id = CLUSTER_A;
    test->config.shard_count = 5000;
    expect_refused(test, ERR_INVALID, "shard_count", "5000");
    test->config.shard_count = 64;
    test->config.path = "/nonexistent/a/b";
    expect_refused(test, ERR_IO, "/nonexistent/a/b", "No such file");
}

static void any_changed_byte_of_the_identity_is_refused(void **state)
{
    struct test *test = *state;
    struct datadir *dir = must_open(test);
    char path[128];
    char text[1024];

    assert_int_equal(datadir_note_etcd(dir, 3, 0xfedcba9876543210u, 77), ERR_OK);
    datadir_close(dir);
    snprintf(path, sizeof path, "%s/IDENTITY", test->path);
    int fd = open(path, O_RDWR);
    ssize_t size = pread(fd, text, sizeof text, 0);
    assert_true(size > 100);
    for (ssize_t at = 0; at < size; at++) {
        char changed = (char)(text[at] ^ 4);

        assert_int_equal(pwrite(fd, &changed, 1, at), 1);
        expect_refused(test, ERR_CORRUPT, "IDENTITY", test->path);
        assert_int_equal(pwrite(fd, &text[at], 1, at), 1);
    }
    assert_int_equal(ftruncate(fd, 0), 0);
    expect_refused(test, ERR_CORRUPT, "IDENTITY", test->path);
    close(fd);
}

static void a_lost_identity_beside_data_is_not_minted_anew(void **state)
{
    struct test *test = *state;
    char path[128];

    datadir_close(must_open(test));
    snprintf(path, sizeof path, "%s/IDENTITY", test->path);
    assert_int_equal(unlink(path), 0);
    datadir_close(must_open(test));

    assert_int_equal(unlink(path), 0);
    snprintf(path, sizeof path, "%s/log/0000000001.seg", test->path);
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
    expect_refused(test, ERR_CORRUPT, "IDENTITY is missing", test->path);
}

static void what_was_seen_of_etcd_survives_and_never_goes_back(void **state)
{
    struct test *test = *state;
    struct datadir *dir = must_open(test);

    assert_int_equal(datadir_note_etcd(dir, 1, 500, 10), ERR_OK);
    assert_int_equal(datadir_note_etcd(dir, 1, 500, 20), ERR_OK);
    assert_int_equal(datadir_note_etcd(dir, 1, 500, 19), ERR_CONFLICT);
    assert_int_equal(datadir_note_etcd(dir, 1, 501, 30), ERR_CONFLICT);
    assert_int_equal(datadir_note_etcd(dir, 0, 500, 30), ERR_CONFLICT);
    datadir_close(dir);
    dir = must_open(test);
    assert_int_equal(datadir_identity_get(dir)->etcd_revision, 20);
    assert_int_equal(datadir_identity_get(dir)->etcd_cluster_id, 500);
    /* A restored etcd was accepted: a new generation may start anywhere. */
    assert_int_equal(datadir_note_etcd(dir, 2, 501, 3), ERR_OK);
    assert_int_equal(datadir_identity_get(dir)->generation, 2);
    datadir_close(dir);
}

static void put_file(const struct test *test, const char *name, const char *text)
{
    char path[160];

    snprintf(path, sizeof path, "%s/%s", test->path, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fputs(text, file) < 0, 0);
    assert_int_equal(fclose(file), 0);
}

static bool has_file(const struct test *test, const char *name)
{
    char path[160];

    snprintf(path, sizeof path, "%s/%s", test->path, name);
    return access(path, F_OK) == 0;
}

static void a_damaged_database_is_remembered_until_another_takes_its_place(void **state)
{
    struct test *test = *state;
    struct datadir *dir = must_open(test);

    put_file(test, "db/1.sst", "damaged");
    assert_int_equal(datadir_damage_get(dir), DATADIR_WHOLE);
    assert_int_equal(datadir_note_damage(dir), ERR_OK);
    datadir_close(dir);
    dir = must_open(test);
    assert_int_equal(datadir_damage_get(dir), DATADIR_DAMAGED);
    assert_int_equal(datadir_salvage_begin(dir, test->text), ERR_OK);
    put_file(test, "db.salvage/1.sst", "half");
    assert_int_equal(datadir_salvage_begin(dir, test->text), ERR_OK);
    assert_false(has_file(test, "db.salvage/1.sst"));
    put_file(test, "db.salvage/2.sst", "whole");
    assert_int_equal(datadir_salvage_switch(dir, test->text), ERR_OK);
    assert_int_equal(datadir_damage_get(dir), DATADIR_WHOLE);
    assert_false(has_file(test, "db/1.sst") || has_file(test, "DAMAGE"));
    assert_false(has_file(test, "db.salvage"));
    assert_true(has_file(test, "db/2.sst"));
    datadir_close(dir);
}

/* A crash came while the new database took the place of the old one. */
static void what_was_salvaged_takes_the_place_at_the_next_open(void **state)
{
    struct test *test = *state;
    struct datadir *dir = must_open(test);

    assert_int_equal(datadir_note_damage(dir), ERR_OK);
    assert_int_equal(datadir_salvage_begin(dir, test->text), ERR_OK);
    datadir_close(dir);
    put_file(test, "db/1.sst", "damaged");
    put_file(test, "db.salvage/2.sst", "whole");
    put_file(test, "DAMAGE", "salvaged\n");
    dir = must_open(test); /* Nothing was done yet. */
    assert_true(has_file(test, "db/2.sst") && !has_file(test, "db/1.sst"));
    assert_int_equal(datadir_damage_get(dir), DATADIR_WHOLE);
    datadir_close(dir);
    put_file(test, "DAMAGE", "salvaged\n");
    dir = must_open(test); /* All was done but to say so. */
    assert_true(has_file(test, "db/2.sst") && !has_file(test, "DAMAGE"));
    datadir_close(dir);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_replica_id_is_minted_once),
        TEST(a_second_process_is_told_who_holds_it),
        TEST(another_clusters_directory_is_refused),
        TEST(bad_configuration_is_named),
        TEST(any_changed_byte_of_the_identity_is_refused),
        TEST(a_lost_identity_beside_data_is_not_minted_anew),
        TEST(what_was_seen_of_etcd_survives_and_never_goes_back),
        TEST(a_damaged_database_is_remembered_until_another_takes_its_place),
        TEST(what_was_salvaged_takes_the_place_at_the_next_open),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
