/*
 * Backups and restores of documents at three members in one process: what a first page waits for,
 * and what becomes of a member that still holds what was before a restore.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "holdfast/v1/backup.pb-c.h"
#include "idl/error_code.h"
#include "idl/method.h"
#include "node/io/mergeable/mergers_fixture.h"
#include "node/io/view/shard_view.h"
#include "runtime/base/check.h"
#include "runtime/base/test_directory.h"

#define TRIO 3u /* Members of the shard. */

static const struct hash128 backup = { "sixteen bytes of" };

/* ---- calls ---- */

static enum reply_status write_room(struct world *w, uint32_t place, const char *key)
{
    return world_put(w, place, key, "1");
}

static void refused_with(const struct world *w, enum reply_status status,
                         Holdfast__V1__ErrorCode code)
{
    assert_int_equal(status, REPLY_REFUSED);
    world_refused_as(w, code);
}

struct page {
    struct buf rows;
    bool last;
    uint64_t reader, rest;
    uint32_t away;
};

/* `after`: empty, the first page. */
static enum reply_status read_behind(struct world *w, uint32_t place, uint64_t reader,
                                     struct slice after, struct page *page)
{
    Holdfast__V1__ReadDocumentsRequest request = HOLDFAST__V1__READ_DOCUMENTS_REQUEST__INIT;

    request.reader = reader;
    request.after = (ProtobufCBinaryData){ after.size, (uint8_t *)(uintptr_t)after.data };
    request.rest = after.size > 0 ? page->rest : 0;
    enum reply_status status = world_call(w, place, METHOD_READ_DOCUMENTS, &request.base);

    if (status != REPLY_OK)
        return status;
    Holdfast__V1__ReadDocumentsResponse *response = holdfast__v1__read_documents_response__unpack(
        NULL, w->answered.body.size, w->answered.body.data);

    assert_non_null(response);
    buf_clear(&page->rows);
    buf_append(&page->rows, response->rows.data, response->rows.len);
    page->last = response->last;
    page->reader = response->reader;
    page->rest = response->rest;
    page->away = response->members_away;
    holdfast__v1__read_documents_response__free_unpacked(response, NULL);
    return status;
}

static enum reply_status read_page(struct world *w, uint32_t place, uint64_t reader,
                                   struct page *page)
{
    return read_behind(w, place, reader, (struct slice){ 0 }, page);
}

static uint32_t count_rows(const struct page *page)
{
    struct reader reader = reader_from(buf_slice(&page->rows));
    uint32_t count = 0;

    for (; reader_left(&reader) > 0; count++) {
        (void)read_bytes(&reader, UINT32_MAX);
        (void)read_bytes(&reader, UINT32_MAX);
    }
    return count;
}

static enum reply_status put_rows(struct world *w, uint32_t place, const struct hash128 *id,
                                  struct slice rows, bool *ret_whole)
{
    Holdfast__V1__RestoreDocumentsRequest request = HOLDFAST__V1__RESTORE_DOCUMENTS_REQUEST__INIT;

    request.restore_id = (ProtobufCBinaryData){ sizeof id->bytes, (uint8_t *)(uintptr_t)id->bytes };
    request.rows = (ProtobufCBinaryData){ rows.size, (uint8_t *)(uintptr_t)rows.data };
    enum reply_status status = world_call(w, place, METHOD_RESTORE_DOCUMENTS, &request.base);

    if (status == REPLY_OK) {
        Holdfast__V1__RestoreDocumentsResponse *response =
            holdfast__v1__restore_documents_response__unpack(NULL, w->answered.body.size,
                                                             w->answered.body.data);

        *ret_whole = response->whole;
        holdfast__v1__restore_documents_response__free_unpacked(response, NULL);
    }
    return status;
}

static void log_says(struct world *w, uint32_t place, bool goes_on)
{
    w->members[place].restored =
        (struct mergers_restored){ .generation = shard_views_restore_generation(backup),
                                   .goes_on = goes_on };
}

static bool never(void *user)
{
    (void)user;
    return false;
}

static void pass(struct world *w, uint32_t ms)
{
    (void)loop_run_until(w->loop, never, w, ms);
}

/* How many documents that member shows. */
static uint32_t shown(struct world *w, uint32_t place)
{
    struct mergers_stats stats;

    pass(w, 2500);
    mergers_stats_get(w->members[place].mergers, &stats);
    return (uint32_t)stats.records[MERGE_POLICY_VECTOR];
}

/* ---- cases ---- */

static void a_first_page_waits_for_what_other_members_alone_have(void **state)
{
    struct world *w = *state;
    struct page page = { 0 };

    assert_int_equal(write_room(w, 0, "a"), REPLY_OK);
    w->cut = 2;
    assert_int_equal(write_room(w, 1, "b"), REPLY_OK);
    pass(w, 50);
    w->cut = 0;
    assert_int_equal(read_page(w, 0, 0, &page), REPLY_OK);
    assert_int_equal(count_rows(&page), 2);
    assert_int_equal(page.away, 0);
    assert_int_equal(read_page(w, 0, page.reader, &page), REPLY_OK);
    refused_with(w, read_page(w, 0, page.reader + 1, &page), CODE(VERSION_CONFLICT));
    buf_deinit(&page.rows);
}

static void a_member_that_is_away_is_counted_and_a_minority_gives_nothing(void **state)
{
    struct world *w = *state;
    struct page page = { 0 };

    assert_int_equal(write_room(w, 0, "a"), REPLY_OK);
    pass(w, 50);
    world_stop(w, 2);
    assert_int_equal(read_page(w, 0, 0, &page), REPLY_OK);
    assert_int_equal(count_rows(&page), 1);
    assert_int_equal(page.away, 1);
    world_stop(w, 1);
    refused_with(w, read_page(w, 0, 0, &page), CODE(UNAVAILABLE));
    world_start(w, 1);
    world_start(w, 2);
    buf_deinit(&page.rows);
}

static void a_member_that_was_removed_is_asked_too(void **state)
{
    const struct rep_record record = {
        .generation = 1,
        .epoch = 2,
        .owner = 1,
        .membership = { .config = 2, .count = 2, .members = { 1, 2 } },
    };
    struct world *w = *state;
    struct page page = { 0 };

    assert_int_equal(write_room(w, 0, "a"), REPLY_OK);
    pass(w, 300);
    w->cut = 3;
    assert_int_equal(write_room(w, 2, "b"), REPLY_OK);
    mergers_record(w->members[0].mergers, SHARD, &record);
    mergers_record(w->members[1].mergers, SHARD, &record);
    assert_int_equal(read_page(w, 0, 0, &page), REPLY_OK);
    assert_int_equal(count_rows(&page), 1);
    assert_int_equal(page.away, 1);
    w->cut = 0;
    pass(w, 3000);
    assert_int_equal(read_page(w, 0, 0, &page), REPLY_OK);
    assert_int_equal(count_rows(&page), 2);
    assert_int_equal(page.away, 0);
    buf_deinit(&page.rows);
}

/* A backup of thousands of shards would wait for it in each of them. */
static void a_member_that_is_away_is_waited_for_once(void **state)
{
    struct world *w = *state;
    struct page page = { 0 };
    uint64_t began_ms;

    assert_int_equal(write_room(w, 0, "a"), REPLY_OK);
    pass(w, 50);
    world_stop(w, 2);
    assert_int_equal(read_page(w, 0, 0, &page), REPLY_OK);
    began_ms = loop_now_ms(w->loop);
    for (uint32_t i = 0; i < 20; i++) {
        assert_int_equal(read_page(w, 0, 0, &page), REPLY_OK);
        assert_int_equal(page.away, 1);
    }
    assert_true(loop_now_ms(w->loop) - began_ms < 3000);
    world_start(w, 2);
    pass(w, 3000);
    assert_int_equal(read_page(w, 0, 0, &page), REPLY_OK);
    assert_int_equal(page.away, 0);
    buf_deinit(&page.rows);
}

static void a_shard_without_documents_gets_none_by_a_backup(void **state)
{
    struct world *w = *state;
    struct mergers_stats stats;
    struct page page = { 0 };

    assert_int_equal(read_page(w, 0, 0, &page), REPLY_OK);
    assert_int_equal(count_rows(&page), 0);
    for (uint32_t i = 0; i < TRIO; i++) {
        mergers_stats_get(w->members[i].mergers, &stats);
        assert_int_equal(stats.replicas, 0);
    }
}

static void a_restore_waits_for_its_entry_and_serves_no_call_meanwhile(void **state)
{
    static const struct hash128 other = { "another sixteen." };
    struct world *w = *state;
    bool whole;

    refused_with(w, put_rows(w, 0, &backup, (struct slice){ 0 }, &whole), CODE(UNAVAILABLE));
    log_says(w, 0, true);
    refused_with(w, put_rows(w, 0, &other, (struct slice){ 0 }, &whole), CODE(VERSION_CONFLICT));
    refused_with(w, write_room(w, 0, "a"), CODE(UNAVAILABLE));
    log_says(w, 1, true);
    log_says(w, 2, true);
    assert_int_equal(put_rows(w, 0, &backup, (struct slice){ 0 }, &whole), REPLY_OK);
    log_says(w, 0, false);
    refused_with(w, put_rows(w, 0, &backup, (struct slice){ 0 }, &whole), CODE(VERSION_CONFLICT));
    assert_int_equal(write_room(w, 0, "a"), REPLY_OK);
}

static struct slice last_key(const struct page *page)
{
    struct reader reader = reader_from(buf_slice(&page->rows));
    struct slice key = { 0 };

    while (reader_left(&reader) > 0) {
        key = read_bytes(&reader, UINT32_MAX);
        (void)read_bytes(&reader, UINT32_MAX);
    }
    return key;
}

static const char *large_json(void)
{
    static char json[DOCUMENT_BYTES_MAX + 1];

    memset(json, 'x', DOCUMENT_BYTES_MAX);
    json[0] = json[DOCUMENT_BYTES_MAX - 1] = '"';
    return json;
}

/* Two siblings of each side of a cut: of a MiB each, so each has a row. */
static void write_large(struct world *w, const char *key)
{
    w->cut = 3;
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(world_put(w, i < 2 ? 0 : 2, key, large_json()), REPLY_OK);
    w->cut = 0;
}

static void a_document_that_no_frame_holds_has_several_pages(void **state)
{
    struct world *w = *state;
    struct page page = { 0 }, again = { 0 };
    struct buf after = { 0 };
    uint32_t rows = 0, pages = 0;

    assert_int_equal(write_room(w, 0, "a"), REPLY_OK);
    write_large(w, "b");
    assert_int_equal(write_room(w, 0, "c"), REPLY_OK);
    assert_int_equal(read_page(w, 0, 0, &page), REPLY_OK);
    for (;;) {
        assert_true(w->answered.body.size < 4u * 1024 * 1024);
        rows += count_rows(&page);
        pages++;
        if (page.last)
            break;
        buf_clear(&after);
        struct slice key = last_key(&page);
        buf_append(&after, key.data, key.size);
        again.rest = page.rest;
        assert_int_equal(read_behind(w, 0, page.reader, buf_slice(&after), &again), REPLY_OK);
        assert_int_equal(read_behind(w, 0, page.reader, buf_slice(&after), &page), REPLY_OK);
        assert_true(slice_equal(buf_slice(&page.rows), buf_slice(&again.rows)));
    }
    assert_int_equal(rows, 1 + 4 + 1);
    assert_in_range(pages, 4, 6);
    buf_deinit(&page.rows);
    buf_deinit(&again.rows);
    buf_deinit(&after);
}

static uint32_t read_all(struct world *w)
{
    struct page page = { 0 };
    struct buf after = { 0 };

    assert_int_equal(read_page(w, 0, 0, &page), REPLY_OK);
    uint32_t rows = count_rows(&page);

    while (!page.last) {
        struct slice key = last_key(&page);
        buf_clear(&after);
        buf_append(&after, key.data, key.size);
        assert_int_equal(read_behind(w, 0, page.reader, buf_slice(&after), &page), REPLY_OK);
        rows += count_rows(&page);
    }
    buf_deinit(&page.rows);
    buf_deinit(&after);
    return rows;
}

/* What an earlier reading keeps is not told to a later one. */
static void a_later_reading_meets_a_large_document_as_it_is_then(void **state)
{
    struct world *w = *state;
    Holdfast__V1__DeleteDocumentRequest request = HOLDFAST__V1__DELETE_DOCUMENT_REQUEST__INIT;
    struct page page = { 0 };

    assert_int_equal(write_room(w, 0, "a"), REPLY_OK);
    write_large(w, "b");
    assert_int_equal(read_all(w), 1 + 4);
    request.entity = text_lend("player:7");
    request.op_id = text_lend("key:delete");
    request.collection = text_lend("rooms");
    request.key = text_lend("b");
    assert_int_equal(world_call(w, 0, METHOD_DELETE_DOCUMENT, &request.base), REPLY_OK);
    assert_int_equal(world_put(w, 0, "b", large_json()), REPLY_OK);
    assert_int_equal(write_room(w, 0, "c"), REPLY_OK);
    assert_int_equal(read_all(w), 1 + 1 + 1);
    pass(w, 1000);
    write_large(w, "d");
    assert_int_equal(read_page(w, 0, 0, &page), REPLY_OK);
    while (page.rest == 0) {
        struct buf after = { 0 };
        struct slice key = last_key(&page);
        buf_append(&after, key.data, key.size);
        assert_int_equal(read_behind(w, 0, page.reader, buf_slice(&after), &page), REPLY_OK);
        buf_deinit(&after);
    }
    pass(w, 61000);
    struct buf after = { 0 };
    struct slice key = last_key(&page);

    buf_append(&after, key.data, key.size);
    refused_with(w, read_behind(w, 0, page.reader, buf_slice(&after), &page),
                 CODE(VERSION_CONFLICT));
    buf_deinit(&page.rows);
    buf_deinit(&after);
}

/* A backup of one document, and three members that have none. */
static void take_backup(struct world *w, struct page *page)
{
    assert_int_equal(write_room(w, 0, "a"), REPLY_OK);
    assert_int_equal(read_page(w, 0, 0, page), REPLY_OK);
    pass(w, 300); /* Each has a database. */
    for (uint32_t i = 0; i < TRIO; i++) {
        world_stop(w, i);
        test_directory_remove(w->members[i].directory);
    }
    for (uint32_t i = 0; i < TRIO; i++)
        world_start(w, i);
}

static void all_logs_say(struct world *w, bool goes_on)
{
    for (uint32_t i = 0; i < TRIO; i++)
        log_says(w, i, goes_on);
}

static void start_all_behind(struct world *w)
{
    for (uint32_t i = 0; i < TRIO; i++) {
        world_stop(w, i);
        w->members[i].restored = (struct mergers_restored){ MERGERS_GENERATION_FIRST, false };
    }
    for (uint32_t i = 0; i < TRIO; i++)
        world_start(w, i);
}

static void what_a_member_acknowledged_before_its_entry_ends_the_restore(void **state)
{
    struct world *w = *state;
    bool whole;

    log_says(w, 0, true);
    log_says(w, 1, true);
    assert_int_equal(write_room(w, 2, "a"), REPLY_OK);
    log_says(w, 2, true);
    refused_with(w, put_rows(w, 0, &backup, (struct slice){ 0 }, &whole), CODE(VERSION_CONFLICT));
    refused_with(w, write_room(w, 2, "b"), CODE(UNAVAILABLE));
    assert_int_equal(shown(w, 2), 1);
    start_all_behind(w);
    all_logs_say(w, true);
    refused_with(w, put_rows(w, 0, &backup, (struct slice){ 0 }, &whole), CODE(VERSION_CONFLICT));
    assert_int_equal(shown(w, 2), 1);
}

static void an_owner_with_documents_refuses_a_restore_before_its_log(void **state)
{
    struct world *w = *state;

    assert_null(mergers_bars_restore(w->members[0].mergers, SHARD));
    assert_int_equal(write_room(w, 0, "a"), REPLY_OK);
    assert_non_null(mergers_bars_restore(w->members[0].mergers, SHARD));
}

static void no_document_is_put_before_each_member_has_begun(void **state)
{
    struct world *w = *state;
    bool whole;

    log_says(w, 0, true);
    log_says(w, 1, true);
    refused_with(w, put_rows(w, 0, &backup, (struct slice){ 0 }, &whole), CODE(UNAVAILABLE));
    log_says(w, 2, true);
    assert_int_equal(put_rows(w, 0, &backup, (struct slice){ 0 }, &whole), REPLY_OK);
    assert_true(whole);
}

/* They start on checkpoints from before the restore, which no owner has read yet. */
static void members_without_documents_remember_a_restore(void **state)
{
    struct world *w = *state;
    struct mergers_stats stats;
    bool whole;

    all_logs_say(w, true);
    assert_int_equal(put_rows(w, 0, &backup, (struct slice){ 0 }, &whole), REPLY_OK);
    start_all_behind(w);
    for (uint32_t i = 0; i < TRIO; i++) {
        mergers_stats_get(w->members[i].mergers, &stats);
        assert_int_equal(stats.replicas, 0);
        refused_with(w, write_room(w, i, "a"), CODE(UNAVAILABLE));
    }
    all_logs_say(w, false);
    assert_int_equal(write_room(w, 2, "a"), REPLY_OK);
    assert_int_equal(shown(w, 0), 1);
}

/* It may have joined after a restore. */
static void a_member_that_has_read_no_log_takes_no_write(void **state)
{
    struct world *w = *state;

    w->members[2].restored.generation = 0;
    refused_with(w, write_room(w, 2, "a"), CODE(UNAVAILABLE));
    w->members[2].restored.generation = MERGERS_GENERATION_FIRST;
    assert_int_equal(write_room(w, 2, "a"), REPLY_OK);
    w->members[2].restored.generation = 0;
    world_stop(w, 2);
    world_start(w, 2);
    assert_int_equal(write_room(w, 2, "b"), REPLY_OK); /* Its disk knows. */
}

/* All nodes start again on checkpoints from before the restore, which no owner has read yet. */
static void a_restore_that_a_start_interrupts_goes_on_where_it_was(void **state)
{
    struct world *w = *state;
    struct page page = { 0 };
    bool whole = false;

    take_backup(w, &page);
    all_logs_say(w, true);
    for (int i = 0; i < 100 && !whole; i++) {
        assert_int_equal(put_rows(w, 0, &backup, buf_slice(&page.rows), &whole), REPLY_OK);
        pass(w, 100);
    }
    assert_true(whole);
    start_all_behind(w);
    pass(w, 8000); /* Of reports, after which members would end its actor. */
    refused_with(w, write_room(w, 0, "b"), CODE(UNAVAILABLE));
    all_logs_say(w, true);
    pass(w, 300);
    assert_int_equal(put_rows(w, 0, &backup, buf_slice(&page.rows), &whole), REPLY_OK);
    all_logs_say(w, false);
    assert_int_equal(shown(w, 0), 1);
    assert_int_equal(write_room(w, 0, "b"), REPLY_OK);
    buf_deinit(&page.rows);
}

/* A record without it and its log's word of a restore come at once. */
static void a_member_that_left_drops_what_was_before_a_restore(void **state)
{
    struct world *w = *state;
    const struct rep_record record = {
        .generation = 1,
        .epoch = 2,
        .owner = 1,
        .membership = { .config = 2, .count = 2, .members = { 1, 2 } },
    };

    assert_int_equal(write_room(w, 0, "a"), REPLY_OK);
    pass(w, 300);
    w->cut = 3;
    for (uint32_t i = 0; i < TRIO; i++) {
        mergers_record(w->members[i].mergers, SHARD, &record);
        log_says(w, i, false);
    }
    pass(w, 600);
    assert_int_equal(shown(w, 2), 0);
}

/* Member 3 has two documents of before when it hears that a restore is over; neither comes back. */
static void a_member_that_was_away_brings_nothing_of_before_back(void **state)
{
    struct world *w = *state;

    w->cut = 3;
    assert_int_equal(write_room(w, 2, "a"), REPLY_OK);
    assert_int_equal(write_room(w, 2, "b"), REPLY_OK);
    pass(w, 50);
    log_says(w, 0, false);
    log_says(w, 1, false);
    assert_int_equal(write_room(w, 0, "x"), REPLY_OK);
    w->cut = 0;
    assert_int_equal(shown(w, 0), 1);
    assert_int_equal(shown(w, 1), 1);
    assert_int_equal(shown(w, 2), 2);
    refused_with(w, write_room(w, 2, "c"), CODE(UNAVAILABLE));
    log_says(w, 2, false);
    assert_int_equal(shown(w, 2), 1);
    assert_int_equal(write_room(w, 2, "c"), REPLY_OK);
    /* Nor does a disk of before, or a log that is behind after a start. */
    world_stop(w, 2);
    w->members[2].restored.generation = MERGERS_GENERATION_FIRST;
    world_start(w, 2);
    assert_int_equal(shown(w, 2), 2);
    assert_int_equal(shown(w, 0), 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_first_page_waits_for_what_other_members_alone_have),
        TEST(a_document_that_no_frame_holds_has_several_pages),
        TEST(a_member_that_is_away_is_waited_for_once),
        TEST(a_member_that_is_away_is_counted_and_a_minority_gives_nothing),
        TEST(a_member_that_was_removed_is_asked_too),
        TEST(a_shard_without_documents_gets_none_by_a_backup),
        TEST(what_a_member_acknowledged_before_its_entry_ends_the_restore),
        TEST(an_owner_with_documents_refuses_a_restore_before_its_log),
        TEST(a_later_reading_meets_a_large_document_as_it_is_then),
        TEST(no_document_is_put_before_each_member_has_begun),
        TEST(members_without_documents_remember_a_restore),
        TEST(a_member_that_has_read_no_log_takes_no_write),
        TEST(a_restore_waits_for_its_entry_and_serves_no_call_meanwhile),
        TEST(a_member_that_was_away_brings_nothing_of_before_back),
        TEST(a_restore_that_a_start_interrupts_goes_on_where_it_was),
        TEST(a_member_that_left_drops_what_was_before_a_restore),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
