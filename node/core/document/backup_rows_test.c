/* Documents of a shard into rows of a backup, and back at two members of another shard. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "holdfast/internal/v1/definition.pb-c.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/document/backup_rows.h"
#include "node/core/document/fixture.h"
#include "node/core/mergeable/absorb.h"
#include "node/core/mergeable/counter.h"
#include "node/core/mergeable/message.h"
#include "node/core/mergeable/rounds.h"
#include "node/core/mergeable/tally.h"
#include "runtime/base/check.h"

#define NOW_MS 1700000000000ull
#define ACTOR  0xabcdefull

/* `old` is backed up; `members` are of a new cluster, with other numbers. */
struct fixture {
    struct arena arena;
    struct document_rules rules[2];
    struct merge_replica *old, *members[2];
    struct refusal refusal;
    struct backup_page page;
    uint64_t dots, number; /* Of the counters, where they are written. */
};

static void define(struct fixture *f, struct document_rules *rules, uint64_t number,
                   const char *name, Holdfast__V1__DocumentPolicy policy)
{
    Holdfast__Internal__V1__DefinitionVersion version =
        HOLDFAST__INTERNAL__V1__DEFINITION_VERSION__INIT;
    Holdfast__V1__DefinitionBody body = HOLDFAST__V1__DEFINITION_BODY__INIT;
    Holdfast__V1__DocumentsBody documents = HOLDFAST__V1__DOCUMENTS_BODY__INIT;

    documents.policy = policy;
    body.kind_case = HOLDFAST__V1__DEFINITION_BODY__KIND_DOCUMENTS;
    body.documents = &documents;
    version.number = number;
    version.version = 1;
    version.name = text_lend(name);
    version.body = &body;
    assert_int_equal(document_rules_take(rules, arena_pack(&f->arena, &version.base)), ERR_OK);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->old = fixture_member(1);
    f->number = 2;
    for (uint64_t i = 0; i < 2; i++)
        f->members[i] = fixture_member(i + 1);
    define(f, &f->rules[0], 1, "rooms", HOLDFAST__V1__DOCUMENT_POLICY__DOCUMENT_POLICY_VECTOR);
    define(f, &f->rules[0], 2, "stats", HOLDFAST__V1__DOCUMENT_POLICY__DOCUMENT_POLICY_COUNTER);
    define(f, &f->rules[1], 8, "stats", HOLDFAST__V1__DOCUMENT_POLICY__DOCUMENT_POLICY_COUNTER);
    define(f, &f->rules[1], 9, "rooms", HOLDFAST__V1__DOCUMENT_POLICY__DOCUMENT_POLICY_VECTOR);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    merge_free(f->old);
    for (int i = 0; i < 2; i++) {
        merge_free(f->members[i]);
        document_rules_deinit(&f->rules[i]);
    }
    buf_deinit(&f->page.rows);
    arena_deinit(&f->arena);
    free(f);
    return 0;
}

/* ---- what is there ---- */

static struct merge_key *key_of(struct fixture *f, uint64_t number, const char *entity,
                                const char *name)
{
    const struct document_rule rule = { .number = number };
    struct merge_key *key;

    assert_int_equal(merge_key_new(slice_from_text(entity),
                                   document_row_name(&f->arena, &rule, slice_from_text(name)),
                                   &key),
                     ERR_OK);
    return key;
}

struct written {
    uint64_t number;
    const char *entity;
    enum merge_policy policy;
    uint64_t erasure;
    struct slice value;
};

/* Written by another process each time, so it stands beside what is there. */
static void write_beside(struct fixture *f, const struct written *written)
{
    struct merge_record record = { .policy = written->policy, .erasure = written->erasure };
    const struct merge_cell_form form = { .path = SLICE_LITERAL("p"),
                                          .value = written->value,
                                          .dot = { ++f->dots, 1 },
                                          .hlc = (NOW_MS + f->dots) << 16,
                                          .op = f->dots };
    struct merge_key *key = key_of(f, written->number, written->entity, "k");

    merge_record_add(&record, merge_cell_new(&form));
    const struct merge_incoming incoming = { .key = key, .record = &record };

    assert_int_equal(merge_absorb_logged(f->old, &incoming), ERR_OK);
    merge_record_deinit(&record);
    merge_key_unref(key);
}

static struct slice quoted(struct fixture *f, const char *text)
{
    return slice_from_text(arena_printf(&f->arena, "\"%s\"", text));
}

static void write_room(struct fixture *f, const char *entity, const char *value)
{
    write_beside(f, &(struct written){ .number = 1,
                                       .entity = entity,
                                       .policy = MERGE_POLICY_VECTOR,
                                       .value = quoted(f, value) });
}

static void write_tally(struct fixture *f, int64_t delta, uint8_t rank)
{
    struct buf value = { 0 };

    merge_tally_encode(&(struct merge_tally){ .delta = delta, .rank = rank }, &value);
    write_beside(f, &(struct written){ .number = f->number,
                                       .entity = "guild:1",
                                       .policy = MERGE_POLICY_COUNTER,
                                       .value = buf_slice(&value) });
    buf_deinit(&value);
}

/* ---- into a backup and back ---- */

static struct document_context context_of(struct fixture *f, struct merge_replica *replica)
{
    f->refusal = (struct refusal){ 0 };
    return (struct document_context){ .arena = &f->arena,
                                      .rules = &f->rules[replica != f->old],
                                      .replica = replica,
                                      .now_ms = NOW_MS,
                                      .refusal = &f->refusal };
}

static struct slice back_up(struct fixture *f)
{
    struct document_context context = context_of(f, f->old);

    buf_clear(&f->page.rows);
    assert_int_equal(backup_rows_read(&context, (struct slice){ 0 }, UINT32_MAX, &f->page), ERR_OK);
    assert_true(f->page.last);
    return buf_slice(&f->page.rows);
}

static void begin_restore(struct fixture *f)
{
    for (int member = 0; member < 2; member++)
        f->members[member]->restoring = true;
}

static err put(struct fixture *f, int member, uint64_t first, struct slice rows, uint64_t *ret_next)
{
    struct document_context context = context_of(f, f->members[member]);

    return backup_rows_put(&context, &(struct backup_part){ ACTOR, first, rows }, ret_next);
}

static const struct merge_record *found(struct fixture *f, int member, uint64_t number,
                                        const char *entity)
{
    struct merge_key *key = key_of(f, number, entity, "k");
    const struct merge_record *record = merge_store_find(&f->members[member]->store, key);

    merge_key_unref(key);
    return record;
}

static bool has_room(struct fixture *f, int member, const char *entity, const char *value)
{
    const struct merge_record *record = found(f, member, 9, entity);

    for (uint32_t i = 0; record != NULL && i < record->count; i++) {
        if (slice_equal(merge_cell_value(record->cells[i]), quoted(f, value)))
            return true;
    }
    return false;
}

static bool equal(const struct fixture *f)
{
    return hash128_equal(merge_store_digest(&f->members[0]->store),
                         merge_store_digest(&f->members[1]->store));
}

static void what_stands_comes_back_under_the_numbers_of_the_new_cluster(void **state)
{
    struct fixture *f = *state;
    uint64_t next, again;
    int64_t sum;

    write_room(f, "guild:1", "castle");
    write_room(f, "guild:1", "harbour");
    write_room(f, "player:2", "lobby");
    write_tally(f, 10, MERGE_RANK_ERAS);
    write_tally(f, 5, MERGE_RANK_ACTOR);
    write_tally(f, 2, 0);
    struct slice rows = back_up(f);

    assert_int_equal(put(f, 0, 0, rows, &next), ERR_OK);
    assert_int_equal(next, 6);
    assert_true(has_room(f, 0, "guild:1", "castle") && has_room(f, 0, "guild:1", "harbour"));
    assert_true(has_room(f, 0, "player:2", "lobby"));
    assert_int_equal(merge_counter_sum(found(f, 0, 8, "guild:1"), SLICE_LITERAL("p"), NOW_MS, &sum),
                     ERR_OK);
    assert_int_equal(sum, 17);
    assert_true(merge_counter_knows(found(f, 0, 8, "guild:1"), SLICE_LITERAL("p"), 6));
    assert_int_equal(put(f, 1, 0, rows, &again), ERR_OK);
    assert_int_equal(again, next);
    assert_true(equal(f));
    fixture_exchange(f->members, NOW_MS);
    assert_true(equal(f));
}

/* Puts a page as the command line does, in parts of 256 KiB, a row alone if it is larger. */
static void put_page(struct fixture *f, struct slice rows, uint64_t *next)
{
    struct reader reader = reader_from(rows);
    struct buf part = { 0 };

    while (reader_left(&reader) > 0) {
        struct slice key = read_bytes(&reader, UINT32_MAX);
        struct slice value = read_bytes(&reader, UINT32_MAX);

        assert_true(key.size + value.size < 1000000);
        buf_clear(&part);
        buf_put_bytes(&part, key);
        buf_put_bytes(&part, value);
        assert_int_equal(put(f, 0, *next, buf_slice(&part), next), ERR_OK);
    }
    buf_deinit(&part);
}

/* 3.7 MB: with what stands before it a page would pass what a link takes, 4 MiB. */
#define LARGE_SIBLINGS 57u
static void a_document_of_many_large_siblings_comes_back_and_holds_nothing_up(void **state)
{
    static uint8_t large[64u * 1024u];
    struct fixture *f = *state;
    struct document_context context = context_of(f, f->old);
    struct buf after = { 0 };
    uint64_t next = 0;
    size_t largest = 0;
    uint32_t pages = 0;

    memset(large, 'x', sizeof large);
    large[0] = large[sizeof large - 1] = '"';
    for (uint32_t i = 0; i < 8; i++)
        write_beside(f, &(struct written){ .number = 1,
                                           .entity = i < 7 ? "guild:1" : "guild:3",
                                           .policy = MERGE_POLICY_VECTOR,
                                           .value = { large, sizeof large } });
    for (uint32_t i = 0; i < LARGE_SIBLINGS; i++)
        write_beside(f, &(struct written){ .number = 1,
                                           .entity = "guild:2",
                                           .policy = MERGE_POLICY_VECTOR,
                                           .value = { large, sizeof large } });
    do {
        struct slice key = { 0 };

        buf_clear(&f->page.rows);
        assert_int_equal(
            backup_rows_read(&context, buf_slice(&after), BACKUP_ROWS_BYTES_MAX, &f->page), ERR_OK);
        largest = f->page.rows.size > largest ? f->page.rows.size : largest;
        pages++;
        put_page(f, buf_slice(&f->page.rows), &next);
        struct reader reader = reader_from(buf_slice(&f->page.rows));
        while (reader_left(&reader) > 0) {
            key = read_bytes(&reader, UINT32_MAX);
            (void)read_bytes(&reader, UINT32_MAX);
        }
        buf_clear(&after);
        buf_append(&after, key.data, key.size);
    } while (!f->page.last);
    assert_int_equal(pages, 3);
    assert_in_range(largest, LARGE_SIBLINGS * sizeof large, LARGE_SIBLINGS * sizeof large + 16384);
    assert_int_equal(found(f, 0, 9, "guild:1")->count, 7);
    assert_int_equal(found(f, 0, 9, "guild:2")->count, LARGE_SIBLINGS);
    assert_int_equal(found(f, 0, 9, "guild:3")->count, 1);
    buf_deinit(&after);
}

static int64_t sum_at(struct fixture *f, int member)
{
    const struct merge_record *record = found(f, member, 8, "guild:1");
    int64_t sum;

    assert_non_null(record);
    assert_int_equal(merge_counter_sum(record, SLICE_LITERAL("p"), NOW_MS, &sum), ERR_OK);
    return sum;
}

static void tick_and_tell(struct fixture *f, int from, int to, uint64_t now_ms)
{
    for (int member = from; member <= to; member++)
        merge_tick(f->members[member], now_ms);
    fixture_exchange(f->members, now_ms);
}

/* One member folds what came back, and the other one is told of it by a later increment. A fold
 * that met a restored cell of its own rank under its dot would be taken for that cell. */
static void restored_counts_are_folded_without_a_loss(void **state)
{
    struct fixture *f = *state;
    const uint64_t late_ms = NOW_MS + 10000000;
    struct merge_replica *old = f->old;
    uint64_t next;

    write_tally(f, 10, MERGE_RANK_ACTOR);
    write_tally(f, 5, MERGE_RANK_ACTOR);
    write_tally(f, 1, MERGE_RANK_ACTOR);
    assert_int_equal(put(f, 0, 0, back_up(f), &next), ERR_OK);
    for (uint64_t i = 0; i < 4; i++)
        tick_and_tell(f, 0, 1, NOW_MS + i * 3000);
    tick_and_tell(f, 0, 1, late_ms);
    merge_tick(f->members[0], late_ms + 3000);
    assert_int_equal(found(f, 0, 8, "guild:1")->count, 1);
    assert_int_equal(found(f, 1, 8, "guild:1")->count, 3);
    f->old = f->members[0];
    f->number = 8;
    write_tally(f, 100, 0);
    f->old = old;
    for (uint64_t i = 2; i < 5; i++)
        tick_and_tell(f, 0, 0, late_ms + i * 3000);
    assert_int_equal(sum_at(f, 0), 116);
    assert_int_equal(sum_at(f, 1), 116);
}

static void a_part_is_put_once_however_often_and_wherever_it_comes(void **state)
{
    struct fixture *f = *state;
    uint64_t first, second;

    begin_restore(f);
    write_room(f, "guild:1", "castle");
    struct slice rows = back_up(f);
    struct slice one = { arena_copy(&f->arena, rows).data, rows.size };

    assert_int_equal(put(f, 0, 0, one, &first), ERR_OK);
    write_room(f, "guild:2", "harbour");
    assert_int_equal(put(f, 0, first, back_up(f), &second), ERR_OK);
    assert_int_equal(put(f, 1, first, back_up(f), &second), ERR_CONFLICT);
    assert_int_equal(f->refusal.code, CODE(UNAVAILABLE));
    assert_false(backup_cells_are_whole(f->members[0], ACTOR, second));
    for (int i = 0; i < 3; i++) {
        for (int member = 0; member < 2; member++)
            merge_tick(f->members[member], NOW_MS + (uint64_t)i * 5000);
        fixture_exchange(f->members, NOW_MS + (uint64_t)i * 5000);
        for (int member = 0; member < 2; member++)
            merge_durable(f->members[member], f->members[member]->log_end);
    }
    assert_true(backup_cells_are_whole(f->members[0], ACTOR, second));
    assert_false(backup_cells_are_whole(f->members[0], ACTOR, second + 1));
    uint64_t log = f->members[1]->log_end;

    assert_int_equal(put(f, 1, 0, one, &first), ERR_OK);
    assert_int_equal(put(f, 1, first, back_up(f), &second), ERR_OK);
    assert_int_equal(f->members[1]->log_end, log);
    assert_true(equal(f));
}

/* Both would agree on the first part, end its actor, and take the second one for known. */
static void no_member_ends_the_actor_of_a_restore_between_two_parts(void **state)
{
    struct fixture *f = *state;
    uint64_t first, second;

    begin_restore(f);
    write_room(f, "guild:1", "castle");
    assert_int_equal(put(f, 0, 0, back_up(f), &first), ERR_OK);
    for (int i = 0; i < 6; i++) {
        for (int member = 0; member < 2; member++)
            merge_tick(f->members[member], NOW_MS + (uint64_t)i * 3000);
        fixture_exchange(f->members, NOW_MS + (uint64_t)i * 3000);
    }
    write_room(f, "guild:2", "harbour");
    assert_int_equal(put(f, 0, first, back_up(f), &second), ERR_OK);
    assert_true(has_room(f, 0, "guild:2", "harbour"));
}

static void a_record_above_one_row_comes_back_whole(void **state)
{
    struct fixture *f = *state;
    char *text = calloc(1, 60001);
    uint64_t next;

    for (char letter = 'a'; letter < 'q'; letter++) {
        memset(text, letter, 60000);
        write_room(f, "guild:1", text);
    }
    for (int again = 0; again < 2; again++) {
        assert_int_equal(put(f, 0, 0, back_up(f), &next), ERR_OK);
        assert_int_equal(next, 16);
        assert_int_equal(found(f, 0, 9, "guild:1")->count, 16);
    }
    free(text);
}

static void pages_have_what_one_page_has(void **state)
{
    struct fixture *f = *state;
    struct document_context context = context_of(f, f->old);
    struct buf all = { 0 }, after = { 0 };
    bool last = false;

    for (char number = 'a'; number < 'g'; number++) {
        const char entity[] = { 'g', ':', number, 0 };

        write_room(f, entity, "castle");
    }
    for (int pages = 0; !last; pages++) {
        struct backup_page page = { 0 };

        assert_true(pages < 10);
        assert_int_equal(backup_rows_read(&context, buf_slice(&after), 1, &page), ERR_OK);
        struct reader reader = reader_from(buf_slice(&page.rows));
        struct slice key = read_bytes(&reader, 512);

        buf_clear(&after);
        buf_append(&after, key.data, key.size);
        buf_append(&all, page.rows.data, page.rows.size);
        last = page.last;
        buf_deinit(&page.rows);
    }
    assert_true(slice_equal(buf_slice(&all), back_up(f)));
    assert_int_equal(backup_rows_read(&context, SLICE_LITERAL("no key"), 1, &f->page), ERR_INVALID);
    assert_string_equal(f->refusal.field, "after");
    buf_deinit(&all);
    buf_deinit(&after);
}

static void an_erasure_that_stands_holds_for_what_comes_back(void **state)
{
    struct fixture *f = *state;
    uint64_t next;

    write_beside(f, &(struct written){ .number = 1,
                                       .entity = "player:1",
                                       .policy = MERGE_POLICY_VECTOR,
                                       .erasure = 3,
                                       .value = quoted(f, "castle") });
    write_room(f, "player:2", "harbour");
    assert_int_equal(merge_erase(f->members[0], SLICE_LITERAL("player:1"), 3), ERR_OK);
    assert_int_equal(merge_erase(f->members[0], SLICE_LITERAL("player:2"), 1), ERR_OK);
    assert_int_equal(put(f, 0, 0, back_up(f), &next), ERR_OK);
    assert_int_equal(next, 2);
    assert_true(has_room(f, 0, "player:1", "castle"));
    assert_null(found(f, 0, 9, "player:2"));
    assert_int_equal(mclock_floor(&f->members[0]->clock, ACTOR), 2);
}

static void a_collection_that_is_missing_or_another_is_named(void **state)
{
    struct fixture *f = *state;
    uint64_t next;

    write_room(f, "guild:1", "castle");
    struct slice rows = back_up(f);

    document_rules_clear(&f->rules[1]);
    assert_int_equal(put(f, 0, 0, rows, &next), ERR_CONFLICT);
    assert_int_equal(f->refusal.code, CODE(UNAVAILABLE)); /* It may be told yet. */
    f->rules[1].complete = true;
    assert_int_equal(put(f, 0, 0, rows, &next), ERR_CONFLICT);
    assert_int_equal(f->refusal.code, CODE(NOT_FOUND));
    assert_non_null(strstr(f->refusal.message, "\"rooms\""));
    define(f, &f->rules[1], 9, "rooms", HOLDFAST__V1__DOCUMENT_POLICY__DOCUMENT_POLICY_SET);
    assert_int_equal(put(f, 0, 0, rows, &next), ERR_INVALID);
    assert_string_equal(f->refusal.field, "rows");
    assert_string_equal(f->refusal.value, "rooms");
    assert_int_equal(f->members[0]->store.count, 0);
    /* Here, what is not known yet may be one; a deleted one is shown by nothing. */
    struct document_context context = context_of(f, f->old);

    f->rules[0].list[0].deleted = true;
    buf_clear(&f->page.rows);
    assert_int_equal(backup_rows_read(&context, (struct slice){ 0 }, 1, &f->page), ERR_OK);
    assert_int_equal(f->page.rows.size, 0);
    document_rules_clear(&f->rules[0]);
    assert_int_equal(backup_rows_read(&context, (struct slice){ 0 }, 1, &f->page), ERR_CONFLICT);
    assert_int_equal(f->refusal.code, CODE(UNAVAILABLE));
    /* One that etcd has lost ends no backup. */
    f->rules[0].complete = true;
    assert_int_equal(backup_rows_read(&context, (struct slice){ 0 }, 1, &f->page), ERR_OK);
    assert_int_equal(f->page.rows.size, 0);
    assert_int_equal(f->page.left_out, 1);
}

/* An answer has each value as it stands in its cell. */
static void a_value_that_is_no_json_is_refused_by_its_name(void **state)
{
    static const char *const wrong[] = { "", "castle", "{", "1 2", "\"\xff\"" };
    struct fixture *f = *state;
    uint64_t next;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char entity[] = { 'g', ':', (char)('a' + i), 0 };

        merge_free(f->old);
        f->old = fixture_member(1);
        write_beside(f, &(struct written){ .number = 1,
                                           .entity = entity,
                                           .policy = MERGE_POLICY_VECTOR,
                                           .value = slice_from_text(wrong[i]) });
        assert_int_equal(put(f, 0, 0, back_up(f), &next), ERR_INVALID);
        assert_string_equal(f->refusal.field, "rows");
        assert_string_equal(f->refusal.value,
                            arena_printf(&f->arena, "rooms of %s, key \"k\", path \"p\"", entity));
    }
    assert_int_equal(f->members[0]->store.count, 0);
}

static void rows_that_are_cut_or_changed_are_refused_or_taken_as_they_are(void **state)
{
    struct fixture *f = *state;
    uint64_t next;

    write_room(f, "guild:1", "castle");
    write_tally(f, 10, MERGE_RANK_ERAS);
    struct slice rows = back_up(f);

    for (size_t size = 1; size < rows.size; size++)
        (void)!put(f, 0, 0, (struct slice){ rows.data, size }, &next);
    for (size_t at = 0; at < rows.size; at++) {
        uint8_t *changed = mem_alloc(rows.size);

        memcpy(changed, rows.data, rows.size);
        changed[at] ^= 0x41;
        (void)!put(f, 0, 0, (struct slice){ changed, rows.size }, &next);
        free(changed);
    }
    assert_int_equal(put(f, 1, 0, (struct slice){ rows.data, rows.size - 1 }, &next), ERR_INVALID);
    assert_string_equal(f->refusal.field, "rows");
    assert_int_equal(put(f, 1, UINT64_MAX, rows, &next), ERR_INVALID);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_stands_comes_back_under_the_numbers_of_the_new_cluster),
        TEST(restored_counts_are_folded_without_a_loss),
        TEST(a_part_is_put_once_however_often_and_wherever_it_comes),
        TEST(no_member_ends_the_actor_of_a_restore_between_two_parts),
        TEST(a_record_above_one_row_comes_back_whole),
        TEST(a_document_of_many_large_siblings_comes_back_and_holds_nothing_up),
        TEST(pages_have_what_one_page_has),
        TEST(an_erasure_that_stands_holds_for_what_comes_back),
        TEST(a_collection_that_is_missing_or_another_is_named),
        TEST(a_value_that_is_no_json_is_refused_by_its_name),
        TEST(rows_that_are_cut_or_changed_are_refused_or_taken_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
