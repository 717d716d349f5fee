/*
 * The scrub of a log in use: whatever changed in a sealed segment is found and named, what was
 * found once is not found again, and what is cut or used again meanwhile is no damage.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/store/log_fixture.h"
#include "runtime/base/check.h"

#define STEP_BYTES  (256u * 1024u)
#define BODY_BYTES  3000u
#define FLIP_STRIDE 16411u /* A prime, so that flips meet every part of sectors and records. */
#define WRITERS     4u     /* Shards 0 to 3 are written to. */

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);

    fixture_init(f);
    fixture_open(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    fixture_close(f);
    fixture_deinit(f);
    free(f);
    return 0;
}

/* Until `number` is being written, so that those before it are sealed. Batches of several sizes. */
static void fill_to(struct fixture *f, uint32_t number)
{
    struct log_segment *segment;

    for (uint32_t round = 1;; round++) {
        segment = log_segments_acquire(&f->log->segments, number);
        if (segment != NULL)
            break;
        for (uint32_t shard = 0; shard < WRITERS; shard++)
            fixture_append(f, shard, round % 5 + 1, BODY_BYTES * (shard + 1));
    }
    log_segment_release(&f->log->segments, segment);
}

static uint32_t damaged_shards(struct fixture *f)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < FIXTURE_SHARDS; i++) {
        char text[NODE_LOG_TEXT_BYTES];

        count += node_log_damage(f->log, i, text);
    }
    return count;
}

/* A whole pass; the first damage that a step says. */
static err scrub(struct fixture *f, uint32_t step_bytes, uint32_t *ret_shard)
{
    struct node_log_scrub pass = { 0 };
    err e = ERR_OK;

    while (e == ERR_OK && !pass.complete)
        e = node_log_scrub_step(f->log, &pass, step_bytes, ret_shard);
    return e;
}

static void change(const char *path, uint32_t at, uint8_t mask)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    uint8_t byte;

    CHECK(fd >= 0);
    CHECK(pread(fd, &byte, 1, (off_t)at) == 1);
    byte ^= mask;
    CHECK(pwrite(fd, &byte, 1, (off_t)at) == 1);
    CHECK(fdatasync(fd) == 0); /* The scrub looks at the disk, past the system's pages. */
    close(fd);
}

static uint8_t *read_segment(struct fixture *f, uint32_t number)
{
    uint8_t *bytes = mem_alloc(f->config.segment_bytes);
    char path[128];

    fixture_segment_path(f, number, path);
    fixture_read_file(path, bytes, f->config.segment_bytes);
    return bytes;
}

/* Where its batches end. */
static uint32_t written_bytes(struct fixture *f, const uint8_t *bytes)
{
    uint32_t at = f->config.segment_bytes;

    while (bytes[at - 1] == 0)
        at--;
    return (at + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
}

/* Whether the byte is one of a batch's stream, or of the sectors that it fills: the padding of a
 * batch's last block is never read. */
static bool is_read(struct fixture *f, const uint8_t *bytes, uint32_t at)
{
    uint32_t begin = 0;

    while (begin < written_bytes(f, bytes)) {
        struct sector sector = sector_examine(bytes + begin, FIXTURE_REPLICA);
        struct batch_header header;
        uint32_t end = begin + sector.count * SECTOR_BYTES;

        CHECK(batch_header_decode(bytes + begin, &header) == ERR_OK);
        if (at < end)
            return (at - begin) / SECTOR_BYTES * SECTOR_STREAM_BYTES < header.stream_bytes;
        begin = end;
    }
    return false;
}

/* Where the batch of some place in the middle begins. */
static uint32_t middle_batch(struct fixture *f, const uint8_t *bytes, uint32_t *ret_size)
{
    for (uint32_t at = written_bytes(f, bytes) / 2 / BLOCK_BYTES * BLOCK_BYTES;;
         at += BLOCK_BYTES) {
        struct sector sector = sector_examine(bytes + at, FIXTURE_REPLICA);

        if (sector.state != SECTOR_VALID || sector.number != 0)
            continue;
        *ret_size = sector.count * SECTOR_BYTES;
        return at;
    }
}

/* As if it had not been looked for yet. */
static void forget_damage(struct fixture *f)
{
    for (uint32_t i = 0; i < FIXTURE_SHARDS; i++) {
        struct log_shard *shard = &f->log->shards[i];

        pthread_mutex_lock(&shard->lock);
        shard->damaged = false;
        shard->damage_unwritten = false;
        free(shard->damage_text);
        shard->damage_text = NULL;
        pthread_mutex_unlock(&shard->lock);
    }
}

/* ---- what is whole ------------------------------------------------------------------------ */

static void a_whole_log_passes_in_steps_of_any_size(void **state)
{
    struct fixture *f = *state;
    uint32_t sizes[] = { 1, 8192, 100000, STEP_BYTES, 64u * 1024u * 1024u };
    uint32_t shard;

    assert_int_equal(scrub(f, STEP_BYTES, &shard), ERR_OK); /* Nothing is sealed. */
    fixture_promise(f, 5, 3);
    fill_to(f, 2);
    fixture_truncate(f, 0, 1);
    fixture_append(f, 0, 2, 10);
    fixture_commit(f, 0, 2);
    fill_to(f, 4);
    for (uint32_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        assert_int_equal(scrub(f, sizes[i], &shard), ERR_OK);
    fixture_close(f); /* And after a start: batches that only mark one stand in between. */
    fixture_open(f);
    fill_to(f, 5);
    assert_int_equal(scrub(f, STEP_BYTES, &shard), ERR_OK);
    assert_int_equal(atomic_load(&f->errors_logged), 0);
}

static void a_pass_reads_the_sealed_segments_and_no_other(void **state)
{
    struct fixture *f = *state;
    struct node_log_scrub pass = { 0 };
    char path[128];
    uint32_t shard;

    fill_to(f, 3);
    fixture_segment_path(f, 3, path);
    change(path, INT16_MAX, 0x10); /* Of the one being written. */
    while (!pass.complete)
        assert_int_equal(node_log_scrub_step(f->log, &pass, STEP_BYTES, &shard), ERR_OK);
    assert_in_range(pass.read_bytes, 2 * (uint64_t)f->config.segment_bytes,
                    5 * (uint64_t)f->config.segment_bytes);
    change(path, INT16_MAX, 0x10);
}

static void a_segment_that_is_used_again_meanwhile_is_no_damage(void **state)
{
    struct fixture *f = *state;
    struct node_log_scrub pass = { 0 };
    struct log_segment *segment;
    char path[128];
    uint32_t shard;

    fill_to(f, 4);
    fixture_segment_path(f, 1, path);
    assert_int_equal(node_log_scrub_step(f->log, &pass, STEP_BYTES, &shard), ERR_OK);
    assert_int_equal(pass.segment, 1);
    assert_true(pass.offset > 0);
    change(path, f->config.segment_bytes / 2, 0xff); /* Damage; but then it is dead. */
    for (uint32_t i = 0; i < WRITERS; i++)
        node_log_retain(f->log, i, f->shards[i].last_index);
    fill_to(f, 9);
    segment = log_segments_acquire(&f->log->segments, 1);
    assert_null(segment);
    while (!pass.complete)
        assert_int_equal(node_log_scrub_step(f->log, &pass, STEP_BYTES, &shard), ERR_OK);
    assert_int_equal(damaged_shards(f), 0);
    assert_int_equal(atomic_load(&f->errors_logged), 0);
}

struct scrubber {
    struct fixture *fixture;
    atomic_bool stop;
    _Atomic uint32_t passes, found;
};

static void *scrub_on(void *context)
{
    struct scrubber *scrubber = context;
    uint32_t shard;

    while (!atomic_load(&scrubber->stop)) {
        if (scrub(scrubber->fixture, STEP_BYTES, &shard) != ERR_OK)
            atomic_fetch_add(&scrubber->found, 1);
        atomic_fetch_add(&scrubber->passes, 1);
    }
    return NULL;
}

/* Cut, recycled and written all the time. */
static void a_log_in_use_passes(void **state)
{
    struct fixture *f = *state;
    struct scrubber scrubber = { .fixture = f };
    struct node_log_stats stats;
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, scrub_on, &scrubber), 0);
    for (uint32_t round = 0; round < 200; round++) {
        for (uint32_t shard = 0; shard < WRITERS; shard++) {
            fixture_append(f, shard, 20, BODY_BYTES * (shard + 1));
            node_log_retain(f->log, shard, f->shards[shard].last_index - 5);
        }
        if (round % 10 == 3)
            fixture_reset(f, round / 10 % WRITERS);
    }
    atomic_store(&scrubber.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    node_log_stats_get(f->log, &stats);
    assert_true(stats.recycled > 5);
    assert_true(atomic_load(&scrubber.passes) > 0);
    assert_int_equal(atomic_load(&scrubber.found), 0);
    assert_int_equal(atomic_load(&f->errors_logged), 0);
}

/* ---- what is not -------------------------------------------------------------------------- */

static void a_changed_byte_is_found_wherever_something_was_written(void **state)
{
    struct fixture *f = *state;
    uint32_t found = 0, harmless = 0, shard;
    char path[128];

    fill_to(f, 3);
    fixture_segment_path(f, 1, path);
    uint8_t *bytes = read_segment(f, 1);
    for (uint32_t at = 0; at < f->config.segment_bytes; at += FLIP_STRIDE) {
        change(path, at, 0x04);
        err e = scrub(f, STEP_BYTES, &shard);
        change(path, at, 0x04);
        if (e != (is_read(f, bytes, at) ? ERR_CORRUPT : ERR_OK))
            fail_msg("offset %u: %s", at, err_text(e));
        harmless += e == ERR_OK;
        if (e == ERR_OK)
            continue;
        char text[NODE_LOG_TEXT_BYTES];
        assert_true(node_log_damage(f->log, shard, text));
        assert_non_null(strstr(text, "0000000001.seg"));
        found++;
        forget_damage(f);
    }
    assert_true(found > 200);
    assert_true(harmless < found / 10);
    free(bytes);
    assert_int_equal(scrub(f, STEP_BYTES, &shard), ERR_OK);
}

static void damage_in_an_entry_is_that_of_its_shard_alone(void **state)
{
    struct fixture *f = *state;
    char path[128];
    char text[NODE_LOG_TEXT_BYTES];
    uint32_t shard, size;

    fill_to(f, 3);
    fixture_segment_path(f, 1, path);
    uint8_t *bytes = read_segment(f, 1);
    uint32_t at = middle_batch(f, bytes, &size);
    change(path, at + size - BLOCK_BYTES, 0x80); /* Its last record, behind the header. */
    free(bytes);
    assert_int_equal(scrub(f, STEP_BYTES, &shard), ERR_CORRUPT);
    assert_int_equal(damaged_shards(f), 1);
    assert_true(node_log_damage(f->log, shard, text));
    assert_non_null(strstr(text, path));
    assert_int_equal(scrub(f, STEP_BYTES, &shard), ERR_OK); /* It is known now, */
    fixture_close(f);
    fixture_open(f);
    assert_int_equal(damaged_shards(f), 1); /* by the next start, too, */
    fixture_reset(f, shard);
    assert_int_equal(damaged_shards(f), 0);
    assert_int_equal(scrub(f, STEP_BYTES, &shard), ERR_OK); /* and is of no use any more, */
    fixture_close(f);
    fixture_open(f);
    assert_int_equal(damaged_shards(f), 0);
    assert_int_equal(scrub(f, STEP_BYTES, &shard), ERR_OK); /* as the log itself says. */
}

/* Every shard that may have been in it. */
static void lost_headers_and_batches_are_of_all_shards(void **state)
{
    struct fixture *f = *state;
    char path[128];
    uint32_t shard, size;

    fixture_promise(f, 5, 3);
    fill_to(f, 3);
    fixture_segment_path(f, 2, path);
    uint8_t *bytes = read_segment(f, 2);
    uint32_t at = middle_batch(f, bytes, &size);
    change(path, at + 8, 0x01);
    assert_int_equal(scrub(f, STEP_BYTES, &shard), ERR_CORRUPT);
    assert_int_equal(damaged_shards(f), WRITERS + 1); /* Of the others nothing was ever written. */
    change(path, at + 8, 0x01);
    forget_damage(f);
    uint8_t *changed = mem_alloc(f->config.segment_bytes);
    for (uint32_t kind = 0; kind < 3; kind++) { /* A batch, the first one, the last ones. */
        memcpy(changed, bytes, f->config.segment_bytes);
        if (kind == 0)
            memset(changed + at, 0, size);
        else if (kind == 1)
            memset(changed, 0, BLOCK_BYTES * 64);
        else
            memset(changed + at, 0, f->config.segment_bytes - at);
        if (kind == 2) /* Only the next segment can tell: it is the first one's turn. */
            fill_to(f, 4);
        fixture_write_file(path, changed, f->config.segment_bytes);
        assert_int_equal(scrub(f, STEP_BYTES, &shard), ERR_CORRUPT);
        assert_int_equal(damaged_shards(f), WRITERS + 1);
        forget_damage(f);
    }
    fixture_write_file(path, bytes, f->config.segment_bytes);
    assert_int_equal(scrub(f, STEP_BYTES, &shard), ERR_OK);
    free(changed);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_whole_log_passes_in_steps_of_any_size, setup, teardown),
        cmocka_unit_test_setup_teardown(a_pass_reads_the_sealed_segments_and_no_other, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_segment_that_is_used_again_meanwhile_is_no_damage, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_log_in_use_passes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_changed_byte_is_found_wherever_something_was_written,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(damage_in_an_entry_is_that_of_its_shard_alone, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(lost_headers_and_batches_are_of_all_shards, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
