#include "node/rpc/fixture.h"

#include <stdio.h>
#include <string.h>

#include "holdfast/v1/inventory.pb-c.h"
#include "idl/page_cursor.h"
#include "node/core/rows/rows.h"
#include "node/rpc/fixture_shards.h"
#include "runtime/base/check.h"

static Holdfast__V1__ListEntriesResponse *list(struct fixture *f, uint32_t size, const char *cursor,
                                               bool ascending)
{
    Holdfast__V1__ListEntriesRequest request = HOLDFAST__V1__LIST_ENTRIES_REQUEST__INIT;

    request.player_id = (char *)"ann";
    request.page_size = size;
    request.cursor = text_lend(cursor);
    request.ascending = ascending;
    return fixture_read(f, METHOD_LIST_ENTRIES, &request.base);
}

/* With a cursor as this list prints them, for a place of the test's choice. */
static Holdfast__V1__ListEntriesResponse *list_at(struct fixture *f, uint32_t size,
                                                  const char *place, bool ascending)
{
    Holdfast__V1__ListEntriesRequest request = HOLDFAST__V1__LIST_ENTRIES_REQUEST__INIT;

    request.player_id = (char *)"ann";
    request.ascending = ascending;
    return list(f, size, page_cursor_print(&request.base, place, &f->arena), ascending);
}

static void pages_run_both_ways_and_end(void **state)
{
    struct fixture *f = *state;

    for (int i = 1; i <= 5; i++)
        assert_non_null(fixture_grant(f, "ann", "unheld", i));
    fixture_restart(f);
    Holdfast__V1__ListEntriesResponse *page = list(f, 2, "", false);
    assert_int_equal(page->n_entries, 2);
    assert_int_equal(page->entries[0]->seq, 5);
    assert_non_null(fixture_grant(f, "ann", "unheld", 6));
    page = list(f, 2, page->next_cursor, false);
    assert_int_equal(page->entries[1]->seq, 2);
    page = list(f, 2, page->next_cursor, false);
    assert_int_equal(page->n_entries, 1);
    assert_string_equal(page->next_cursor, "");
    page = list(f, 4, "", true);
    assert_int_equal(page->entries[3]->seq, 4);
    page = list(f, 4, page->next_cursor, true);
    assert_int_equal(page->n_entries, 2);
    assert_string_equal(page->next_cursor, "");
    assert_int_equal(list_at(f, 4, "7", true)->n_entries, 0);
}

static void cursors_and_sizes_are_checked(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ListEntriesRequest other = HOLDFAST__V1__LIST_ENTRIES_REQUEST__INIT;
    static const char *const wrong[] = { "0", "x", "-1", "01", "99999999999999999999999" };

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        assert_null(list(f, 0, wrong[i], false));
        assert_string_equal(f->error->field, "cursor");
        assert_null(list_at(f, 0, wrong[i], false)); /* Forged. */
        assert_string_equal(f->error->field, "cursor");
    }
    assert_null(list(f, 0, page_cursor_print(&other.base, "1", &f->arena), false));
    assert_string_equal(f->error->field, "cursor");
    assert_null(list(f, 201, "", false));
    assert_string_equal(f->error->field, "page_size");
}

static void anyone_can_verify_the_chain_from_the_answers_alone(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__GrantRequest mint = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__ItemSpec item = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[] = { &item, &item };
    struct fixture_sums sums;

    item.kind = (char *)"sword";
    item.attributes = (char *)"{\"level\":3}";
    mint.player_id = (char *)"ann";
    mint.op_id = (char *)"match:m1:2";
    mint.reason = (char *)"prize";
    mint.authority = fixture_authority(f, "system:match");
    mint.items = items;
    mint.n_items = 2;
    assert_non_null(fixture_grant(f, "ann", "unheld", 10));
    assert_non_null(fixture_mutate(f, METHOD_GRANT, &mint.base));
    assert_non_null(fixture_grant(f, "ann", "system:payments", 20));
    Holdfast__V1__ListEntriesResponse *page = list(f, 0, "", true);
    assert_int_equal(page->n_entries, 3);
    assert_string_equal(page->entries[1]->authority, "system:match");
    fixture_audit(f, "ann", "gold", &sums);
    assert_int_equal(sums.entries, 3);
    assert_int_equal(sums.granted, 30);
    assert_int_equal(sums.items, 2);
}

static Holdfast__V1__ListEntriesRequest all(void)
{
    Holdfast__V1__ListEntriesRequest request = HOLDFAST__V1__LIST_ENTRIES_REQUEST__INIT;

    request.player_id = (char *)"ann";
    request.ascending = true;
    return request;
}

/* Pages to the end; the seqs that were shown. */
static uint32_t collect(struct fixture *f, Holdfast__V1__ListEntriesRequest request,
                        uint64_t ret_seqs[16], uint32_t *ret_pages)
{
    uint32_t count = 0;
    char cursor[64] = "";

    *ret_pages = 0;
    do {
        request.cursor = cursor;
        Holdfast__V1__ListEntriesResponse *page =
            fixture_read(f, METHOD_LIST_ENTRIES, &request.base);
        assert_non_null(page);
        for (size_t i = 0; i < page->n_entries; i++) {
            assert_true(count < 16);
            ret_seqs[count++] = page->entries[i]->seq;
        }
        assert_true(strlen(page->next_cursor) < sizeof cursor);
        memcpy(cursor, page->next_cursor, strlen(page->next_cursor) + 1);
        assert_true(++*ret_pages < 100);
    } while (cursor[0] != 0);
    return count;
}

static char *mint_one(struct fixture *f, const char *op_id)
{
    Holdfast__V1__GrantRequest mint = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__ItemSpec item = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[] = { &item };

    item.kind = (char *)"sword";
    mint.player_id = (char *)"ann";
    mint.op_id = text_lend(op_id);
    mint.authority = fixture_authority(f, "unheld");
    mint.items = items;
    mint.n_items = 1;
    Holdfast__V1__GrantResponse *response = fixture_mutate(f, METHOD_GRANT, &mint.base);
    assert_non_null(response);
    return response->item_uids[0];
}

static void spend_one(struct fixture *f, char *uid)
{
    Holdfast__V1__SpendRequest spend = HOLDFAST__V1__SPEND_REQUEST__INIT;

    spend.player_id = (char *)"ann";
    spend.op_id = fixture_op_id(f);
    spend.authority = fixture_authority(f, "unheld");
    spend.item_uids = &uid;
    spend.n_item_uids = 1;
    assert_non_null(fixture_mutate(f, METHOD_SPEND, &spend.base));
}

/* Entries 1 to 6: gold, an item (claim:a), gold, an item (claim:b), the first item spent, gold; a
 * second apart. Returns the first item's UID. */
static char *write_six(struct fixture *f, char ret_uid[33])
{
    assert_non_null(fixture_grant(f, "ann", "unheld", 1));
    fixture_pass(f, 1000);
    snprintf(ret_uid, 33, "%s", mint_one(f, "claim:a"));
    fixture_pass(f, 1000);
    assert_non_null(fixture_grant(f, "ann", "unheld", 1));
    fixture_pass(f, 1000);
    (void)mint_one(f, "claim:b");
    fixture_pass(f, 1000);
    spend_one(f, ret_uid);
    fixture_pass(f, 1000);
    assert_non_null(fixture_grant(f, "ann", "unheld", 1));
    fixture_restart(f);
    return ret_uid;
}

static void filters_leave_what_matches_in_both_directions(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__LedgerKind kinds[] = { HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_GRANT,
                                         HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_CONSUME };
    Holdfast__V1__LedgerKind spends = HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_SPEND;
    uint64_t seqs[16];
    uint32_t pages;
    char uid[33];

    write_six(f, uid);
    Holdfast__V1__ListEntriesRequest request = all();
    request.kinds = kinds;
    request.n_kinds = 2;
    assert_int_equal(collect(f, request, seqs, &pages), 5);
    assert_int_equal(seqs[0], 1);
    assert_int_equal(seqs[4], 6);
    request.ascending = false;
    request.page_size = 1;
    assert_int_equal(collect(f, request, seqs, &pages), 5);
    assert_int_equal(seqs[0], 6);
    assert_int_equal(seqs[1], 4);
    request.kinds = &spends;
    request.n_kinds = 1;
    assert_int_equal(collect(f, request, seqs, &pages), 1);
    assert_int_equal(seqs[0], 5);
    request = all();
    request.item_uid = uid;
    fixture_restart(f);
    assert_int_equal(collect(f, request, seqs, &pages), 2);
    assert_int_equal(seqs[0], 2);
    assert_int_equal(seqs[1], 5);
    request.ascending = false;
    request.page_size = 1;
    assert_int_equal(collect(f, request, seqs, &pages), 2);
    assert_int_equal(seqs[0], 5);
    request = all();
    request.currency = (char *)"gold";
    assert_int_equal(collect(f, request, seqs, &pages), 3);
    assert_int_equal(seqs[2], 6);
    request.currency = (char *)"gems";
    assert_int_equal(collect(f, request, seqs, &pages), 0);
    request = all();
    request.op_id = (char *)"claim:b";
    assert_int_equal(collect(f, request, seqs, &pages), 1);
    assert_int_equal(seqs[0], 4);
}

static void a_range_of_time_holds_its_first_moment_and_not_its_last(void **state)
{
    struct fixture *f = *state;
    uint64_t seqs[16];
    uint32_t pages;
    char uid[33];

    write_six(f, uid);
    Holdfast__V1__ListEntriesResponse *page = list(f, 0, "", true);
    assert_int_equal(page->n_entries, 6);
    int64_t third = page->entries[2]->at_ms, fifth = page->entries[4]->at_ms;
    Holdfast__V1__ListEntriesRequest request = all();
    request.from_ms = third;
    request.to_ms = fifth;
    for (int direction = 0; direction < 2; direction++) {
        request.ascending = direction;
        fixture_restart(f);
        assert_int_equal(collect(f, request, seqs, &pages), 2);
        assert_int_equal(seqs[0] + seqs[1], 3 + 4);
    }
    request.from_ms = fifth + 100000;
    request.to_ms = 0;
    assert_int_equal(collect(f, request, seqs, &pages), 0);
    request.from_ms = 0;
    request.to_ms = 1;
    assert_int_equal(collect(f, request, seqs, &pages), 0);
}

/* The entry cannot be read, and is replaced; that is later than all entries. */
static void lose(struct fixture *f, uint64_t seq)
{
    struct state *rows = applier_state(f->applier);
    struct fixture_unreadable found;
    struct row_key key;
    struct slice row;

    row_key_ledger(&key, SLICE_LITERAL("player:ann"), seq);
    assert_int_equal(row_find(rows, &key, &f->need, &row), STATE_PRESENT);
    state_begin(rows);
    state_put(rows, row_key_slice(&key), SLICE_LITERAL("\xff"));
    state_commit(rows);
    fixture_contain(f, "ann");
    assert_int_equal(fixture_check_player(f, "ann", &found), 1);
    Holdfast__V1__RepairPlayerRequest *request = fixture_repair_request(f, "ann");
    request->rows = found.keys;
    request->n_rows = found.count;
    assert_non_null(fixture_mutate(f, METHOD_REPAIR_PLAYER, &request->base));
    fixture_unreadable_free(&found);
    fixture_release(f, "ann");
}

/* An operation is looked for in the ledger of who was repaired, above all. */
static void a_range_of_time_does_not_end_at_an_entry_that_was_lost(void **state)
{
    static const uint64_t lost[] = { 1, 2, 3, 4, 7, 13 };
    struct fixture *f = *state;
    int64_t at_ms[41];
    uint64_t seqs[16];
    uint32_t pages;

    for (int i = 1; i <= 40; i++) {
        assert_non_null(fixture_grant(f, "ann", "unheld", 1));
        fixture_pass(f, 1000);
    }
    Holdfast__V1__ListEntriesResponse *page = list(f, 200, "", true);
    assert_int_equal(page->n_entries, 40);
    for (int i = 1; i <= 40; i++)
        at_ms[i] = page->entries[i - 1]->at_ms;
    for (size_t i = 0; i < ARRAY_SIZE(lost); i++) {
        lose(f, lost[i]);
        fixture_pass(f, 1000);
    }
    Holdfast__V1__ListEntriesRequest request = all();
    request.from_ms = at_ms[5];
    request.to_ms = at_ms[17];
    request.page_size = 50;
    for (int direction = 0; direction < 2; direction++) {
        request.ascending = direction;
        fixture_restart(f);
        assert_int_equal(collect(f, request, seqs, &pages), 12);
        assert_int_equal(seqs[direction ? 0 : 11], 5);
    }
    request.to_ms = at_ms[5]; /* What was lost at the begin has no time. */
    request.from_ms = 0;
    assert_int_equal(collect(f, request, seqs, &pages), 4);
}

static void a_page_looks_at_few_entries_of_a_long_ledger(void **state)
{
    struct fixture *f = *state;
    struct state_stats before, after;
    uint64_t seqs[16];
    uint32_t pages;

    f->reads_once = true;
    for (int i = 0; i < 3000; i++) {
        assert_non_null(fixture_grant(f, "ann", "unheld", 1));
        f->now_ms += 10;
    }
    (void)mint_one(f, "claim:last");
    int64_t middle = list_at(f, 1, "1500", true)->entries[0]->at_ms;
    Holdfast__V1__ListEntriesRequest request = all();
    request.op_id = (char *)"claim:last";
    request.from_ms = middle;
    state_stats_get(applier_state(f->applier), &before);
    assert_int_equal(collect(f, request, seqs, &pages), 1);
    state_stats_get(applier_state(f->applier), &after);
    assert_in_range(pages, 3, 5);
    assert_in_range(after.hits + after.misses - before.hits - before.misses, 1500, 2000);
    request.from_ms = middle + 14000;
    state_stats_get(applier_state(f->applier), &before);
    assert_int_equal(collect(f, request, seqs, &pages), 1);
    state_stats_get(applier_state(f->applier), &after);
    assert_int_equal(pages, 1);
    assert_in_range(after.hits + after.misses - before.hits - before.misses, 1, 250);
}

static void refuse_filter(struct fixture *f, Holdfast__V1__ListEntriesRequest request,
                          const char *field)
{
    assert_null(fixture_read(f, METHOD_LIST_ENTRIES, &request.base));
    assert_int_equal(f->error->code, ERROR(INVALID_ARGUMENT));
    assert_string_equal(f->error->field, field);
}

static void every_kind_can_be_asked_for(void **state)
{
    const ProtobufCEnumDescriptor *descriptor = &holdfast__v1__ledger_kind__descriptor;
    struct fixture *f = *state;
    uint64_t seqs[16];
    uint32_t pages, found = 0;
    char uid[33];

    write_six(f, uid);
    for (unsigned i = 0; i < descriptor->n_values; i++) {
        Holdfast__V1__LedgerKind kind = (Holdfast__V1__LedgerKind)descriptor->values[i].value;
        Holdfast__V1__ListEntriesRequest request = all();

        request.kinds = &kind;
        request.n_kinds = 1;
        if (kind != HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_UNSPECIFIED)
            found += collect(f, request, seqs, &pages);
    }
    assert_int_equal(found, 6);
}

static void filters_that_mean_nothing_are_refused(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__LedgerKind kinds[17] = { HOLDFAST__V1__LEDGER_KIND__LEDGER_KIND_GRANT,
                                           (Holdfast__V1__LedgerKind)0 };

    Holdfast__V1__ListEntriesRequest request = all();
    request.kinds = kinds;
    request.n_kinds = 2;
    refuse_filter(f, request, "kinds[1]");
    request.n_kinds = 17;
    refuse_filter(f, request, "kinds");
    request = all();
    request.item_uid = (char *)"sword";
    refuse_filter(f, request, "item_uid");
    request = all();
    request.op_id = (char *)"no such id";
    refuse_filter(f, request, "op_id");
    request = all();
    request.currency = (char *)"a_currency_of_more_than_32_letters";
    refuse_filter(f, request, "currency");
    request = all();
    request.from_ms = -1;
    refuse_filter(f, request, "from_ms");
    request = all();
    request.from_ms = 5;
    request.to_ms = 5;
    refuse_filter(f, request, "to_ms");
    request.to_ms = -5;
    refuse_filter(f, request, "to_ms");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(pages_run_both_ways_and_end),
        FIXTURE_TEST(cursors_and_sizes_are_checked),
        FIXTURE_TEST(filters_leave_what_matches_in_both_directions),
        FIXTURE_TEST(a_range_of_time_holds_its_first_moment_and_not_its_last),
        FIXTURE_TEST(a_range_of_time_does_not_end_at_an_entry_that_was_lost),
        FIXTURE_TEST(a_page_looks_at_few_entries_of_a_long_ledger),
        FIXTURE_TEST(every_kind_can_be_asked_for),
        FIXTURE_TEST(filters_that_mean_nothing_are_refused),
        FIXTURE_TEST(anyone_can_verify_the_chain_from_the_answers_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
