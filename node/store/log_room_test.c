/* The log while its directory takes no writes or no names: it waits, and passes over nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "node/store/log_fixture.h"
#include "runtime/base/check.h"

static atomic_bool disk_full;
static atomic_uint recycles_failed;

/* In place of the library's. The log writes segments by pwrite, the audit file by this. */
ssize_t write(int fd, const void *bytes, size_t size)
{
    if (!atomic_load(&disk_full))
        return syscall(SYS_write, fd, bytes, size);
    errno = ENOSPC;
    return -1;
}

/* Likewise: 6 MiB are free once the disk is full, where a segment has 4. */
int fstatvfs(int fd, struct statvfs *ret_disk)
{
    (void)fd;
    *ret_disk = (struct statvfs){ .f_frsize = 4096, .f_bavail = 1u << 20 };
    if (atomic_load(&disk_full))
        ret_disk->f_bavail = 6u * 1024 * 1024 / 4096;
    return 0;
}

static void on_log(void *sink, enum log_level level, const char *event,
                   const struct log_field *fields)
{
    (void)sink;
    (void)level;
    (void)fields;
    if (strcmp(event, "log.recycle_failed") == 0)
        atomic_fetch_add(&recycles_failed, 1);
}

static int setup(void **state)
{
    struct fixture *fixture = mem_alloc(sizeof *fixture);

    fixture_init(fixture);
    fixture->sink.write = on_log;
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

/* For at most 60 s. */
static bool comes_true(struct fixture *f, bool (*is_true)(struct fixture *f))
{
    for (uint32_t i = 0; i < 60000 && !is_true(f); i++)
        usleep(1000);
    return is_true(f);
}

static bool waits_for_space(struct fixture *f)
{
    struct node_log_stats stats;
    int done = 0;

    node_log_stats_get(f->log, &stats);
    sem_getvalue(&f->done, &done);
    return stats.space_waits > 0 || done > 0;
}

static void a_reset_waits_until_the_orphans_are_in_the_audit_file(void **state)
{
    struct fixture *f = *state;
    struct node_log_request reset = { .client = &f->client, .type = NODE_LOG_RESET, .shard = 4 };
    struct node_log_stats stats;
    int done = 0;

    fixture_open(f);
    fixture_append(f, 4, 3, 100);
    atomic_store(&disk_full, true);
    node_log_submit_list(f->log, &reset, &reset);
    assert_true(comes_true(f, waits_for_space));
    sem_getvalue(&f->done, &done);
    assert_int_equal(done, 0);
    atomic_store(&disk_full, false);
    while (sem_wait(&f->done) != 0)
        ;
    node_log_stats_get(f->log, &stats);
    assert_int_equal(stats.orphans, 1); /* What was not committed. */
    fixture_close(f);
}

static bool has_failed(struct fixture *f)
{
    (void)f;
    return atomic_load(&recycles_failed) > 0;
}

static bool has_recycled_two(struct fixture *f)
{
    struct node_log_stats stats;

    node_log_stats_get(f->log, &stats);
    return stats.recycled >= 2;
}

static void append_segments(struct fixture *f, uint32_t count)
{
    for (uint32_t i = 0; i < count * 6; i++)
        fixture_append(f, 1, 500, 1500);
    node_log_retain(f->log, 1, f->shards[1].last_index - 10);
}

/* Else the next start would find the oldest one's records behind a gap. */
static void a_dead_segment_that_keeps_its_name_is_passed_by_no_later_one(void **state)
{
    struct fixture *f = *state;
    char taken[4][128];

    f->config.spare_segments = 4;
    fixture_open(f);
    append_segments(f, 1);
    for (uint32_t i = 0; i < 4; i++) {
        fixture_segment_path(f, 6 + i, taken[i]);
        assert_int_equal(mkdir(taken[i], 0700), 0);
    }
    append_segments(f, 1);
    assert_true(comes_true(f, has_failed));
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(rmdir(taken[i]), 0);
    append_segments(f, 3);
    assert_true(comes_true(f, has_recycled_two));
    fixture_close(f);
    fixture_open(f);
    fixture_expect(f, 1, f->shards[1].last_index - 10);
    fixture_close(f);
}

static bool has_spare(struct fixture *f)
{
    struct node_log_stats stats;

    node_log_stats_get(f->log, &stats);
    return stats.spare_segments > 0;
}

static bool is_low(struct fixture *f)
{
    return !node_log_space_ok(f->log);
}

/* Its zeros would take the last room of others, if only until it is given up. */
static void a_spare_is_not_begun_where_it_would_fill_the_disk(void **state)
{
    struct fixture *f = *state;

    fixture_open(f);
    assert_true(comes_true(f, has_spare));
    atomic_store(&disk_full, true);
    fixture_append(f, 1, 4, ENTRY_BODY_BYTES_MAX - 4096); /* Into the spare. */
    assert_true(comes_true(f, is_low));
    assert_false(has_spare(f));
    atomic_store(&disk_full, false);
    assert_true(comes_true(f, has_spare)); /* It is tried each second. */
    fixture_close(f);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_reset_waits_until_the_orphans_are_in_the_audit_file),
        TEST(a_dead_segment_that_keeps_its_name_is_passed_by_no_later_one),
        TEST(a_spare_is_not_begun_where_it_would_fill_the_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
