#include "node/rpc/fixture.h"

#include "runtime/base/check.h"

static Holdfast__V1__ListEntriesResponse *list(struct fixture *f, uint32_t size, const char *cursor,
                                               bool ascending)
{
    Holdfast__V1__ListEntriesRequest request = HOLDFAST__V1__LIST_ENTRIES_REQUEST__INIT;

    request.player_id = (char *)"ann";
    request.page_size = size;
    request.cursor = (char *)(uintptr_t)cursor;
    request.ascending = ascending;
    return fixture_read(f, METHOD_LIST_ENTRIES, &request.base);
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
    assert_string_equal(page->next_cursor, "3");
    assert_non_null(fixture_grant(f, "ann", "unheld", 6));
    page = list(f, 2, "3", false);
    assert_int_equal(page->entries[1]->seq, 2);
    page = list(f, 2, page->next_cursor, false);
    assert_int_equal(page->n_entries, 1);
    assert_string_equal(page->next_cursor, "");
    page = list(f, 4, "", true);
    assert_int_equal(page->entries[3]->seq, 4);
    page = list(f, 4, page->next_cursor, true);
    assert_int_equal(page->n_entries, 2);
    assert_string_equal(page->next_cursor, "");
    assert_int_equal(list(f, 4, "7", true)->n_entries, 0);
}

static void cursors_and_sizes_are_checked(void **state)
{
    struct fixture *f = *state;
    static const char *const wrong[] = { "0", "x", "-1", "01", "99999999999999999999999" };

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        assert_null(list(f, 0, wrong[i], false));
        assert_string_equal(f->error->field, "cursor");
    }
    assert_null(list(f, 201, "", false));
    assert_string_equal(f->error->field, "page_size");
}

static void anyone_can_verify_the_chain_from_the_answers_alone(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__MintRequest mint = HOLDFAST__V1__MINT_REQUEST__INIT;
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
    assert_non_null(fixture_mutate(f, METHOD_MINT, &mint.base));
    assert_non_null(fixture_grant(f, "ann", "system:payments", 20));
    Holdfast__V1__ListEntriesResponse *page = list(f, 0, "", true);
    assert_int_equal(page->n_entries, 3);
    assert_string_equal(page->entries[1]->authority, "system:match");
    fixture_audit(f, "ann", "gold", &sums);
    assert_int_equal(sums.entries, 3);
    assert_int_equal(sums.granted, 30);
    assert_int_equal(sums.items, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(pages_run_both_ways_and_end),
        FIXTURE_TEST(cursors_and_sizes_are_checked),
        FIXTURE_TEST(anyone_can_verify_the_chain_from_the_answers_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
