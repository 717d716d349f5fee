/* Rows on disk: checkpoints are whole or not there, damage is reported, pages are in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/store/db_private.h"
#include "runtime/base/check.h"
#include "runtime/base/test_directory.h"

struct test {
    char directory[TEST_DIRECTORY_BYTES];
    struct db_config config;
    struct db *db;
    char text[DB_TEXT_BYTES];
};

static void must_open(struct test *test)
{
    if (db_open(&test->config, &test->db, test->text) != ERR_OK)
        fail_msg("%s", test->text);
}

static void close_db(struct test *test)
{
    db_close(test->db);
    test->db = NULL;
}

static int setup(void **state)
{
    struct test *test = mem_zalloc(sizeof *test);

    test_directory_make("db", test->directory);
    test->config = db_config_default();
    test->config.directory = test->directory;
    test->config.rate_bytes_per_s = 0;
    *state = test;
    return 0;
}

static int teardown(void **state)
{
    struct test *test = *state;

    if (test->db != NULL)
        close_db(test);
    test_directory_remove(test->directory);
    free(test);
    return 0;
}

/* ---- checkpoints -------------------------------------------------------------------------- */

/* A checkpoint being made up. */
struct draft {
    struct state_write *writes;
    uint32_t count;
    char (*keys)[32];
    uint32_t capacity;
};

static void draft_init(struct draft *draft, uint32_t capacity)
{
    *draft = (struct draft){ .capacity = capacity };
    draft->writes = mem_zalloc(capacity * sizeof *draft->writes);
    draft->keys = mem_zalloc(capacity * sizeof *draft->keys);
}

/* value NULL: delete. */
static void draft_add(struct draft *draft, const char *key, const char *value)
{
    struct state_write *write = &draft->writes[draft->count];

    CHECK(draft->count < draft->capacity);
    snprintf(draft->keys[draft->count], sizeof draft->keys[0], "%s", key);
    write->key = slice_from_text(draft->keys[draft->count]);
    write->value = NULL;
    if (value != NULL) {
        struct blob *blob = mem_alloc(sizeof *blob + strlen(value));

        blob->refs = 1;
        blob->size = (uint32_t)strlen(value);
        memcpy(blob->bytes, value, blob->size);
        write->value = blob;
    }
    draft->count++;
}

static void draft_write(struct draft *draft, struct db *db, uint32_t shard, const char *meta)
{
    struct db_checkpoint checkpoint = { .shard = shard,
                                        .writes = draft->writes,
                                        .write_count = draft->count,
                                        .meta_row = slice_from_text(meta) };

    CHECK(db_checkpoint_write(db, &checkpoint) == ERR_OK);
    for (uint32_t i = 0; i < draft->count; i++)
        free(draft->writes[i].value);
    free(draft->writes);
    free(draft->keys);
}

static void write_rows(struct db *db, uint32_t shard, uint32_t count, const char *value)
{
    struct draft draft;
    char key[32];

    draft_init(&draft, count);
    for (uint32_t i = 0; i < count; i++) {
        snprintf(key, sizeof key, "p%06u", i);
        draft_add(&draft, key, value);
    }
    draft_write(&draft, db, shard, value);
}

static void expect_row(const struct shard_row *row, const char *key, const char *value)
{
    assert_true(slice_equal(row->key, slice_from_text(key)));
    assert_int_equal(row->absent, value == NULL);
    if (value != NULL)
        assert_true(slice_equal(row->value, slice_from_text(value)));
    else
        assert_null(row->value.data);
}

static void rows_deletions_and_meta_survive_a_restart(void **state)
{
    struct test *test = *state;
    struct draft draft;
    struct db_rows rows = { 0 };
    struct buf meta = { 0 };

    must_open(test);
    assert_int_equal(db_load_meta(test->db, 3, &meta), ERR_NOT_FOUND);
    draft_init(&draft, 3);
    draft_add(&draft, "pa", "one");
    draft_add(&draft, "pb", "two");
    draft_add(&draft, "pc", "");
    draft_write(&draft, test->db, 3, "meta 1");
    draft_init(&draft, 2);
    draft_add(&draft, "pa", NULL);
    draft_add(&draft, "pb", "three");
    draft_write(&draft, test->db, 3, "meta 2");
    assert_int_equal(db_flush(test->db), ERR_OK);
    close_db(test);
    must_open(test);

    struct slice keys[4] = { slice_from_text("pc"), slice_from_text("pa"), slice_from_text("pb"),
                             slice_from_text("pz") };
    assert_int_equal(db_get_many(test->db, 3, keys, 4, &rows), ERR_OK);
    assert_int_equal(rows.count, 4);
    expect_row(&rows.rows[0], "pc", "");
    expect_row(&rows.rows[1], "pa", NULL);
    expect_row(&rows.rows[2], "pb", "three");
    expect_row(&rows.rows[3], "pz", NULL);
    db_rows_deinit(&rows);
    /* The neighbours of a shard see none of it. */
    assert_int_equal(db_get_many(test->db, 4, keys, 4, &rows), ERR_OK);
    for (uint32_t i = 0; i < 4; i++)
        assert_true(rows.rows[i].absent);
    db_rows_deinit(&rows);
    assert_int_equal(db_load_meta(test->db, 3, &meta), ERR_OK);
    assert_true(slice_equal(buf_slice(&meta), slice_from_text("meta 2")));
    buf_deinit(&meta);
}

static void of_two_writes_of_one_key_the_later_one_holds(void **state)
{
    struct test *test = *state;
    struct slice key = slice_from_text("k-item-3");
    struct db_rows rows = { 0 };
    struct draft draft;

    must_open(test);
    draft_init(&draft, 4);
    draft_add(&draft, "k-item-3", "held");
    draft_add(&draft, "k-item-4", "other");
    draft_add(&draft, "k-item-3", "gone");
    draft_add(&draft, "k-item-2", "other");
    draft_write(&draft, test->db, 3, "meta");
    assert_int_equal(db_get_many(test->db, 3, &key, 1, &rows), ERR_OK);
    expect_row(&rows.rows[0], "k-item-3", "gone");
    db_rows_deinit(&rows);
}

static void what_memory_lacks_is_not_taken_for_absent(void **state)
{
    struct test *test = *state;
    struct db_rows rows = { 0 };
    struct draft draft;
    struct slice keys[2] = { slice_from_text("pa"), slice_from_text("pz") };

    must_open(test);
    draft_init(&draft, 1);
    draft_add(&draft, "pa", "one");
    draft_write(&draft, test->db, 3, "meta");
    /* In a memtable. */
    assert_int_equal(db_find_cached(test->db, 3, keys, 2, &rows), ERR_OK);
    expect_row(&rows.rows[0], "pa", "one");
    expect_row(&rows.rows[1], "pz", NULL);
    db_rows_deinit(&rows);
    /* In a table that was never read. */
    assert_int_equal(db_flush(test->db), ERR_OK);
    close_db(test);
    must_open(test);
    assert_int_equal(db_find_cached(test->db, 3, keys, 2, &rows), ERR_NEED);
    assert_null(rows.rows);
    /* In the cache. */
    assert_int_equal(db_get_many(test->db, 3, keys, 2, &rows), ERR_OK);
    db_rows_deinit(&rows);
    assert_int_equal(db_find_cached(test->db, 3, keys, 2, &rows), ERR_OK);
    expect_row(&rows.rows[0], "pa", "one");
    expect_row(&rows.rows[1], "pz", NULL);
    db_rows_deinit(&rows);
}

enum { TABLES = 8 };

/* RocksDB answers "there, and empty" for what is in a table that is not open: it means "maybe". */
static void what_a_closed_table_has_is_not_taken_for_empty(void **state)
{
    struct test *test = *state;
    struct db_rows rows = { 0 };
    struct draft draft;
    char text[16];
    uint32_t needed = 0;

    test->config.open_files_max = 20; /* The least: some stay closed. */
    must_open(test);
    for (uint32_t table = 0; table < TABLES; table++) {
        draft_init(&draft, 2);
        snprintf(text, sizeof text, "p%02ua", table);
        draft_add(&draft, text, "one");
        snprintf(text, sizeof text, "p%02uz", table);
        draft_add(&draft, text, "one");
        draft_write(&draft, test->db, 3, "meta");
        assert_int_equal(db_flush(test->db), ERR_OK);
    }
    close_db(test);
    must_open(test);
    for (uint32_t table = 0; table < TABLES; table++) {
        for (uint32_t there = 0; there < 2; there++) {
            snprintf(text, sizeof text, "p%02u%c", table, there ? 'a' : 'm');
            struct slice key = slice_from_text(text);
            err e = db_find_cached(test->db, 3, &key, 1, &rows);

            needed += e == ERR_NEED;
            if (e == ERR_NEED)
                assert_int_equal(db_get_many(test->db, 3, &key, 1, &rows), ERR_OK);
            expect_row(&rows.rows[0], text, there ? "one" : NULL);
            db_rows_deinit(&rows);
        }
    }
    assert_true(needed > 0);
}

static void expect_page(struct db *db, struct state_range range, const char *keys, bool complete)
{
    struct db_rows rows = { 0 };
    struct buf got = { 0 };

    assert_int_equal(db_range(db, 7, &range, &rows), ERR_OK);
    for (uint32_t i = 0; i < rows.count; i++) {
        buf_append(&got, rows.rows[i].key.data, rows.rows[i].key.size);
        buf_put_u8(&got, ' ');
    }
    assert_true(slice_equal(buf_slice(&got), slice_from_text(keys)));
    buf_deinit(&got);
    assert_int_equal(rows.complete, complete);
    db_rows_deinit(&rows);
}

static void pages_are_in_order_and_within_their_prefix(void **state)
{
    struct test *test = *state;
    static const char *const all[] = { "i1", "ia1", "ia2", "ia3", "ib1", "t1", "\xff\xff" };
    struct draft draft;
    struct slice ia = slice_from_text("ia");
    struct slice none = { 0 };

    must_open(test);
    for (uint32_t shard = 6; shard <= 8; shard++) {
        draft_init(&draft, 7);
        for (uint32_t i = 0; i < 7; i++)
            draft_add(&draft, all[i], "v");
        draft_write(&draft, test->db, shard, "m");
    }
    expect_page(test->db, (struct state_range){ ia, none, 10 }, "ia1 ia2 ia3 ", true);
    expect_page(test->db, (struct state_range){ ia, none, 3 }, "ia1 ia2 ia3 ", true);
    expect_page(test->db, (struct state_range){ ia, none, 2 }, "ia1 ia2 ", false);
    expect_page(test->db, (struct state_range){ ia, slice_from_text("ia2"), 2 }, "ia3 ", true);
    expect_page(test->db, (struct state_range){ ia, slice_from_text("ia25"), 2 }, "ia3 ", true);
    expect_page(test->db, (struct state_range){ ia, slice_from_text("ia3"), 2 }, "", true);
    expect_page(test->db, (struct state_range){ ia, slice_from_text("a"), 1 }, "ia1 ", false);
    expect_page(test->db, (struct state_range){ ia, slice_from_text("z"), 1 }, "", true);
    expect_page(test->db, (struct state_range){ slice_from_text("\xff"), none, 9 }, "\xff\xff ",
                true);
    expect_page(test->db, (struct state_range){ none, none, 99 },
                "i1 ia1 ia2 ia3 ib1 m t1 \xff\xff ", true);
}

static void a_prefix_is_loaded_whole_or_refused(void **state)
{
    struct test *test = *state;
    struct db_rows rows = { 0 };

    must_open(test);
    write_rows(test->db, 1, 5000, "x");
    assert_int_equal(db_load_prefix(test->db, 1, slice_from_text("p"), 5000, &rows), ERR_OK);
    assert_int_equal(rows.count, 5000);
    expect_row(&rows.rows[4999], "p004999", "x");
    db_rows_deinit(&rows);
    assert_int_equal(db_load_prefix(test->db, 1, slice_from_text("p"), 4999, &rows), ERR_TOO_LARGE);
    assert_null(rows.rows);
}

static void a_dropped_shard_leaves_its_neighbours(void **state)
{
    struct test *test = *state;
    struct db_rows rows = { 0 };
    struct buf meta = { 0 };

    must_open(test);
    for (uint32_t shard = 254; shard <= 257; shard++)
        write_rows(test->db, shard, 10, "x");
    assert_int_equal(db_drop_shard(test->db, 255), ERR_OK);
    assert_int_equal(db_drop_shard(test->db, 256), ERR_OK);
    close_db(test);
    must_open(test);
    for (uint32_t shard = 254; shard <= 257; shard++) {
        bool kept = shard == 254 || shard == 257;

        assert_int_equal(db_load_prefix(test->db, shard, (struct slice){ 0 }, 99, &rows), ERR_OK);
        assert_int_equal(rows.count, kept ? 11 : 0);
        db_rows_deinit(&rows);
        assert_int_equal(db_load_meta(test->db, shard, &meta), kept ? ERR_OK : ERR_NOT_FOUND);
    }
    buf_deinit(&meta);
}

/* ---- crashes ------------------------------------------------------------------------------ */

static void write_until_killed(struct test *test, int pipe)
{
    alarm(300);
    test->config.write_buffer_bytes = 256u * 1024u;
    if (db_open(&test->config, &test->db, test->text) != ERR_OK)
        _exit(1);
    for (uint32_t turn = 1;; turn++) {
        char value[64];

        snprintf(value, sizeof value, "%010u", turn);
        for (uint32_t shard = 0; shard < 3; shard++)
            write_rows(test->db, shard, 3000, value);
        if (turn % 4 == 0)
            CHECK(db_flush(test->db) == ERR_OK);
        if (turn % 4 == 0)
            CHECK(write(pipe, &turn, sizeof turn) == sizeof turn);
    }
}

/* In a process of its own: RocksDB's threads do not survive a later fork. */
static void check_whole_checkpoints(struct test *test, uint32_t flushed)
{
    struct buf meta = { 0 };
    struct db_rows rows = { 0 };

    CHECK(db_open(&test->config, &test->db, test->text) == ERR_OK);
    for (uint32_t shard = 0; shard < 3; shard++) {
        buf_clear(&meta);
        CHECK(db_load_meta(test->db, shard, &meta) == ERR_OK);
        CHECK(strtoul((const char *)meta.data, NULL, 10) >= flushed);
        CHECK(db_load_prefix(test->db, shard, slice_from_text("p"), 9999, &rows) == ERR_OK);
        CHECK(rows.count == 3000);
        for (uint32_t i = 0; i < rows.count; i++)
            CHECK(slice_equal(rows.rows[i].value, buf_slice(&meta)));
        db_rows_deinit(&rows);
    }
    close_db(test);
    buf_deinit(&meta);
}

static void expect_whole_checkpoints(struct test *test, uint32_t flushed)
{
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        check_whole_checkpoints(test, flushed);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void a_checkpoint_is_there_whole_or_not_at_all_after_sigkill(void **state)
{
    struct test *test = *state;

    for (uint32_t round = 0; round < 5; round++) {
        uint32_t flushed = 0;
        uint32_t seen;
        int ends[2];

        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            write_until_killed(test, ends[1]);
        close(ends[1]);
        while (read(ends[0], &seen, sizeof seen) == sizeof seen) {
            flushed = seen;
            if (seen >= 4 * (round + 1))
                kill(child, SIGKILL);
        }
        close(ends[0]);
        assert_int_equal(waitpid(child, NULL, 0), child);
        assert_true(flushed > 0);
        expect_whole_checkpoints(test, flushed);
    }
}

/* ---- damage ------------------------------------------------------------------------------- */

static bool find_table(const struct test *test, char ret_path[384])
{
    DIR *dir = opendir(test->directory);
    bool found = false;

    for (struct dirent *item = readdir(dir); item != NULL; item = readdir(dir)) {
        if (strstr(item->d_name, ".sst") == NULL)
            continue;
        snprintf(ret_path, 384, "%s/%s", test->directory, item->d_name);
        found = true;
    }
    closedir(dir);
    return found;
}

static long file_size(const char *path)
{
    struct stat stat_buf;

    assert_int_equal(stat(path, &stat_buf), 0);
    return (long)stat_buf.st_size;
}

static void flip(const char *path, long at)
{
    FILE *file = fopen(path, "r+b");
    int byte;

    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    byte = fgetc(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_not_equal(fputc(byte ^ 0x20, file), EOF);
    assert_int_equal(fclose(file), 0);
}

/* Everything that was written is there; an error counts as such. */
static err read_all(struct test *test)
{
    struct db_rows rows = { 0 };
    err e = db_open(&test->config, &test->db, test->text);

    if (e != ERR_OK)
        return e;
    e = db_load_prefix(test->db, 2, slice_from_text("p"), 9999, &rows);
    if (e == ERR_OK) {
        assert_int_equal(rows.count, 400);
        for (uint32_t i = 0; i < rows.count; i++) {
            char key[32];

            snprintf(key, sizeof key, "p%06u", i * 7);
            expect_row(&rows.rows[i], key, "value of a row");
        }
    }
    db_rows_deinit(&rows);
    if (e == ERR_CORRUPT)
        assert_true(db_damage(test->db, test->text));
    close_db(test);
    return e;
}

static void a_changed_byte_in_a_table_is_reported_never_served(void **state)
{
    struct test *test = *state;
    struct draft draft;
    char path[384];
    uint32_t reported = 0;

    must_open(test);
    draft_init(&draft, 400);
    for (uint32_t i = 0; i < 400; i++) {
        char key[32];

        snprintf(key, sizeof key, "p%06u", i * 7);
        draft_add(&draft, key, "value of a row");
    }
    draft_write(&draft, test->db, 2, "m");
    close_db(test);
    assert_true(find_table(test, path));
    long size = file_size(path);
    for (long at = 0; at < size; at += 17) {
        flip(path, at);
        err e = read_all(test);
        assert_true(e == ERR_OK || e == ERR_CORRUPT);
        reported += e == ERR_CORRUPT;
        if (e == ERR_CORRUPT && strstr(test->text, test->directory) == NULL)
            fail_msg("the text names no file: %s", test->text);
        flip(path, at);
    }
    assert_true(reported > (uint32_t)size / 17 / 2);
    assert_int_equal(read_all(test), ERR_OK);
}

static void a_missing_table_is_damage(void **state)
{
    struct test *test = *state;
    char path[384];

    must_open(test);
    write_rows(test->db, 2, 100, "x");
    close_db(test);
    assert_true(find_table(test, path));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(db_open(&test->config, &test->db, test->text), ERR_CORRUPT);
    test->db = NULL;
    assert_non_null(strstr(test->text, test->directory));
}

/* ---- snapshots ---------------------------------------------------------------------------- */

static void stage_row(struct buf *rows, const char *key, const char *value)
{
    buf_put_bytes(rows, slice_from_text(key));
    buf_put_bytes(rows, slice_from_text(value));
}

static void expect_found(struct test *test, uint32_t shard, const char *key, const char *value)
{
    struct slice wanted = slice_from_text(key);
    struct db_rows rows = { 0 };

    assert_int_equal(db_get_many(test->db, shard, &wanted, 1, &rows), ERR_OK);
    expect_row(&rows.rows[0], key, value);
    db_rows_deinit(&rows);
}

static void a_view_shows_what_was_there_when_it_was_opened(void **state)
{
    struct test *test = *state;
    struct db_rows rows = { 0 };
    struct buf meta = { 0 };

    must_open(test);
    write_rows(test->db, 7, 100, "old");
    write_rows(test->db, 8, 10, "neighbour");
    struct db_view *view = db_view_open(test->db, 7);
    write_rows(test->db, 7, 200, "new");
    assert_int_equal(db_flush(test->db), ERR_OK);
    assert_int_equal(db_view_meta(view, &meta), ERR_OK);
    assert_true(slice_equal(buf_slice(&meta), slice_from_text("old")));
    assert_int_equal(db_view_page(view, (struct slice){ 0 }, 300, &rows), ERR_OK);
    assert_false(rows.complete);
    assert_in_range(rows.count, 2, 60); /* Each takes ten bytes. */
    expect_row(&rows.rows[0], "m", "old");
    expect_row(&rows.rows[1], "p000000", "old");
    db_rows_deinit(&rows);
    assert_int_equal(db_view_page(view, slice_from_text("p000098"), 300, &rows), ERR_OK);
    assert_true(rows.complete);
    assert_int_equal(rows.count, 1);
    expect_row(&rows.rows[0], "p000099", "old");
    db_rows_deinit(&rows);
    db_view_close(view);
    buf_deinit(&meta);
}

static void staged_rows_become_the_shards_by_one_switch(void **state)
{
    struct test *test = *state;
    struct buf rows = { 0 };
    struct buf meta = { 0 };

    must_open(test);
    write_rows(test->db, 4095, 3, "old");
    stage_row(&rows, "p000001", "new");
    stage_row(&rows, "x", "new");
    /* Twice round all generations. */
    for (uint32_t turn = 0; turn < 2 * DB_GENERATIONS; turn++) {
        assert_int_equal(db_stage_begin(test->db, 4095), ERR_OK);
        assert_int_equal(db_stage_put(test->db, 4095, buf_slice(&rows)), ERR_OK);
        expect_found(test, 4095, "p000002", turn == 0 ? "old" : NULL);
        assert_int_equal(db_stage_switch(test->db, 4095, slice_from_text("meta")), ERR_OK);
        assert_true(db_reset_due(test->db, 4095));
        close_db(test);
        must_open(test);
        assert_true(db_reset_due(test->db, 4095));
        assert_int_equal(db_stage_finish(test->db, 4095), ERR_OK);
        assert_false(db_reset_due(test->db, 4095));
        expect_found(test, 4095, "p000001", "new");
        expect_found(test, 4095, "p000002", NULL);
        expect_found(test, 4095, "x", "new");
    }
    assert_int_equal(db_load_meta(test->db, 4095, &meta), ERR_OK);
    assert_true(slice_equal(buf_slice(&meta), slice_from_text("meta")));
    write_rows(test->db, 4095, 3, "newer");
    close_db(test);
    must_open(test);
    expect_found(test, 4095, "p000001", "newer");
    expect_found(test, 4095, "x", "new");
    buf_deinit(&rows);
    buf_deinit(&meta);
}

static void what_was_staged_and_given_up_is_gone(void **state)
{
    struct test *test = *state;
    struct buf rows = { 0 };

    must_open(test);
    write_rows(test->db, 0, 1, "old");
    stage_row(&rows, "x", "given up");
    assert_int_equal(db_stage_begin(test->db, 0), ERR_OK);
    assert_int_equal(db_stage_put(test->db, 0, buf_slice(&rows)), ERR_OK);
    close_db(test);
    must_open(test);
    assert_false(db_reset_due(test->db, 0));
    expect_found(test, 0, "x", NULL);
    expect_found(test, 0, "p000000", "old");
    assert_int_equal(db_stage_begin(test->db, 0), ERR_OK);
    assert_int_equal(db_stage_switch(test->db, 0, slice_from_text("meta")), ERR_OK);
    expect_found(test, 0, "x", NULL);
    expect_found(test, 0, "p000000", NULL);
    buf_deinit(&rows);
}

/* ---- threads ------------------------------------------------------------------------------ */

struct worker {
    struct db *db;
    uint32_t shard;
    pthread_t thread;
    bool whole;
};

static void *work(void *context)
{
    struct worker *worker = context;

    worker->whole = true;
    for (uint32_t turn = 0; turn < 20; turn++) {
        struct db_rows rows = { 0 };
        char value[64];

        snprintf(value, sizeof value, "%u of %u", turn, worker->shard);
        write_rows(worker->db, worker->shard, 200, value);
        CHECK(db_load_prefix(worker->db, worker->shard, slice_from_text("p"), 999, &rows) ==
              ERR_OK);
        for (uint32_t i = 0; i < rows.count; i++)
            worker->whole &= slice_equal(rows.rows[i].value, slice_from_text(value));
        worker->whole &= rows.count == 200;
        db_rows_deinit(&rows);
    }
    return NULL;
}

static void shards_are_written_and_read_from_many_threads(void **state)
{
    struct test *test = *state;
    struct worker workers[4];

    must_open(test);
    for (uint32_t i = 0; i < 4; i++) {
        workers[i] = (struct worker){ .db = test->db, .shard = i };
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
    for (uint32_t i = 0; i < 4; i++)
        assert_true(workers[i].whole);
}

static void files_that_no_merge_took_in_are_counted(void **state)
{
    struct test *test = *state;

    must_open(test);
    assert_int_equal(db_property(test->db, "rocksdb.num-files-at-level0"), 0);
    for (uint32_t i = 1; i <= 3; i++) {
        write_rows(test->db, 1, 10, "x");
        assert_int_equal(db_flush(test->db), ERR_OK);
        assert_int_equal(db_property(test->db, "rocksdb.num-files-at-level0"), i);
    }
    assert_int_equal(db_property(test->db, "rocksdb.no-such-figure"), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        /* First: it forks, and no thread of RocksDB must have been started by then. */
        TEST(a_checkpoint_is_there_whole_or_not_at_all_after_sigkill),
        TEST(rows_deletions_and_meta_survive_a_restart),
        TEST(of_two_writes_of_one_key_the_later_one_holds),
        TEST(what_memory_lacks_is_not_taken_for_absent),
        TEST(what_a_closed_table_has_is_not_taken_for_empty),
        TEST(pages_are_in_order_and_within_their_prefix),
        TEST(a_prefix_is_loaded_whole_or_refused),
        TEST(a_dropped_shard_leaves_its_neighbours),
        TEST(a_changed_byte_in_a_table_is_reported_never_served),
        TEST(a_missing_table_is_damage),
        TEST(a_view_shows_what_was_there_when_it_was_opened),
        TEST(staged_rows_become_the_shards_by_one_switch),
        TEST(what_was_staged_and_given_up_is_gone),
        TEST(shards_are_written_and_read_from_many_threads),
        TEST(files_that_no_merge_took_in_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
