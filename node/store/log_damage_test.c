/*
 * What the log makes of changed bytes: whatever was acknowledged is there, or its shard says that
 * it is damaged. Nothing is silently absent, and nothing torn by a crash is called damage.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/store/log_fixture.h"
#include "runtime/base/check.h"

#define SMALL_BYTES (64u * 1024u)

/* A small log as the disk has it, cut out of its segment, to be changed and inspected. */
struct small {
    struct fixture fixture;
    char directory[80];
    char path[128];
    uint8_t original[SMALL_BYTES];
    uint8_t bytes[SMALL_BYTES];
    uint32_t end; /* Of the last batch. */
};

static void small_write(struct small *small)
{
    fixture_write_file(small->path, small->bytes, SMALL_BYTES);
}

static struct node_log *small_inspect(struct small *small, struct log_tail *ret_tail)
{
    struct node_log_config config = small->fixture.config;
    struct node_log *log = NULL;

    config.directory = small->directory;
    config.segment_bytes = SMALL_BYTES;
    config.direct_io = false;
    assert_int_equal(node_log_inspect(&config, &log, ret_tail), ERR_OK);
    return log;
}

static void fill(struct fixture *f)
{
    fixture_open(f);
    fixture_promise(f, 0, 3);
    fixture_append(f, 0, 3, 120);
    fixture_append(f, 1, 9, 700);
    fixture_promise(f, 2, 4);
    fixture_append(f, 3, 2, 10);
    fixture_truncate(f, 3, 1);
    fixture_append(f, 3, 2, 20);
    fixture_commit(f, 3, 3);
    fixture_append(f, 0, 2, 30);
}

/* How the log ends: `clean` closes it; otherwise its last batch is the last acknowledged one. */
static int setup_log(void **state, bool clean)
{
    struct small *small = mem_zalloc(sizeof *small);
    struct fixture *f = &small->fixture;
    char path[128];
    struct log_tail tail;

    fixture_init(f);
    f->config.direct_io = false;
    fill(f);
    fixture_segment_path(f, 1, path);
    if (clean)
        fixture_close(f);
    fixture_read_file(path, small->original, SMALL_BYTES);
    if (!clean)
        fixture_close(f);
    memcpy(small->bytes, small->original, SMALL_BYTES);
    snprintf(small->directory, sizeof small->directory, "%s/small", f->directory);
    assert_int_equal(mkdir(small->directory, 0700), 0);
    snprintf(small->path, sizeof small->path, "%s/%010u.seg", small->directory, 1u);
    small_write(small);
    struct node_log *log = small_inspect(small, &tail);
    for (uint32_t shard = 0; shard < FIXTURE_SHARDS; shard++)
        assert_true(fixture_matches(f, log, shard, 0));
    small->end = tail.offset;
    node_log_close(log);
    *state = small;
    return 0;
}

static int setup_clean(void **state)
{
    return setup_log(state, true);
}

static int setup_killed(void **state)
{
    return setup_log(state, false);
}

static int teardown(void **state)
{
    struct small *small = *state;

    fixture_deinit(&small->fixture);
    free(small);
    return 0;
}

/* Shards that are neither as they were nor marked damaged. */
static uint32_t count_silent(struct small *small, struct node_log *log, uint32_t *ret_damaged)
{
    uint32_t silent = 0;

    for (uint32_t shard = 0; shard < FIXTURE_SHARDS; shard++) {
        char text[NODE_LOG_TEXT_BYTES];
        bool same = fixture_matches(&small->fixture, log, shard, 0);
        bool damaged = node_log_damage(log, shard, text);

        silent += !same && !damaged;
        *ret_damaged += damaged;
        if (damaged && strstr(text, "0000000001.seg") == NULL)
            fail_msg("the text names no file: %s", text);
    }
    return silent;
}

static void flip_every_byte(struct small *small)
{
    uint32_t detected = 0;
    uint32_t harmless = 0;

    for (uint32_t at = 0; at < small->end + 2 * BLOCK_BYTES; at++) {
        struct log_tail tail;
        uint32_t damaged = 0;
        uint8_t was = small->bytes[at];

        small->bytes[at] = (uint8_t)(was ^ (at % 3 == 0 ? 0xff : 1u << (at % 8)));
        small_write(small);
        struct node_log *log = small_inspect(small, &tail);
        if (count_silent(small, log, &damaged) > 0)
            fail_msg("byte %u changed, and a shard is silently wrong", at);
        detected += damaged > 0;
        harmless += damaged == 0;
        /* Nothing behind the end may be taken for a batch that was lost. */
        if (at >= small->end)
            assert_int_equal(damaged, 0);
        node_log_close(log);
        small->bytes[at] = was;
    }
    assert_true(detected > 1000);
    assert_true(harmless > 0);
}

static void any_changed_byte_is_detected_or_harmless(void **state)
{
    flip_every_byte(*state);
}

/* Without a later batch to say that the last one was durable. */
static void any_changed_byte_of_a_killed_nodes_log_is_detected_or_harmless(void **state)
{
    flip_every_byte(*state);
}

static uint32_t last_batch(const struct small *small)
{
    uint32_t at = small->end - BLOCK_BYTES;

    while (sector_examine(small->bytes + at, FIXTURE_REPLICA).number != 0)
        at -= BLOCK_BYTES;
    return at;
}

static void zero_sector(struct small *small, uint32_t at)
{
    memset(small->bytes + at, 0, SECTOR_BYTES);
}

/* The last append (shard 0, two entries) never reached the disk as a whole. */
static void expect_torn(struct small *small, bool torn)
{
    struct fixture_shard *model = &small->fixture.shards[0];
    uint64_t last = model->last_index;
    uint64_t commit = model->commit_index;
    uint32_t damaged = 0;
    struct log_tail tail;

    small_write(small);
    struct node_log *log = small_inspect(small, &tail);
    if (torn) {
        model->last_index = last - 2;
        model->commit_index = last - 3;
    }
    if (count_silent(small, log, &damaged) > 0)
        fail_msg("a shard is silently wrong");
    assert_int_equal(damaged > 0, !torn);
    model->last_index = last;
    model->commit_index = commit;
    node_log_close(log);
}

static void a_torn_tail_is_cut_off_whatever_part_of_it_was_written(void **state)
{
    struct small *small = *state;
    uint32_t batch = last_batch(small);

    assert_int_equal(small->end - batch, BLOCK_BYTES);
    for (uint32_t mask = 0; mask < 255; mask++) {
        for (uint32_t i = 0; i < BLOCK_SECTORS; i++) {
            if ((mask & 1u << i) == 0)
                zero_sector(small, batch + i * SECTOR_BYTES);
        }
        expect_torn(small, true);
        memcpy(small->bytes, small->original, SMALL_BYTES);
    }
}

static void a_torn_tail_over_an_earlier_use_is_cut_off_too(void **state)
{
    struct small *small = *state;
    uint32_t batch = last_batch(small);

    /* Batches of a lower sequence, as a segment that is used again holds them. */
    for (uint32_t first = 0; first < BLOCK_SECTORS; first++) {
        memcpy(small->bytes + batch + first * SECTOR_BYTES, small->bytes + first * SECTOR_BYTES,
               BLOCK_BYTES - first * SECTOR_BYTES);
        expect_torn(small, true);
        memcpy(small->bytes, small->original, SMALL_BYTES);
    }
}

static void garbage_in_a_tail_that_was_torn_anyway_is_cut_off(void **state)
{
    struct small *small = *state;
    uint32_t batch = last_batch(small);

    zero_sector(small, batch + 3 * SECTOR_BYTES);
    memset(small->bytes + batch, 0x5b, SECTOR_BYTES);
    expect_torn(small, true);
}

static void a_last_batch_of_garbage_is_damage_since_it_may_have_been_acknowledged(void **state)
{
    struct small *small = *state;

    memset(small->bytes + last_batch(small), 0x5b, BLOCK_BYTES);
    expect_torn(small, false);
}

static void what_a_later_batch_calls_durable_is_damage_when_torn(void **state)
{
    struct small *small = *state;
    uint32_t mark = last_batch(small);

    zero_sector(small, mark - BLOCK_BYTES);
    expect_torn(small, false);
}

static void a_file_cut_short_is_damage(void **state)
{
    struct small *small = *state;
    uint32_t damaged = 0;
    struct log_tail tail;

    assert_int_equal(truncate(small->path, small->end / 2), 0);
    struct node_log *log = small_inspect(small, &tail);
    assert_int_equal(count_silent(small, log, &damaged), 0);
    assert_true(damaged > 0);
    node_log_close(log);
}

static void another_replicas_log_is_damage(void **state)
{
    struct small *small = *state;
    uint32_t damaged = 0;
    struct log_tail tail;

    small->fixture.config.replica_id++;
    struct node_log *log = small_inspect(small, &tail);
    assert_int_equal(count_silent(small, log, &damaged), 0);
    assert_int_equal(damaged, FIXTURE_SHARDS);
    node_log_close(log);
}

/* ---- whole logs --------------------------------------------------------------------------- */

static void flip_on_disk(const struct fixture *f, uint32_t number, uint32_t offset)
{
    char path[128];
    uint8_t byte;

    fixture_segment_path(f, number, path);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, (long)offset, SEEK_SET), 0);
    assert_int_equal(fread(&byte, 1, 1, file), 1);
    byte ^= 0x10;
    assert_int_equal(fseek(file, (long)offset, SEEK_SET), 0);
    assert_int_equal(fwrite(&byte, 1, 1, file), 1);
    assert_int_equal(fclose(file), 0);
}

static uint32_t place_of(struct fixture *f, uint32_t shard, uint64_t index, uint32_t *ret_segment)
{
    const struct log_place *place = log_index_find(&f->log->shards[shard].index, index);

    assert_non_null(place);
    *ret_segment = place->segment;
    return place->offset;
}

static bool is_damaged(struct fixture *f, uint32_t shard)
{
    char text[NODE_LOG_TEXT_BYTES];

    return node_log_damage(f->log, shard, text);
}

static int setup_plain(void **state)
{
    struct small *small = mem_zalloc(sizeof *small);

    fixture_init(&small->fixture);
    *state = small;
    return 0;
}

static void expect_dropped(struct fixture *f, bool dropped)
{
    struct node_log_shard known;

    fixture_close(f);
    fixture_open(f);
    node_log_shard_get(f->log, 4, &known);
    assert_int_equal(known.dropped, dropped);
}

static void expect_differs(struct fixture *f, bool differs)
{
    struct node_log_shard known;

    fixture_close(f);
    fixture_open(f);
    node_log_shard_get(f->log, 4, &known);
    assert_int_equal(known.differs, differs);
}

/* Until a snapshot takes the place of its rows; recycled segments do not take it along. */
static void a_shard_whose_outcomes_differ_is_known_after_restarts(void **state)
{
    struct fixture *f = &((struct small *)*state)->fixture;
    struct rep_write write = { .type = REP_WRITE_PROMISE, .promise = { 3, 9, 2 } };

    fixture_open(f);
    fixture_promise(f, 4, 6);
    fixture_append(f, 4, 20, 1000);
    expect_differs(f, false);
    write.differs = true;
    fixture_write(f, 4, &write);
    expect_differs(f, true);
    for (uint32_t round = 0; round < 12; round++) {
        fixture_append(f, 1, 1, ENTRY_BODY_BYTES_MAX);
        node_log_retain(f->log, 1, f->shards[1].last_index);
    }
    expect_differs(f, true);
    fixture_reset(f, 4);
    expect_differs(f, false);
    fixture_close(f);
}

/* Only its replica knows when it holds all again. */
static void a_removed_shard_that_was_reset_is_known_as_dropped(void **state)
{
    struct fixture *f = &((struct small *)*state)->fixture;
    struct rep_write write = { .type = REP_WRITE_PROMISE, .promise = { 3, 9, 0 } };

    fixture_open(f);
    fixture_promise(f, 4, 6);
    fixture_append(f, 4, 20, 1000);
    fixture_reset(f, 4); /* For a snapshot. */
    expect_dropped(f, false);
    fixture_write(f, 4, &write);
    expect_dropped(f, false);
    fixture_reset(f, 4);
    expect_dropped(f, true);
    write =
        (struct rep_write){ .type = REP_WRITE_PROMISE, .promise = { 3, 10, 9 }, .dropped = true };
    fixture_write(f, 4, &write);
    fixture_reset(f, 4);
    for (uint32_t round = 0; round < 12; round++) {
        fixture_append(f, 1, 1, ENTRY_BODY_BYTES_MAX);
        node_log_retain(f->log, 1, f->shards[1].last_index);
    }
    expect_dropped(f, true);
    write.dropped = false;
    fixture_write(f, 4, &write);
    expect_dropped(f, false);
    fixture_close(f);
}

static void damage_stays_known_over_recycling_until_the_shard_is_reset(void **state)
{
    struct fixture *f = &((struct small *)*state)->fixture;
    uint32_t segment;

    fixture_open(f);
    fixture_promise(f, 4, 6);
    fixture_append(f, 4, 20, 1000);
    fixture_append(f, 5, 20, 1000);
    uint32_t offset = place_of(f, 4, 7, &segment);
    fixture_close(f);
    flip_on_disk(f, segment, offset + 200);
    fixture_open(f);
    assert_true(is_damaged(f, 4));
    fixture_expect(f, 5, 0);
    assert_true(f->errors_logged > 0);

    /* The segment with the damage goes; the knowledge does not. */
    node_log_retain(f->log, 4, 20);
    node_log_retain(f->log, 5, 20);
    for (uint32_t round = 0; round < 12; round++) {
        fixture_append(f, 1, 1, ENTRY_BODY_BYTES_MAX);
        node_log_retain(f->log, 1, f->shards[1].last_index);
    }
    fixture_close(f);
    fixture_open(f);
    assert_true(f->log->segments.used.first->number > segment);
    assert_true(is_damaged(f, 4));
    assert_false(is_damaged(f, 5));

    struct node_log_shard known;
    struct node_log_stats before, after;
    node_log_shard_get(f->log, 4, &known);
    node_log_stats_get(f->log, &before);
    fixture_reset(f, 4);
    node_log_stats_get(f->log, &after);
    /* Only what may never have been committed is an orphan. */
    assert_true(after.orphans - before.orphans <= 20 - known.commit_index);
    assert_false(is_damaged(f, 4));
    fixture_append(f, 4, 3, 100);
    fixture_close(f);
    fixture_open(f);
    fixture_expect(f, 4, 0);
    fixture_close(f);
}

static void only_the_shards_of_what_was_lost_are_damaged(void **state)
{
    struct fixture *f = &((struct small *)*state)->fixture;
    uint32_t segment;

    fixture_open(f);
    for (uint32_t shard = 0; shard < FIXTURE_SHARDS; shard++)
        fixture_append(f, shard, 10, 800);
    uint32_t offset = place_of(f, 3, 5, &segment);
    fixture_close(f);
    flip_on_disk(f, segment, offset + RECORD_HEADER_BYTES + 300);
    fixture_open(f);
    for (uint32_t shard = 0; shard < FIXTURE_SHARDS; shard++) {
        assert_int_equal(is_damaged(f, shard), shard == 3);
        if (shard != 3)
            fixture_expect(f, shard, 0);
    }
    fixture_close(f);
}

static void damage_under_a_running_log_is_found_by_the_read(void **state)
{
    struct fixture *f = &((struct small *)*state)->fixture;
    struct node_log_range range = { .shard = 2, .from_index = 1, .to_index = 30, .bytes_max = ~0u };
    struct entry **entries = NULL;
    uint32_t segment, count = 0;

    f->config.direct_io = false;
    fixture_open(f);
    fixture_append(f, 2, 30, 500);
    flip_on_disk(f, 1, place_of(f, 2, 11, &segment) + 100);
    assert_int_equal(node_log_read(f->log, &range, &entries, &count), ERR_CORRUPT);
    assert_true(is_damaged(f, 2));
    fixture_append(f, 1, 1, 10);
    fixture_close(f);
    fixture_open(f);
    assert_true(is_damaged(f, 2));
    fixture_expect(f, 1, 0);
    fixture_close(f);
}

static void a_missing_segment_is_damage(void **state)
{
    struct fixture *f = &((struct small *)*state)->fixture;
    char path[128];

    fixture_open(f);
    fixture_append(f, 1, 12, ENTRY_BODY_BYTES_MAX);
    fixture_close(f);
    fixture_segment_path(f, 2, path);
    assert_int_equal(unlink(path), 0);
    fixture_open(f);
    for (uint32_t shard = 0; shard < FIXTURE_SHARDS; shard++)
        assert_true(is_damaged(f, shard));
    fixture_close(f);
}

/* What the database had of a shard is lost: it counts as damaged until the log is emptied. */
static void lost_rows_are_marked_durably(void **state)
{
    struct small *small = *state;
    struct fixture *f = &small->fixture;
    bool lost[FIXTURE_SHARDS] = { false };
    char text[NODE_LOG_TEXT_BYTES];

    fixture_open(f);
    fixture_promise(f, 1, 3);
    fixture_append(f, 1, 4, 100);
    fixture_append(f, 2, 4, 100);
    fixture_close(f);
    lost[1] = lost[3] = true; /* Of 3 the log knows nothing: it was never here. */
    f->config.lost = lost;
    fixture_open(f);
    f->config.lost = NULL;
    fixture_close(f);
    fixture_open(f);
    assert_true(node_log_damage(f->log, 1, text));
    assert_false(node_log_damage(f->log, 2, text));
    assert_false(node_log_damage(f->log, 3, text));
    fixture_reset(f, 1);
    fixture_close(f);
    fixture_open(f);
    assert_false(node_log_damage(f->log, 1, text));
    fixture_close(f);
}

int main(void)
{
#define TEST(name, setup) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(any_changed_byte_is_detected_or_harmless, setup_clean),
        TEST(any_changed_byte_of_a_killed_nodes_log_is_detected_or_harmless, setup_killed),
        TEST(a_torn_tail_is_cut_off_whatever_part_of_it_was_written, setup_killed),
        TEST(a_torn_tail_over_an_earlier_use_is_cut_off_too, setup_killed),
        TEST(garbage_in_a_tail_that_was_torn_anyway_is_cut_off, setup_killed),
        TEST(a_last_batch_of_garbage_is_damage_since_it_may_have_been_acknowledged, setup_killed),
        TEST(what_a_later_batch_calls_durable_is_damage_when_torn, setup_clean),
        TEST(a_file_cut_short_is_damage, setup_clean),
        TEST(another_replicas_log_is_damage, setup_clean),
        TEST(a_removed_shard_that_was_reset_is_known_as_dropped, setup_plain),
        TEST(a_shard_whose_outcomes_differ_is_known_after_restarts, setup_plain),
        TEST(damage_stays_known_over_recycling_until_the_shard_is_reset, setup_plain),
        TEST(only_the_shards_of_what_was_lost_are_damaged, setup_plain),
        TEST(damage_under_a_running_log_is_found_by_the_read, setup_plain),
        TEST(a_missing_segment_is_damage, setup_plain),
        TEST(lost_rows_are_marked_durably, setup_plain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
