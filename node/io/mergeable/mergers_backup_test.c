/*
 * Backups and restores of documents at three members in one process: what a first page waits for,
 * and what becomes of a member that still holds what was before a restore.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/definition.pb-c.h"
#include "holdfast/v1/backup.pb-c.h"
#include "holdfast/v1/document.pb-c.h"
#include "holdfast/v1/error.pb-c.h"
#include "idl/error_code.h"
#include "idl/method.h"
#include "node/io/mergeable/mergers.h"
#include "node/io/view/shard_view.h"
#include "runtime/base/check.h"
#include "runtime/base/test_directory.h"

#define MEMBERS     3u
#define SHARD       0u
#define CALL        7u
#define PATIENCE_MS 20000u

struct trio;

struct node {
    struct trio *trio;
    uint64_t id;
    char directory[TEST_DIRECTORY_BYTES + 32];
    struct mergers *mergers;
    struct mergers_restored restored; /* As its strict log says. */
};

struct letter {
    struct letter *next;
    uint64_t from, to;
    struct buf bytes;
};

struct trio {
    struct loop *loop;
    char directory[TEST_DIRECTORY_BYTES];
    struct node nodes[MEMBERS];
    struct letter *first, **last;
    struct loop_hook hook;
    uint64_t cut; /* Whom no message reaches, and none leaves; 0: all are reached. */
    uint64_t boot, ops;
    bool answered;
    enum reply_status status;
    struct buf answer;
};

static void drop(void *sink, enum log_level level, const char *event,
                 const struct log_field *fields)
{
    (void)sink;
    (void)level;
    (void)event;
    (void)fields;
}
static const struct log silent = { .write = drop };
static const struct hash128 backup = { "sixteen bytes of" };

/* ---- three members ---- */

static void post(void *user, uint64_t replica, struct slice bytes)
{
    struct node *node = user;
    struct letter *letter = mem_zalloc(sizeof *letter);

    letter->from = node->id;
    letter->to = replica;
    buf_append(&letter->bytes, bytes.data, bytes.size);
    *node->trio->last = letter;
    node->trio->last = &letter->next;
    loop_hook_arm(&node->trio->hook);
}

static void deliver_all(void *user)
{
    struct trio *t = user;
    struct letter *letter = t->first;

    t->first = NULL;
    t->last = &t->first;
    for (struct letter *next; letter != NULL; letter = next) {
        struct mergers *to = t->nodes[letter->to - 1].mergers;

        next = letter->next;
        if (to != NULL && letter->from != t->cut && letter->to != t->cut)
            assert_int_equal(mergers_message(to, letter->from, buf_slice(&letter->bytes)), ERR_OK);
        buf_deinit(&letter->bytes);
        free(letter);
    }
}

static bool tell_restored(void *user, uint32_t shard, struct mergers_restored *ret_restored)
{
    (void)shard;
    *ret_restored = ((struct node *)user)->restored;
    return ret_restored->generation != 0;
}

static void take_answer(void *user, uint64_t call, const struct shard_reply *reply,
                        struct slice body)
{
    struct trio *t = ((struct node *)user)->trio;

    assert_int_equal(call, CALL);
    t->answered = true;
    t->status = reply->status;
    buf_clear(&t->answer);
    buf_append(&t->answer, body.data, body.size);
}

static void define_rooms(struct mergers *mergers)
{
    Holdfast__Internal__V1__DefinitionVersion version =
        HOLDFAST__INTERNAL__V1__DEFINITION_VERSION__INIT;
    Holdfast__V1__DefinitionBody body = HOLDFAST__V1__DEFINITION_BODY__INIT;
    Holdfast__V1__DocumentsBody documents = HOLDFAST__V1__DOCUMENTS_BODY__INIT;
    uint8_t bytes[256];

    documents.policy = HOLDFAST__V1__DOCUMENT_POLICY__DOCUMENT_POLICY_VECTOR;
    body.kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_DOCUMENTS;
    body.documents = &documents;
    version.number = version.version = 1;
    version.name = text_lend("rooms");
    version.body = &body;
    size_t size = protobuf_c_message_pack(&version.base, bytes);
    mergers_definition(mergers, (struct slice){ bytes, size });
}

static void begin(struct trio *t, uint32_t place)
{
    static const uint8_t secret[MERGERS_SECRET_BYTES] = { 9 };
    const struct rep_record record = {
        .generation = 1,
        .epoch = 1,
        .owner = 1,
        .membership = { .config = 1, .count = 3, .members = { 1, 2, 3 } },
    };
    struct node *node = &t->nodes[place];
    char text[MERGERS_TEXT_BYTES] = "";

    assert_int_equal(mergers_new(&(struct mergers_options){ .loop = t->loop,
                                                            .log = &silent,
                                                            .directory = node->directory,
                                                            .self = node->id,
                                                            .boot = ++t->boot,
                                                            .shard_count = 1,
                                                            .send = post,
                                                            .restored = tell_restored,
                                                            .answer = take_answer,
                                                            .user = node },
                                 &node->mergers, text),
                     ERR_OK);
    define_rooms(node->mergers);
    mergers_secret(node->mergers, secret);
    mergers_record(node->mergers, SHARD, &record);
}

static void finish(struct trio *t, uint32_t place)
{
    mergers_free(t->nodes[place].mergers);
    t->nodes[place].mergers = NULL;
}

static int setup(void **state)
{
    struct trio *t = mem_zalloc(sizeof *t);

    assert_int_equal(loop_new(&t->loop), ERR_OK);
    test_directory_make("mergers_backup", t->directory);
    t->last = &t->first;
    loop_hook_init(&t->hook, t->loop, deliver_all, t);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        struct node *node = &t->nodes[i];

        node->trio = t;
        node->id = i + 1;
        node->restored.generation = MERGERS_GENERATION_FIRST;
        snprintf(node->directory, sizeof node->directory, "%s/%u", t->directory, i + 1);
        begin(t, i);
    }
    *state = t;
    return 0;
}

static int teardown(void **state)
{
    struct trio *t = *state;

    for (uint32_t i = 0; i < MEMBERS; i++)
        finish(t, i);
    deliver_all(t);
    loop_hook_disarm(&t->hook);
    loop_free(t->loop);
    test_directory_remove(t->directory);
    buf_deinit(&t->answer);
    free(t);
    return 0;
}

/* ---- calls ---- */

static bool is_answered(void *user)
{
    return ((struct trio *)user)->answered;
}

static enum reply_status ask(struct trio *t, uint32_t place, uint32_t method,
                             const ProtobufCMessage *message)
{
    struct buf bytes = { 0 };

    bytes.size = protobuf_c_message_pack(
        message, buf_reserve(&bytes, protobuf_c_message_get_packed_size(message)));
    t->answered = false;
    assert_int_equal(mergers_call(t->nodes[place].mergers,
                                  &(struct mergers_request){ .shard = SHARD,
                                                             .method = method,
                                                             .call = CALL,
                                                             .bytes = buf_slice(&bytes) }),
                     ERR_OK);
    assert_true(loop_run_until(t->loop, is_answered, t, PATIENCE_MS));
    buf_deinit(&bytes);
    return t->status;
}

static void refused_with(struct trio *t, enum reply_status status, Holdfast__V1__ErrorCode code)
{
    assert_int_equal(status, REPLY_REFUSED);
    Holdfast__V1__ErrorDetail *detail =
        holdfast__v1__error_detail__unpack(NULL, t->answer.size, t->answer.data);

    assert_non_null(detail);
    assert_int_equal(detail->code, code);
    holdfast__v1__error_detail__free_unpacked(detail, NULL);
}

static enum reply_status write_room(struct trio *t, uint32_t place, const char *key)
{
    Holdfast__V1__PutDocumentRequest request = HOLDFAST__V1__PUT_DOCUMENT_REQUEST__INIT;
    char op_id[40];

    snprintf(op_id, sizeof op_id, "key:%llu", (unsigned long long)++t->ops);
    request.entity = text_lend("guild:7");
    request.op_id = op_id;
    request.collection = text_lend("rooms");
    request.key = text_lend(key);
    request.json = text_lend("1");
    return ask(t, place, METHOD_PUT_DOCUMENT, &request.base);
}

struct page {
    struct buf rows;
    uint64_t reader;
    uint32_t away;
};

static enum reply_status read_page(struct trio *t, uint32_t place, uint64_t reader,
                                   struct page *page)
{
    Holdfast__V1__ReadDocumentsRequest request = HOLDFAST__V1__READ_DOCUMENTS_REQUEST__INIT;

    request.reader = reader;
    enum reply_status status = ask(t, place, METHOD_READ_DOCUMENTS, &request.base);

    if (status != REPLY_OK)
        return status;
    Holdfast__V1__ReadDocumentsResponse *response =
        holdfast__v1__read_documents_response__unpack(NULL, t->answer.size, t->answer.data);

    assert_non_null(response);
    buf_clear(&page->rows);
    buf_append(&page->rows, response->rows.data, response->rows.len);
    page->reader = response->reader;
    page->away = response->members_away;
    holdfast__v1__read_documents_response__free_unpacked(response, NULL);
    return status;
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

static enum reply_status put_rows(struct trio *t, uint32_t place, const struct hash128 *id,
                                  struct slice rows, bool *ret_whole)
{
    Holdfast__V1__RestoreDocumentsRequest request = HOLDFAST__V1__RESTORE_DOCUMENTS_REQUEST__INIT;

    request.restore_id = (ProtobufCBinaryData){ sizeof id->bytes, (uint8_t *)(uintptr_t)id->bytes };
    request.rows = (ProtobufCBinaryData){ rows.size, (uint8_t *)(uintptr_t)rows.data };
    enum reply_status status = ask(t, place, METHOD_RESTORE_DOCUMENTS, &request.base);

    if (status == REPLY_OK) {
        Holdfast__V1__RestoreDocumentsResponse *response =
            holdfast__v1__restore_documents_response__unpack(NULL, t->answer.size, t->answer.data);

        *ret_whole = response->whole;
        holdfast__v1__restore_documents_response__free_unpacked(response, NULL);
    }
    return status;
}

static void log_says(struct trio *t, uint32_t place, bool goes_on)
{
    t->nodes[place].restored =
        (struct mergers_restored){ .generation = shard_views_restore_generation(backup),
                                   .goes_on = goes_on };
}

static bool never(void *user)
{
    (void)user;
    return false;
}

static void pass(struct trio *t, uint32_t ms)
{
    (void)loop_run_until(t->loop, never, t, ms);
}

/* How many documents that member shows. */
static uint32_t shown(struct trio *t, uint32_t place)
{
    struct mergers_stats stats;

    pass(t, 2500);
    mergers_stats_get(t->nodes[place].mergers, &stats);
    return (uint32_t)stats.records[MERGE_POLICY_VECTOR];
}

/* ---- cases ---- */

static void a_first_page_waits_for_what_other_members_alone_have(void **state)
{
    struct trio *t = *state;
    struct page page = { 0 };

    assert_int_equal(write_room(t, 0, "a"), REPLY_OK);
    t->cut = 2;
    assert_int_equal(write_room(t, 1, "b"), REPLY_OK);
    pass(t, 50);
    t->cut = 0;
    assert_int_equal(read_page(t, 0, 0, &page), REPLY_OK);
    assert_int_equal(count_rows(&page), 2);
    assert_int_equal(page.away, 0);
    assert_int_equal(read_page(t, 0, page.reader, &page), REPLY_OK);
    refused_with(t, read_page(t, 0, page.reader + 1, &page), CODE(VERSION_CONFLICT));
    buf_deinit(&page.rows);
}

static void a_member_that_is_away_is_counted_and_a_minority_gives_nothing(void **state)
{
    struct trio *t = *state;
    struct page page = { 0 };

    assert_int_equal(write_room(t, 0, "a"), REPLY_OK);
    pass(t, 50);
    finish(t, 2);
    assert_int_equal(read_page(t, 0, 0, &page), REPLY_OK);
    assert_int_equal(count_rows(&page), 1);
    assert_int_equal(page.away, 1);
    finish(t, 1);
    refused_with(t, read_page(t, 0, 0, &page), CODE(UNAVAILABLE));
    begin(t, 1);
    begin(t, 2);
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
    struct trio *t = *state;
    struct page page = { 0 };

    assert_int_equal(write_room(t, 0, "a"), REPLY_OK);
    pass(t, 300);
    t->cut = 3;
    assert_int_equal(write_room(t, 2, "b"), REPLY_OK);
    mergers_record(t->nodes[0].mergers, SHARD, &record);
    mergers_record(t->nodes[1].mergers, SHARD, &record);
    assert_int_equal(read_page(t, 0, 0, &page), REPLY_OK);
    assert_int_equal(count_rows(&page), 1);
    assert_int_equal(page.away, 1);
    t->cut = 0;
    pass(t, 3000);
    assert_int_equal(read_page(t, 0, 0, &page), REPLY_OK);
    assert_int_equal(count_rows(&page), 2);
    assert_int_equal(page.away, 0);
    buf_deinit(&page.rows);
}

/* A backup of thousands of shards would wait for it in each of them. */
static void a_member_that_is_away_is_waited_for_once(void **state)
{
    struct trio *t = *state;
    struct page page = { 0 };
    uint64_t began_ms;

    assert_int_equal(write_room(t, 0, "a"), REPLY_OK);
    pass(t, 50);
    finish(t, 2);
    assert_int_equal(read_page(t, 0, 0, &page), REPLY_OK);
    began_ms = loop_now_ms(t->loop);
    for (uint32_t i = 0; i < 20; i++) {
        assert_int_equal(read_page(t, 0, 0, &page), REPLY_OK);
        assert_int_equal(page.away, 1);
    }
    assert_true(loop_now_ms(t->loop) - began_ms < 3000);
    begin(t, 2);
    pass(t, 3000);
    assert_int_equal(read_page(t, 0, 0, &page), REPLY_OK);
    assert_int_equal(page.away, 0);
    buf_deinit(&page.rows);
}

static void a_shard_without_documents_gets_none_by_a_backup(void **state)
{
    struct trio *t = *state;
    struct mergers_stats stats;
    struct page page = { 0 };

    assert_int_equal(read_page(t, 0, 0, &page), REPLY_OK);
    assert_int_equal(count_rows(&page), 0);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        mergers_stats_get(t->nodes[i].mergers, &stats);
        assert_int_equal(stats.replicas, 0);
    }
}

static void a_restore_waits_for_its_entry_and_serves_no_call_meanwhile(void **state)
{
    static const struct hash128 other = { "another sixteen." };
    struct trio *t = *state;
    bool whole;

    refused_with(t, put_rows(t, 0, &backup, (struct slice){ 0 }, &whole), CODE(UNAVAILABLE));
    log_says(t, 0, true);
    refused_with(t, put_rows(t, 0, &other, (struct slice){ 0 }, &whole), CODE(VERSION_CONFLICT));
    refused_with(t, write_room(t, 0, "a"), CODE(UNAVAILABLE));
    log_says(t, 1, true);
    log_says(t, 2, true);
    assert_int_equal(put_rows(t, 0, &backup, (struct slice){ 0 }, &whole), REPLY_OK);
    log_says(t, 0, false);
    refused_with(t, put_rows(t, 0, &backup, (struct slice){ 0 }, &whole), CODE(VERSION_CONFLICT));
    assert_int_equal(write_room(t, 0, "a"), REPLY_OK);
}

/* A backup of one document, and three members that have none. */
static void take_backup(struct trio *t, struct page *page)
{
    assert_int_equal(write_room(t, 0, "a"), REPLY_OK);
    assert_int_equal(read_page(t, 0, 0, page), REPLY_OK);
    pass(t, 300); /* Each has a database. */
    for (uint32_t i = 0; i < MEMBERS; i++) {
        finish(t, i);
        test_directory_remove(t->nodes[i].directory);
    }
    for (uint32_t i = 0; i < MEMBERS; i++)
        begin(t, i);
}

static void all_logs_say(struct trio *t, bool goes_on)
{
    for (uint32_t i = 0; i < MEMBERS; i++)
        log_says(t, i, goes_on);
}

static void start_all_behind(struct trio *t)
{
    for (uint32_t i = 0; i < MEMBERS; i++) {
        finish(t, i);
        t->nodes[i].restored = (struct mergers_restored){ MERGERS_GENERATION_FIRST, false };
    }
    for (uint32_t i = 0; i < MEMBERS; i++)
        begin(t, i);
}

static void what_a_member_acknowledged_before_its_entry_ends_the_restore(void **state)
{
    struct trio *t = *state;
    bool whole;

    log_says(t, 0, true);
    log_says(t, 1, true);
    assert_int_equal(write_room(t, 2, "a"), REPLY_OK);
    log_says(t, 2, true);
    refused_with(t, put_rows(t, 0, &backup, (struct slice){ 0 }, &whole), CODE(VERSION_CONFLICT));
    refused_with(t, write_room(t, 2, "b"), CODE(UNAVAILABLE));
    assert_int_equal(shown(t, 2), 1);
    start_all_behind(t);
    all_logs_say(t, true);
    refused_with(t, put_rows(t, 0, &backup, (struct slice){ 0 }, &whole), CODE(VERSION_CONFLICT));
    assert_int_equal(shown(t, 2), 1);
}

static void an_owner_with_documents_refuses_a_restore_before_its_log(void **state)
{
    struct trio *t = *state;

    assert_null(mergers_bars_restore(t->nodes[0].mergers, SHARD));
    assert_int_equal(write_room(t, 0, "a"), REPLY_OK);
    assert_non_null(mergers_bars_restore(t->nodes[0].mergers, SHARD));
}

static void no_document_is_put_before_each_member_has_begun(void **state)
{
    struct trio *t = *state;
    bool whole;

    log_says(t, 0, true);
    log_says(t, 1, true);
    refused_with(t, put_rows(t, 0, &backup, (struct slice){ 0 }, &whole), CODE(UNAVAILABLE));
    log_says(t, 2, true);
    assert_int_equal(put_rows(t, 0, &backup, (struct slice){ 0 }, &whole), REPLY_OK);
    assert_true(whole);
}

/* They start on checkpoints from before the restore, which no owner has read yet. */
static void members_without_documents_remember_a_restore(void **state)
{
    struct trio *t = *state;
    struct mergers_stats stats;
    bool whole;

    all_logs_say(t, true);
    assert_int_equal(put_rows(t, 0, &backup, (struct slice){ 0 }, &whole), REPLY_OK);
    start_all_behind(t);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        mergers_stats_get(t->nodes[i].mergers, &stats);
        assert_int_equal(stats.replicas, 0);
        refused_with(t, write_room(t, i, "a"), CODE(UNAVAILABLE));
    }
    all_logs_say(t, false);
    assert_int_equal(write_room(t, 2, "a"), REPLY_OK);
    assert_int_equal(shown(t, 0), 1);
}

/* It may have joined after a restore. */
static void a_member_that_has_read_no_log_takes_no_write(void **state)
{
    struct trio *t = *state;

    t->nodes[2].restored.generation = 0;
    refused_with(t, write_room(t, 2, "a"), CODE(UNAVAILABLE));
    t->nodes[2].restored.generation = MERGERS_GENERATION_FIRST;
    assert_int_equal(write_room(t, 2, "a"), REPLY_OK);
    t->nodes[2].restored.generation = 0;
    finish(t, 2);
    begin(t, 2);
    assert_int_equal(write_room(t, 2, "b"), REPLY_OK); /* Its disk knows. */
}

/* All nodes start again on checkpoints from before the restore, which no owner has read yet. */
static void a_restore_that_a_start_interrupts_goes_on_where_it_was(void **state)
{
    struct trio *t = *state;
    struct page page = { 0 };
    bool whole = false;

    take_backup(t, &page);
    all_logs_say(t, true);
    for (int i = 0; i < 100 && !whole; i++) {
        assert_int_equal(put_rows(t, 0, &backup, buf_slice(&page.rows), &whole), REPLY_OK);
        pass(t, 100);
    }
    assert_true(whole);
    start_all_behind(t);
    pass(t, 8000); /* Of reports, after which members would end its actor. */
    refused_with(t, write_room(t, 0, "b"), CODE(UNAVAILABLE));
    all_logs_say(t, true);
    pass(t, 300);
    assert_int_equal(put_rows(t, 0, &backup, buf_slice(&page.rows), &whole), REPLY_OK);
    all_logs_say(t, false);
    assert_int_equal(shown(t, 0), 1);
    assert_int_equal(write_room(t, 0, "b"), REPLY_OK);
    buf_deinit(&page.rows);
}

/* A record without it and its log's word of a restore come at once. */
static void a_member_that_left_drops_what_was_before_a_restore(void **state)
{
    struct trio *t = *state;
    const struct rep_record record = {
        .generation = 1,
        .epoch = 2,
        .owner = 1,
        .membership = { .config = 2, .count = 2, .members = { 1, 2 } },
    };

    assert_int_equal(write_room(t, 0, "a"), REPLY_OK);
    pass(t, 300);
    t->cut = 3;
    for (uint32_t i = 0; i < MEMBERS; i++) {
        mergers_record(t->nodes[i].mergers, SHARD, &record);
        log_says(t, i, false);
    }
    pass(t, 600);
    assert_int_equal(shown(t, 2), 0);
}

/* Member 3 has two documents of before when it hears that a restore is over; neither comes back. */
static void a_member_that_was_away_brings_nothing_of_before_back(void **state)
{
    struct trio *t = *state;

    t->cut = 3;
    assert_int_equal(write_room(t, 2, "a"), REPLY_OK);
    assert_int_equal(write_room(t, 2, "b"), REPLY_OK);
    pass(t, 50);
    log_says(t, 0, false);
    log_says(t, 1, false);
    assert_int_equal(write_room(t, 0, "x"), REPLY_OK);
    t->cut = 0;
    assert_int_equal(shown(t, 0), 1);
    assert_int_equal(shown(t, 1), 1);
    assert_int_equal(shown(t, 2), 2);
    refused_with(t, write_room(t, 2, "c"), CODE(UNAVAILABLE));
    log_says(t, 2, false);
    assert_int_equal(shown(t, 2), 1);
    assert_int_equal(write_room(t, 2, "c"), REPLY_OK);
    /* Nor does a disk of before, or a log that is behind after a start. */
    finish(t, 2);
    t->nodes[2].restored.generation = MERGERS_GENERATION_FIRST;
    begin(t, 2);
    assert_int_equal(shown(t, 2), 2);
    assert_int_equal(shown(t, 0), 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_first_page_waits_for_what_other_members_alone_have),
        TEST(a_member_that_is_away_is_waited_for_once),
        TEST(a_member_that_is_away_is_counted_and_a_minority_gives_nothing),
        TEST(a_member_that_was_removed_is_asked_too),
        TEST(a_shard_without_documents_gets_none_by_a_backup),
        TEST(what_a_member_acknowledged_before_its_entry_ends_the_restore),
        TEST(an_owner_with_documents_refuses_a_restore_before_its_log),
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
