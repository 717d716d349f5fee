/* What CheckPlayer refuses, and what it says of sound players. Of spoilt rows:
 * unreadable_rows_test.c and admin_repair_player_test.c. */
#include "node/rpc/fixture.h"

static Holdfast__V1__CheckPlayerResponse *check(struct fixture *f, uint32_t page_size,
                                                const char *cursor)
{
    Holdfast__V1__CheckPlayerRequest request = HOLDFAST__V1__CHECK_PLAYER_REQUEST__INIT;

    request.player_id = (char *)"ann";
    request.page_size = page_size;
    request.cursor = text_lend(cursor);
    return fixture_read(f, METHOD_CHECK_PLAYER, &request.base);
}

static void a_sound_player_has_no_unreadable_rows(void **state)
{
    struct fixture *f = *state;
    struct fixture_unreadable rows;

    assert_int_equal(fixture_check_player(f, "ann", &rows), 0);
    assert_non_null(fixture_grant(f, "ann", "unheld", 5));
    assert_int_equal(fixture_check_player(f, "ann", &rows), 0);
    assert_false(rows.player);
    fixture_unreadable_free(&rows);
}

static void sizes_and_cursors_that_are_wrong_are_refused(void **state)
{
    struct fixture *f = *state;

    assert_null(check(f, 65, ""));
    assert_string_equal(f->error->field, "page_size");
    assert_null(check(f, 64, "?"));
    assert_int_equal(f->error->code, ERROR(INVALID_ARGUMENT));
    assert_string_equal(f->error->field, "cursor");
    assert_non_null(check(f, 64, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(a_sound_player_has_no_unreadable_rows),
        FIXTURE_TEST(sizes_and_cursors_that_are_wrong_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
