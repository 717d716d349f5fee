#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/backup/repository_verify.h"
#include "client/backup/shard_reader.h"
#include "client/backup/shard_writer.h"
#include "runtime/base/check.h"
#include "runtime/base/test_directory.h"

#define SHARDS 2u

struct test {
    char path[TEST_DIRECTORY_BYTES];
    struct repository repository;
    struct backup_error why;
};

static int set_up(void **state)
{
    struct test *test = mem_zalloc(sizeof *test);

    test_directory_make("backup", test->path);
    test->repository.lock = -1;
    *state = test;
    return 0;
}

static int tear_down(void **state)
{
    struct test *test = *state;

    repository_close(&test->repository);
    test_directory_remove(test->path);
    free(test);
    return 0;
}

static void add_row(struct buf *rows, uint32_t number, const char *value)
{
    char key[32];
    struct buf text = { 0 };

    snprintf(key, sizeof key, "p%08u", number);
    buf_printf(&text, "%s of %u, and what else a player has", value, number);
    buf_put_bytes(rows, slice_from_text(key));
    buf_put_bytes(rows, buf_slice(&text));
    buf_deinit(&text);
}

/* Rows 0 to `count`, of which those from `changed` on, twenty, have another value. */
struct content {
    uint32_t count, changed;
};

static void write_shard(struct test *test, struct manifest *manifest, uint32_t shard,
                        struct content content, const struct chunk_list *before)
{
    const struct shard_writer_options options = { &test->repository,
                                                  { manifest->number, { shard, BACKUP_STATE } },
                                                  before };
    struct shard_writer *writer;
    struct buf rows = { 0 };

    assert_int_equal(shard_writer_new(&options, &writer, &test->why), ERR_OK);
    for (uint32_t i = 0; i < content.count; i++) {
        bool changed = i >= content.changed && i < content.changed + 20;
        add_row(&rows, i, changed ? "another" : "a value");
        if (i % 100 == 0 || i + 1 == content.count) {
            assert_int_equal(shard_writer_put(writer, buf_slice(&rows), &test->why), ERR_OK);
            buf_clear(&rows);
        }
    }
    assert_int_equal(shard_writer_finish(writer, SLICE_LITERAL("meta"),
                                         &manifest->shards[shard].state, &test->why),
                     ERR_OK);
    shard_writer_free(writer);
    buf_deinit(&rows);
}

static void begin(struct test *test, uint64_t number, struct manifest *manifest)
{
    manifest_init(manifest, SHARDS);
    manifest->number = number;
    snprintf(manifest->cluster_id, sizeof manifest->cluster_id, "c");
    snprintf(manifest->software, sizeof manifest->software, "1");
    buf_printf(&manifest->policy, "{}");
    assert_int_equal(repository_begin(&test->repository, number, &test->why), ERR_OK);
}

static void commit(struct test *test, struct manifest *manifest)
{
    assert_int_equal(repository_commit(&test->repository, manifest, &test->why), ERR_OK);
    manifest_deinit(manifest);
}

static void open_again(struct test *test)
{
    repository_close(&test->repository);
    assert_int_equal(repository_open(test->path, &test->repository, &test->why), ERR_OK);
}

static void make_first(struct test *test, uint32_t rows)
{
    struct manifest manifest;

    assert_int_equal(repository_open_to_write(test->path, &test->repository, &test->why), ERR_OK);
    begin(test, 1, &manifest);
    for (uint32_t i = 0; i < SHARDS; i++)
        write_shard(test, &manifest, i, (struct content){ rows, UINT32_MAX - 100 }, NULL);
    commit(test, &manifest);
}

static void make_second(struct test *test, uint32_t rows, uint32_t changed)
{
    struct manifest first, manifest;
    struct chunk_list before;

    repository_close(&test->repository);
    assert_int_equal(repository_open_to_write(test->path, &test->repository, &test->why), ERR_OK);
    assert_int_equal(repository_manifest(&test->repository, 1, &first, &test->why), ERR_OK);
    begin(test, 2, &manifest);
    for (uint32_t i = 0; i < SHARDS; i++) {
        assert_int_equal(repository_list(&test->repository, &first,
                                         &(struct backup_part){ i, BACKUP_STATE }, &before,
                                         &test->why),
                         ERR_OK);
        write_shard(test, &manifest, i, (struct content){ rows, changed }, &before);
        chunk_list_deinit(&before);
    }
    manifest_add_use(&manifest, 1, first.checksum);
    commit(test, &manifest);
    manifest_deinit(&first);
}

static err verify(struct test *test, uint64_t number)
{
    struct verify_counts counts = { 0 };
    struct manifest manifest;
    err e = repository_verify(&test->repository, number, &manifest, &counts, &test->why);

    if (e == ERR_OK)
        manifest_deinit(&manifest);
    return e;
}

static void what_is_written_is_read_back(void **state)
{
    struct test *test = *state;
    struct manifest manifest;
    struct chunk_list list;
    struct shard_reader *reader;
    struct slice rows, key, value;
    uint32_t count = 0;

    make_first(test, 3000);
    open_again(test);
    assert_int_equal(verify(test, 1), ERR_OK);
    assert_int_equal(repository_manifest(&test->repository, 1, &manifest, &test->why), ERR_OK);
    assert_int_equal(shard_reader_new(&test->repository, &manifest,
                                      &(struct backup_part){ 1, BACKUP_STATE }, &reader,
                                      &test->why),
                     ERR_OK);
    assert_int_equal(repository_list(&test->repository, &manifest,
                                     &(struct backup_part){ 1, BACKUP_STATE }, &list, &test->why),
                     ERR_OK);
    assert_true(slice_equal(buf_slice(&list.meta), SLICE_LITERAL("meta")));
    chunk_list_deinit(&list);
    do {
        assert_int_equal(shard_reader_next(reader, &rows, &test->why), ERR_OK);
        struct reader each = reader_from(rows);
        while (backup_row_next(&each, &key, &value)) {
            struct buf wanted = { 0 };
            add_row(&wanted, count++, "a value");
            struct reader other = reader_from(buf_slice(&wanted));
            assert_true(slice_equal(read_bytes(&other, 100), key));
            assert_true(slice_equal(read_bytes(&other, 1000), value));
            buf_deinit(&wanted);
        }
    } while (rows.size > 0);
    assert_int_equal(count, 3000);
    shard_reader_free(reader);
    manifest_deinit(&manifest);
}

static void a_later_backup_has_only_what_changed(void **state)
{
    struct test *test = *state;
    struct manifest first, second;

    make_first(test, 20000);
    make_second(test, 20010, 7000);
    open_again(test);
    assert_int_equal(verify(test, 1), ERR_OK);
    assert_int_equal(verify(test, 2), ERR_OK);
    assert_int_equal(repository_manifest(&test->repository, 1, &first, &test->why), ERR_OK);
    assert_int_equal(repository_manifest(&test->repository, 2, &second, &test->why), ERR_OK);
    assert_int_equal(second.shards[0].state.rows.count, 20010);
    assert_in_range(second.shards[0].state.pack.bytes, 1, first.shards[0].state.pack.bytes / 20);
    manifest_deinit(&first);
    manifest_deinit(&second);
}

/* Every file of it, each byte by turns. */
static void flip_bytes(struct test *test, const char *directory)
{
    DIR *list = opendir(directory);
    const struct dirent *entry;
    char path[512];
    uint32_t flips = 0;

    assert_non_null(list);
    while ((entry = readdir(list)) != NULL) {
        if (strncmp(entry->d_name, "shard-", 6) != 0 && strcmp(entry->d_name, "MANIFEST") != 0)
            continue;
        snprintf(path, sizeof path, "%.200s/%.250s", directory, entry->d_name);
        FILE *file = fopen(path, "r+");
        assert_non_null(file);
        for (long at = 0; fseek(file, at, SEEK_SET) == 0; at++) {
            int byte = fgetc(file);
            if (byte == EOF)
                break;
            fseek(file, at, SEEK_SET);
            fputc(byte ^ (1 << (at % 8)), file);
            fflush(file);
            assert_int_not_equal(verify(test, 1), ERR_OK);
            assert_non_null(strstr(test->why.text, entry->d_name));
            fseek(file, at, SEEK_SET);
            fputc(byte, file);
            fflush(file);
            flips++;
        }
        fclose(file);
    }
    closedir(list);
    assert_true(flips > 500);
    assert_int_equal(verify(test, 1), ERR_OK);
}

static void a_flipped_byte_is_found_wherever_it_is_and_its_file_named(void **state)
{
    struct test *test = *state;
    char directory[128];

    make_first(test, 10);
    open_again(test);
    snprintf(directory, sizeof directory, "%s/000001", test->path);
    flip_bytes(test, directory);
}

static void a_damaged_marker_is_refused(void **state)
{
    struct test *test = *state;
    char path[128];

    make_first(test, 10);
    repository_close(&test->repository);
    snprintf(path, sizeof path, "%s/" REPOSITORY_MARKER, test->path);
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    fputc('H', file);
    fclose(file);
    assert_int_equal(repository_open(test->path, &test->repository, &test->why), ERR_CORRUPT);
    test->repository.lock = -1;
    assert_non_null(strstr(test->why.text, REPOSITORY_MARKER));
}

static void damage_in_an_earlier_backup_is_found_by_who_needs_it(void **state)
{
    struct test *test = *state;
    char path[128];

    make_first(test, 2000);
    make_second(test, 2000, 100);
    open_again(test);
    snprintf(path, sizeof path, "%s/000001/shard-0001.pack", test->path);
    assert_int_equal(truncate(path, 100), 0);
    assert_int_equal(verify(test, 2), ERR_CORRUPT);
    assert_non_null(strstr(test->why.text, "000001/shard-0001.pack"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(verify(test, 2), ERR_NOT_FOUND);
    assert_non_null(strstr(test->why.text, "000001/shard-0001.pack"));
}

static void a_backup_without_its_manifest_was_interrupted_and_gives_way(void **state)
{
    struct test *test = *state;
    struct manifest manifest;

    make_first(test, 100);
    begin(test, 2, &manifest);
    write_shard(test, &manifest, 0, (struct content){ 100, 0 }, NULL);
    manifest_deinit(&manifest);
    open_again(test);
    assert_int_equal(repository_newest(&test->repository), 1);
    assert_int_equal(repository_interrupted(&test->repository), 2);
    assert_int_equal(verify(test, 2), ERR_NOT_FOUND);
    assert_non_null(strstr(test->why.text, "interrupted"));
    make_second(test, 100, 50);
    open_again(test);
    assert_int_equal(repository_newest(&test->repository), 2);
    assert_int_equal(repository_interrupted(&test->repository), 0);
    assert_int_equal(verify(test, 2), ERR_OK);
}

static void a_directory_with_anything_else_is_refused(void **state)
{
    struct test *test = *state;
    char path[128];

    snprintf(path, sizeof path, "%s/photo.jpg", test->path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    assert_int_equal(repository_open_to_write(test->path, &test->repository, &test->why),
                     ERR_EXISTS);
    test->repository.lock = -1;
    assert_non_null(strstr(test->why.text, "photo.jpg"));
    assert_int_equal(repository_open(test->path, &test->repository, &test->why), ERR_NOT_FOUND);
    test->repository.lock = -1;
}

/* A disk that is full while the marker is written, or a crash then. */
static void a_first_backup_that_broke_off_does_not_block_its_directory(void **state)
{
    struct test *test = *state;
    struct rlimit before, none;
    char path[300];

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none = (struct rlimit){ 0, before.rlim_max };
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    assert_int_equal(repository_open_to_write(test->path, &test->repository, &test->why), ERR_IO);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    snprintf(path, sizeof path, "%s/" REPOSITORY_MARKER ".new", test->path);
    assert_int_not_equal(access(path, F_OK), 0);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    make_first(test, 100);
    assert_int_equal(verify(test, 1), ERR_OK);
}

static void a_reader_sees_that_a_backup_is_being_written(void **state)
{
    struct test *test = *state;
    struct repository reader;

    make_first(test, 100);
    assert_int_equal(repository_begin(&test->repository, 2, &test->why), ERR_OK);
    assert_int_equal(repository_open(test->path, &reader, &test->why), ERR_OK);
    assert_true(repository_is_written(&reader));
    assert_false(reader.backups[1].complete);
    repository_close(&test->repository); /* Broken off. */
    assert_false(repository_is_written(&reader));
    test->repository = reader;
}

static void files_that_several_backups_use_are_read_once(void **state)
{
    struct test *test = *state;
    struct verify_counts counts = { 0 };
    struct manifest manifest;

    make_first(test, 3000);
    make_second(test, 3000, 100);
    open_again(test);
    for (uint64_t number = 1; number <= 2; number++) {
        assert_int_equal(
            repository_verify(&test->repository, number, &manifest, &counts, &test->why), ERR_OK);
        manifest_deinit(&manifest);
    }
    assert_int_equal(counts.files, 2 * 2 * SHARDS);
}

static void only_one_writes_at_a_time(void **state)
{
    struct test *test = *state;
    struct repository other;

    make_first(test, 10);
    assert_int_equal(repository_open_to_write(test->path, &other, &test->why), ERR_EXISTS);
    assert_non_null(strstr(test->why.text, "another backup"));
}

static void rows_out_of_order_are_refused(void **state)
{
    struct test *test = *state;
    struct shard_writer_options options = { &test->repository, { 1, { 0, BACKUP_STATE } }, NULL };
    struct shard_writer *writer;
    struct manifest manifest;
    struct buf rows = { 0 };

    assert_int_equal(repository_open_to_write(test->path, &test->repository, &test->why), ERR_OK);
    begin(test, 1, &manifest);
    assert_int_equal(shard_writer_new(&options, &writer, &test->why), ERR_OK);
    add_row(&rows, 2, "x");
    add_row(&rows, 1, "x");
    assert_int_equal(shard_writer_put(writer, buf_slice(&rows), &test->why), ERR_CORRUPT);
    shard_writer_free(writer);
    manifest_deinit(&manifest);
    buf_deinit(&rows);
}

/* The disk failed once the manifest stood: what was written stays. */
static void a_whole_backup_is_not_removed(void **state)
{
    struct test *test = *state;

    make_first(test, 100);
    assert_int_equal(repository_remove(&test->repository, 1, &test->why), ERR_CONFLICT);
    assert_non_null(strstr(test->why.text, "is a whole backup"));
    open_again(test);
    assert_int_equal(repository_newest(&test->repository), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_is_read_back),
        TEST(a_later_backup_has_only_what_changed),
        TEST(a_flipped_byte_is_found_wherever_it_is_and_its_file_named),
        TEST(a_damaged_marker_is_refused),
        TEST(damage_in_an_earlier_backup_is_found_by_who_needs_it),
        TEST(a_backup_without_its_manifest_was_interrupted_and_gives_way),
        TEST(a_whole_backup_is_not_removed),
        TEST(a_directory_with_anything_else_is_refused),
        TEST(a_reader_sees_that_a_backup_is_being_written),
        TEST(files_that_several_backups_use_are_read_once),
        TEST(a_first_backup_that_broke_off_does_not_block_its_directory),
        TEST(only_one_writes_at_a_time),
        TEST(rows_out_of_order_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
