#include "node/rpc/fixture.h"

#include <string.h>

#include "runtime/base/check.h"

static Holdfast__V1__GrantResponse *mint(struct fixture *f, const char *kind, size_t count)
{
    Holdfast__V1__GrantRequest request = HOLDFAST__V1__GRANT_REQUEST__INIT;
    Holdfast__V1__ItemSpec item = HOLDFAST__V1__ITEM_SPEC__INIT;
    Holdfast__V1__ItemSpec *items[64];

    item.kind = text_lend(kind);
    for (size_t i = 0; i < count; i++)
        items[i] = &item;
    request.player_id = (char *)"ann";
    request.op_id = fixture_op_id(f);
    request.authority = fixture_authority(f, "system:match");
    request.items = items;
    request.n_items = count;
    return fixture_mutate(f, METHOD_GRANT, &request.base);
}

static Holdfast__V1__ListItemsResponse *list(struct fixture *f, uint32_t size, const char *cursor,
                                             const char *kind)
{
    Holdfast__V1__ListItemsRequest request = HOLDFAST__V1__LIST_ITEMS_REQUEST__INIT;

    request.player_id = (char *)"ann";
    request.page_size = size;
    request.cursor = text_lend(cursor);
    request.kind = text_lend(kind);
    return fixture_read(f, METHOD_LIST_ITEMS, &request.base);
}

/* Walks all pages; checks that UIDs rise and returns how many items there were. */
static uint32_t walk(struct fixture *f, uint32_t size, const char *kind)
{
    char last[40] = "";
    const char *cursor = "";
    uint32_t count = 0;

    do {
        Holdfast__V1__ListItemsResponse *page = list(f, size, cursor, kind);
        assert_non_null(page);
        assert_true(page->n_items <= size);
        for (size_t i = 0; i < page->n_items; i++, count++) {
            assert_true(strcmp(page->items[i]->uid, last) > 0);
            memcpy(last, page->items[i]->uid, 33);
        }
        cursor = page->next_cursor;
        assert_true(cursor[0] == 0 || page->n_items > 0 || kind[0] != 0);
    } while (cursor[0] != 0);
    return count;
}

static void pages_merge_old_items_from_the_database_with_new_ones(void **state)
{
    struct fixture *f = *state;

    assert_non_null(mint(f, "sword", 10));
    assert_non_null(mint(f, "potion", 5));
    assert_int_equal(walk(f, 4, ""), 15);
    fixture_restart(f);
    assert_non_null(mint(f, "sword", 7));
    for (uint32_t size = 1; size <= 23; size++) {
        fixture_evict(f, 0);
        assert_int_equal(walk(f, size, ""), 22);
        assert_int_equal(walk(f, size, "potion"), 5);
        assert_int_equal(walk(f, size, "sword"), 17);
    }
    assert_int_equal(list(f, 0, "", "none")->n_items, 0);
    assert_int_equal(list(f, 0, "", "none")->total, 22);
}

static void a_page_that_ends_with_the_last_item_has_no_cursor(void **state)
{
    struct fixture *f = *state;

    assert_non_null(mint(f, "sword", 4));
    assert_string_equal(list(f, 4, "", "")->next_cursor, "");
    assert_string_equal(list(f, 4, "", "sword")->next_cursor, "");
    assert_string_not_equal(list(f, 3, "", "")->next_cursor, "");
}

static void a_page_has_a_hundred_items_unless_the_caller_says_how_many(void **state)
{
    struct fixture *f = *state;

    assert_non_null(mint(f, "sword", 64));
    assert_non_null(mint(f, "sword", 37));
    assert_int_equal(list(f, 0, "", "")->n_items, 100);
    assert_int_equal(list(f, 1, "", "")->n_items, 1);
    assert_int_equal(list(f, 500, "", "")->n_items, 101);
}

static void cursors_and_sizes_are_checked(void **state)
{
    struct fixture *f = *state;

    assert_null(list(f, 501, "", ""));
    assert_string_equal(f->error->field, "page_size");
    assert_null(list(f, 0, "xyz", ""));
    assert_string_equal(f->error->field, "cursor");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(pages_merge_old_items_from_the_database_with_new_ones),
        FIXTURE_TEST(a_page_that_ends_with_the_last_item_has_no_cursor),
        FIXTURE_TEST(a_page_has_a_hundred_items_unless_the_caller_says_how_many),
        FIXTURE_TEST(cursors_and_sizes_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
