/* The durable log: what is written is there again, what is dead makes room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/store/log_fixture.h"
#include "runtime/base/check.h"

static int setup(void **state)
{
    struct fixture *fixture = mem_alloc(sizeof *fixture);

    fixture_init(fixture);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    if (fixture->log != NULL)
        fixture_close(fixture);
    fixture_deinit(fixture);
    free(fixture);
    return 0;
}

static void entries_promises_and_commit_marks_survive_a_restart(void **state)
{
    struct fixture *f = *state;

    fixture_open(f);
    fixture_promise(f, 1, 4);
    fixture_append(f, 1, 100, 200);
    fixture_append(f, 2, 1, 0);
    fixture_append(f, 2, 300, 1000);
    fixture_commit(f, 2, 301);
    fixture_promise(f, 7, 12);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t shard = 0; shard < FIXTURE_SHARDS; shard++)
            fixture_expect(f, shard, 0);
        fixture_expect(f, 1, 40);
        fixture_expect(f, 2, 301);
        fixture_close(f);
        fixture_open(f);
    }
    assert_int_equal(f->errors_logged, 0);
}

/* Kept or read, in part or in whole: the log gives the same. */
static void what_the_scan_keeps_is_what_the_disk_has(void **state)
{
    struct fixture *f = *state;

    fixture_open(f);
    fixture_append(f, 1, 100, 200);
    fixture_truncate(f, 1, 60);
    fixture_append(f, 1, 20, 300);
    fixture_append(f, 2, 50, 100);
    fixture_close(f);
    for (uint64_t applied = 0; applied <= 90; applied += 10) {
        for (uint32_t shard = 0; shard < FIXTURE_SHARDS; shard++)
            f->applied[shard] = applied;
        f->opens = 1; /* The scan keeps what it reads. */
        fixture_open(f);
        assert_int_equal(f->log->shards[1].kept.count, applied <= 80 ? 80 - applied : 0);
        fixture_expect(f, 1, applied <= 80 ? applied : 80);
        fixture_expect(f, 1, 0); /* The kept ones are gone: all from the disk. */
        fixture_expect(f, 2, 0); /* A part is kept. */
        fixture_close(f);
    }
    assert_int_equal(f->errors_logged, 0);
}

/* A start need not write again what a later batch calls synced: all but the last ones. */
static void what_a_later_batch_calls_synced_is_known_at_the_start(void **state)
{
    struct fixture *f = *state;
    struct node_log *log;
    struct log_tail tail;

    fixture_open(f);
    for (uint32_t i = 0; i < 40; i++)
        fixture_append(f, i % FIXTURE_SHARDS, 20, 1000);
    fixture_close(f);
    assert_int_equal(node_log_inspect(&f->config, &log, &tail), ERR_OK);
    node_log_close(log);
    assert_true(tail.offset > 40 * 20 * 1000);
    assert_true(tail.durable_offset < tail.offset); /* Nothing is behind the last one. */
    assert_true(tail.offset - tail.durable_offset <= 2 * BLOCK_BYTES);
}

static void the_largest_entry_fits(void **state)
{
    struct fixture *f = *state;

    fixture_open(f);
    for (uint32_t i = 0; i < 5; i++)
        fixture_append(f, 3, 1, ENTRY_BODY_BYTES_MAX);
    fixture_close(f);
    fixture_open(f);
    fixture_expect(f, 3, 0);
}

static void requests_of_many_shards_complete_in_order_with_few_syncs(void **state)
{
    struct fixture *f = *state;
    enum { COUNT = 400 };
    struct node_log_request requests[COUNT] = { 0 };
    struct rep_write writes[COUNT] = { 0 };
    struct node_log_stats stats;

    fixture_open(f);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t shard = i % FIXTURE_SHARDS;

        writes[i] =
            (struct rep_write){ .type = REP_WRITE_ENTRY, .entry = fixture_entry(f, shard, 150) };
        fixture_note(f, shard, writes[i].entry);
        f->shards[shard].commit_index = 0;
        requests[i] = (struct node_log_request){ .client = &f->client,
                                                 .shard = shard,
                                                 .ticket = i,
                                                 .writes = &writes[i],
                                                 .write_count = 1 };
        node_log_submit_list(f->log, &requests[i], &requests[i]);
    }
    for (uint32_t i = 0; i < COUNT; i++)
        while (sem_wait(&f->done) != 0)
            ;
    node_log_stats_get(f->log, &stats);
    assert_int_equal(stats.entries, COUNT);
    assert_true(stats.syncs < COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        entry_unref(writes[i].entry);
    for (uint32_t shard = 0; shard < FIXTURE_SHARDS; shard++)
        fixture_expect(f, shard, 0);
}

static void expect_range(struct fixture *f, struct node_log_range range, uint64_t last)
{
    struct entry **entries = NULL;
    uint32_t count = 0;

    assert_int_equal(node_log_read(f->log, &range, &entries, &count), ERR_OK);
    assert_int_equal(count, last - range.from_index + 1);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(entries[i]->index, range.from_index + i);
        assert_true(
            hash128_equal(entries[i]->hash, f->shards[range.shard].hashes[entries[i]->index]));
        entry_unref(entries[i]);
    }
    free(entries);
}

static void a_range_is_clipped_to_what_is_there_and_to_its_size(void **state)
{
    struct fixture *f = *state;
    struct entry **entries = NULL;
    uint32_t count = 0;

    fixture_open(f);
    fixture_append(f, 0, 50, 300);
    fixture_append(f, 5, 2000, 300);
    expect_range(f, (struct node_log_range){ 5, 1, 2000, UINT32_MAX }, 2000);
    expect_range(f, (struct node_log_range){ 5, 700, 9999, UINT32_MAX }, 2000);
    expect_range(f, (struct node_log_range){ 5, 10, 20, UINT32_MAX }, 20);
    expect_range(f, (struct node_log_range){ 5, 10, 20, 1 }, 10);
    expect_range(f, (struct node_log_range){ 5, 10, 2000, 3800 }, 19);
    struct node_log_range beyond = { 5, 2001, 2002, 4096 };
    assert_int_equal(node_log_read(f->log, &beyond, &entries, &count), ERR_NOT_FOUND);
    node_log_retain(f->log, 5, 100);
    struct node_log_range cut = { 5, 100, 120, 4096 };
    assert_int_equal(node_log_read(f->log, &cut, &entries, &count), ERR_NOT_FOUND);
    expect_range(f, (struct node_log_range){ 5, 101, 110, UINT32_MAX }, 110);
}

static uint64_t count_orphans(const struct fixture *f, uint32_t shard, uint64_t keep_index)
{
    char path[128];
    uint8_t header[ORPHAN_HEADER_BYTES];
    uint64_t count = 0;

    snprintf(path, sizeof path, "%s/orphans-1.log", f->directory);
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return 0;
    while (fread(header, sizeof header, 1, file) == 1) {
        uint32_t size = load_u32(header + 8);
        uint8_t *bytes = mem_alloc(size);
        struct entry *entry = NULL;

        assert_memory_equal(header, "HFOR", 4);
        assert_int_equal(load_u32(header + 12), shard);
        assert_int_equal(load_u64(header + 24), keep_index);
        assert_int_equal(fread(bytes, size, 1, file), 1);
        assert_int_equal(entry_decode((struct slice){ bytes, size }, &entry), ERR_OK);
        assert_int_equal(entry->index, load_u64(header + 16));
        assert_int_equal(entry->index, keep_index + 1 + count);
        entry_unref(entry);
        free(bytes);
        count++;
    }
    fclose(file);
    return count;
}

static void truncated_entries_go_to_the_audit_file_and_do_not_come_back(void **state)
{
    struct fixture *f = *state;

    fixture_open(f);
    fixture_append(f, 4, 150, 100);
    fixture_append(f, 6, 10, 100);
    fixture_truncate(f, 4, 20);
    assert_int_equal(count_orphans(f, 4, 20), 130);
    fixture_expect(f, 4, 0);
    fixture_append(f, 4, 5, 64);
    fixture_expect(f, 4, 0);
    fixture_close(f);
    fixture_open(f);
    fixture_expect(f, 4, 0);
    fixture_expect(f, 6, 0);
}

/* The orphans and their TRUNCATE come in one request with what replaces them. */
static void a_truncate_and_new_entries_in_one_request_stay_in_order(void **state)
{
    struct fixture *f = *state;
    struct rep_write writes[4] = { 0 };

    fixture_open(f);
    fixture_append(f, 1, 3, 10);
    writes[0] = (struct rep_write){ .type = REP_WRITE_ENTRY, .entry = fixture_entry(f, 1, 10) };
    writes[1] = (struct rep_write){ .type = REP_WRITE_TRUNCATE, .keep_index = 3 };
    writes[2] = (struct rep_write){ .type = REP_WRITE_PROMISE, .promise = { 3, 8, 9 } };
    writes[3] = (struct rep_write){ .type = REP_WRITE_ENTRY, .entry = fixture_entry(f, 1, 33) };
    struct node_log_request request = {
        .client = &f->client, .shard = 1, .writes = writes, .write_count = 4
    };
    node_log_submit_list(f->log, &request, &request);
    while (sem_wait(&f->done) != 0)
        ;
    f->shards[1].promise = writes[2].promise;
    fixture_note(f, 1, writes[3].entry);
    f->shards[1].commit_index = 2;
    entry_unref(writes[0].entry);
    entry_unref(writes[3].entry);
    assert_int_equal(count_orphans(f, 1, 3), 1);
    fixture_close(f);
    fixture_open(f);
    fixture_expect(f, 1, 0);
}

static uint64_t directory_segments(const struct fixture *f)
{
    DIR *dir = opendir(f->directory);
    uint64_t count = 0;

    for (struct dirent *item = readdir(dir); item != NULL; item = readdir(dir))
        count += strstr(item->d_name, ".seg") != NULL;
    closedir(dir);
    return count;
}

static void dead_segments_are_used_again_and_promises_survive_them(void **state)
{
    struct fixture *f = *state;
    struct node_log_stats stats;

    f->config.bytes_max = 4 * (uint64_t)f->config.segment_bytes;
    fixture_open(f);
    fixture_promise(f, 2, 77);
    fixture_append(f, 3, 1, 100);
    node_log_retain(f->log, 3, 1);
    for (uint32_t round = 0; round < 40; round++) {
        fixture_append(f, 1, 500, 1500);
        node_log_retain(f->log, 1, f->shards[1].last_index - 10);
    }
    node_log_stats_get(f->log, &stats);
    assert_true(stats.written_bytes > 6 * (uint64_t)f->config.segment_bytes);
    assert_true(stats.recycled > 0);
    assert_true(directory_segments(f) <= 4);
    fixture_close(f);
    fixture_open(f);
    fixture_expect(f, 2, 0);
    fixture_expect(f, 1, f->shards[1].last_index - 10);
    fixture_expect(f, 3, 1);
    /* The database lost what the log was cut for: that is damage, not an empty shard. */
    assert_false(fixture_matches(f, f->log, 3, 0));
}

/* The keeper works on a thread of its own; polled, for at most 60 s. */
static void wait_for_space(struct fixture *f, bool wanted)
{
    for (uint32_t i = 0; i < 60000 && node_log_space_ok(f->log) != wanted; i++)
        usleep(1000);
    CHECK(node_log_space_ok(f->log) == wanted);
}

static void wait_for_spare(struct fixture *f)
{
    struct node_log_stats stats = { 0 };

    for (uint32_t i = 0; i < 60000 && stats.spare_segments == 0; i++) {
        usleep(1000);
        node_log_stats_get(f->log, &stats);
    }
    CHECK(stats.spare_segments > 0);
}

static void a_pinned_log_stops_at_its_limit_and_goes_on_when_cut(void **state)
{
    struct fixture *f = *state;
    struct node_log_stats stats;
    struct rep_write write = { .type = REP_WRITE_ENTRY };
    struct node_log_request requests[9];

    f->config.bytes_max = 3 * (uint64_t)f->config.segment_bytes;
    fixture_open(f);
    fixture_promise(f, 0, 5);
    fixture_append(f, 6, 1, 100);
    fixture_append(f, 1, 9, ENTRY_BODY_BYTES_MAX);
    node_log_retain(f->log, 1, 9);
    wait_for_space(f, false);
    node_log_stats_get(f->log, &stats);
    assert_int_equal(stats.pinning_shard, 6);
    assert_true(stats.pinned_bytes >= f->config.segment_bytes);

    struct entry *entries[3];
    for (uint32_t i = 0; i < 3; i++) {
        entries[i] = fixture_entry(f, 1, ENTRY_BODY_BYTES_MAX);
        fixture_note(f, 1, entries[i]);
        f->shards[1].commit_index = 8;
    }
    struct rep_write writes[3];
    for (uint32_t i = 0; i < 3; i++) {
        writes[i] = write;
        writes[i].entry = entries[i];
        requests[i] = (struct node_log_request){
            .client = &f->client, .shard = 1, .writes = &writes[i], .write_count = 1
        };
        node_log_submit_list(f->log, &requests[i], &requests[i]);
    }
    node_log_retain(f->log, 6, 1);
    for (uint32_t i = 0; i < 3; i++)
        while (sem_wait(&f->done) != 0)
            ;
    wait_for_space(f, true);
    assert_true(directory_segments(f) <= 3);
    for (uint32_t i = 0; i < 3; i++)
        entry_unref(entries[i]);
    fixture_close(f);
    fixture_open(f);
    fixture_expect(f, 1, 9);
    fixture_expect(f, 0, 0);
}

static void a_snapshot_may_leave_a_gap_behind(void **state)
{
    struct fixture *f = *state;

    fixture_open(f);
    fixture_append(f, 2, 10, 100);
    f->shards[2].last_index = 500;
    f->shards[2].commit_index = 500;
    fixture_append(f, 2, 10, 100);
    fixture_expect(f, 2, 500);
    fixture_close(f);
    fixture_open(f);
    fixture_expect(f, 2, 500);
    fixture_expect(f, 2, 505);
    assert_false(fixture_matches(f, f->log, 2, 10));
}

static void without_direct_io_it_works_too(void **state)
{
    struct fixture *f = *state;
    struct node_log_stats stats;

    f->config.direct_io = false;
    fixture_open(f);
    node_log_stats_get(f->log, &stats);
    assert_false(stats.direct_io);
    fixture_append(f, 1, 300, 200);
    fixture_close(f);
    fixture_open(f);
    fixture_expect(f, 1, 0);
}

/* A file system that refuses O_DIRECT, if this machine has one. */
static void a_file_system_without_direct_io_is_found_out(void **state)
{
    struct fixture *f = *state;
    char directory[] = "/dev/shm/holdfast-log-XXXXXX";

    if (mkdtemp(directory) == NULL)
        skip();
    rmdir(f->directory);
    snprintf(f->directory, sizeof f->directory, "%s", directory);
    fixture_open(f);
    fixture_append(f, 1, 300, 200);
    fixture_close(f);
    fixture_open(f);
    fixture_expect(f, 1, 0);
}

/* The child's writes fail from some point on; it must die, and never call `done`. */
static void a_failed_write_stops_the_process(void **state)
{
    struct fixture *f = *state;
    pid_t child = fork();
    int status = 0;

    assert_true(child >= 0);
    if (child == 0) {
        alarm(120);
        struct rlimit none = { 0, RLIM_INFINITY };

        fclose(stderr);
        signal(SIGXFSZ, SIG_IGN);
        fixture_open(f);
        fixture_append(f, 1, 10, 100);
        setrlimit(RLIMIT_FSIZE, &none);
        fixture_append(f, 1, 10, 100);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
}

/* No room for a spare is reported while the segment in use still has plenty. */
static void a_full_disk_is_reported_before_it_is_hit(void **state)
{
    struct fixture *f = *state;
    pid_t child = fork();
    int status = 0;

    assert_true(child >= 0);
    if (child == 0) {
        alarm(120);
        struct rlimit small = { 4u * 1024u * 1024u - 4096u, RLIM_INFINITY };

        fclose(stderr);
        signal(SIGXFSZ, SIG_IGN);
        f->config.bytes_max = 3 * (uint64_t)f->config.segment_bytes;
        fixture_open(f);
        wait_for_spare(f);
        setrlimit(RLIMIT_FSIZE, &small);
        fixture_append(f, 1, 4, ENTRY_BODY_BYTES_MAX - 4096);
        wait_for_space(f, false);
        fixture_append(f, 1, 1, 100);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_bad_configuration_is_refused(void **state)
{
    struct fixture *f = *state;
    struct node_log_config config = f->config;
    struct node_log *log = NULL;

    config.segment_bytes = 4096;
    assert_int_equal(node_log_open(&config, &log), ERR_INVALID);
    config = f->config;
    config.bytes_max = config.segment_bytes;
    assert_int_equal(node_log_open(&config, &log), ERR_INVALID);
    config = f->config;
    config.directory = "/nonexistent/log";
    assert_int_equal(node_log_open(&config, &log), ERR_IO);
    assert_int_equal(f->errors_logged, 3);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(entries_promises_and_commit_marks_survive_a_restart),
        TEST(what_the_scan_keeps_is_what_the_disk_has),
        TEST(what_a_later_batch_calls_synced_is_known_at_the_start),
        TEST(the_largest_entry_fits),
        TEST(requests_of_many_shards_complete_in_order_with_few_syncs),
        TEST(a_range_is_clipped_to_what_is_there_and_to_its_size),
        TEST(truncated_entries_go_to_the_audit_file_and_do_not_come_back),
        TEST(a_truncate_and_new_entries_in_one_request_stay_in_order),
        TEST(dead_segments_are_used_again_and_promises_survive_them),
        TEST(a_pinned_log_stops_at_its_limit_and_goes_on_when_cut),
        TEST(a_snapshot_may_leave_a_gap_behind),
        TEST(without_direct_io_it_works_too),
        TEST(a_file_system_without_direct_io_is_found_out),
        TEST(a_failed_write_stops_the_process),
        TEST(a_full_disk_is_reported_before_it_is_hit),
        TEST(a_bad_configuration_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
