/* ExportPlayer: all that is kept of a player in favourites and counters, page by page. */
#include <stdio.h>
#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/rpc/fixture_counter.h"
#include "node/core/definition/player_rate.h"
#include "node/rpc/fixture_edges.h"

static int setup(void **state)
{
    int failed = fixture_setup(state);

    if (failed == 0) {
        fixture_define_favorites(*state);
        fixture_define_plays(*state);
    }
    return failed;
}

#define EXPORT_TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

static const Holdfast__V1__ExportPlayerResponse *page(struct fixture *f, uint32_t size,
                                                      const char *cursor)
{
    Holdfast__V1__ExportPlayerRequest request = HOLDFAST__V1__EXPORT_PLAYER_REQUEST__INIT;

    request.player_id = text_lend("ann");
    request.page_size = size;
    request.cursor = text_lend(cursor);
    return fixture_read(f, METHOD_EXPORT_PLAYER, &request.base);
}

/* All pages, as one line. */
static const char *exported(struct fixture *f, uint32_t size)
{
    static char all[1024];
    char cursor[512] = "";

    all[0] = '\0';
    do {
        const Holdfast__V1__ExportPlayerResponse *response = page(f, size, cursor);
        assert_non_null(response);
        assert_true(response->as_of[0] != '\0');
        assert_true(response->n_rows <= size || size == 0);
        for (size_t i = 0; i < response->n_rows; i++) {
            const Holdfast__V1__ExportedRow *row = response->rows[i];
            size_t used = strlen(all);
            if (row->row_case == HOLDFAST__V1__EXPORTED_ROW__ROW_EDGE)
                snprintf(all + used, sizeof all - used, "%s:%s%s%llu ", row->name,
                         row->edge->target_id, row->edge->favorited ? "+" : "-",
                         (unsigned long long)row->edge->ver);
            else if (row->row_case == HOLDFAST__V1__EXPORTED_ROW__ROW_COUNTER)
                snprintf(all + used, sizeof all - used, "%s:%s=%lld ", row->name,
                         row->counter->target_id, (long long)row->counter->value);
            else
                snprintf(all + used, sizeof all - used, "rate %s:%u ", row->name,
                         row->rate->windows[0]->used);
        }
        snprintf(cursor, sizeof cursor, "%s", response->next_cursor);
    } while (cursor[0] != '\0');
    return all;
}

static void fill(struct fixture *f)
{
    assert_non_null(fixture_favorite(f, "ann", "pong"));
    f->now_ms += 10;
    assert_non_null(fixture_favorite(f, "ann", "chess"));
    assert_non_null(fixture_favorite(f, "ann", "go"));
    assert_non_null(fixture_unfavorite(f, "ann", "go"));
    assert_int_equal(fixture_add(f, "ann", "pong", 5), 5);
    assert_int_equal(fixture_add(f, "ann", "go", 2), 2);
    assert_non_null(fixture_favorite(f, "anna", "pong"));
    assert_int_equal(fixture_add(f, "anna", "pong", 1), 1);
}

#define ALL                                                                                        \
    "favorites:chess+1 favorites:pong+1 favorites:go-2 plays:go=2 plays:pong=5 rate :4 rate "      \
    "favorites:4 "

static void all_of_one_player_is_told_whatever_the_pages(void **state)
{
    struct fixture *f = *state;

    fill(f);
    for (uint32_t size = 0; size <= 7; size++)
        assert_string_equal(exported(f, size), ALL);
    fixture_restart(f);
    assert_string_equal(exported(f, 2), ALL);
}

static void a_player_that_is_erased_is_told_until_it_is_purged(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ErasePlayerRequest request = HOLDFAST__V1__ERASE_PLAYER_REQUEST__INIT;

    fill(f);
    assert_null(page(f, 0, "")->erasure);
    assert_true(page(f, 0, "")->created_at_ms > 0);
    request.player_id = text_lend("ann");
    request.op_id = fixture_op_id(f);
    request.authority = text_lend("system:admin");
    request._grace_ms_case = 10;
    request.grace_ms = 1000;
    assert_non_null(fixture_mutate(f, METHOD_ERASE_PLAYER, &request.base));
    assert_string_equal(exported(f, 3), ALL);
    for (uint32_t i = 0; i < 10; i++)
        (void)fixture_pass(f, 20);
    assert_string_equal(exported(f, 3), ALL);
    for (uint32_t i = 0; i < 20; i++)
        (void)fixture_pass(f, 1000);
    assert_string_equal(exported(f, 3), "rate :4 "); /* Of outcomes, which stay. */
    assert_int_equal(page(f, 0, "")->erasure->state,
                     HOLDFAST__V1__ERASURE_STATE__ERASURE_STATE_PURGED);
}

static void a_flagged_edge_says_why_and_since_when(void **state)
{
    struct fixture *f = *state;

    fill(f);
    f->now_ms += 10;
    assert_non_null(fixture_decide(f, METHOD_FLAG_EDGES, "ann", "pong"));
    assert_non_null(fixture_decide(f, METHOD_FLAG_EDGES, "ann", "chess"));
    assert_non_null(fixture_decide(f, METHOD_REJECT_EDGES, "ann", "chess"));
    const Holdfast__V1__ExportPlayerResponse *all = page(f, 0, "");
    assert_non_null(all);
    assert_string_equal(all->rows[0]->edge->target_id, "pong");
    assert_int_equal(all->rows[0]->flagged_for, HOLDFAST__V1__FLAG_REASON__FLAG_REASON_MODERATION);
    assert_int_equal(all->rows[0]->flagged_at_ms, f->now_ms);
    for (size_t i = 1; i < all->n_rows; i++) {
        bool rejected = all->rows[i]->row_case == HOLDFAST__V1__EXPORTED_ROW__ROW_EDGE &&
                        strcmp(all->rows[i]->edge->target_id, "chess") == 0;
        assert_int_equal(all->rows[i]->flagged_for,
                         rejected ? HOLDFAST__V1__FLAG_REASON__FLAG_REASON_REJECTED
                                  : HOLDFAST__V1__FLAG_REASON__FLAG_REASON_UNSPECIFIED);
        assert_int_equal(all->rows[i]->flagged_at_ms, 0);
    }
}

/* As many rules as one subject may have, and the default beside them: each counts a player's
 * changes. */
static void every_window_of_a_rate_is_told(void **state)
{
    struct fixture *f = *state;
    uint32_t windows = 0;

    for (uint32_t i = 0; i < RATE_RULES_MAX; i++)
        fixture_define_flag(f, &(struct fixture_flag_rule){ .number = 40 + i,
                                                            .revision = 40 + i,
                                                            .flag_above = 100 + i,
                                                            .period_ms = 1000 });
    assert_non_null(fixture_favorite(f, "ann", "pong"));
    const Holdfast__V1__ExportPlayerResponse *all = page(f, 0, "");
    assert_non_null(all);
    for (size_t i = 0; i < all->n_rows; i++) {
        if (all->rows[i]->row_case == HOLDFAST__V1__EXPORTED_ROW__ROW_RATE &&
            all->rows[i]->number > 0)
            windows += (uint32_t)all->rows[i]->rate->n_windows;
    }
    assert_int_equal(windows, RATE_USES_MAX);
}

static void rows_of_a_deleted_collection_are_told_without_its_name(void **state)
{
    struct fixture *f = *state;

    assert_non_null(fixture_favorite(f, "ann", "pong"));
    fixture_define(f, &(struct fixture_collection){ 7, 30, "favorites", POLICY_HIGHEST, 0, true });
    assert_string_equal(exported(f, 0), ":pong+1 rate :1 rate :1 ");
}

static void a_page_has_a_limit_and_a_cursor_a_form(void **state)
{
    struct fixture *f = *state;

    fill(f);
    assert_null(page(f, 201, ""));
    assert_string_equal(f->error->field, "page_size");
    assert_string_equal(f->error->limit, "1 to 200, or 0");
    assert_null(page(f, 1, "anything"));
    assert_string_equal(f->error->field, "cursor");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        EXPORT_TEST(all_of_one_player_is_told_whatever_the_pages),
        EXPORT_TEST(a_player_that_is_erased_is_told_until_it_is_purged),
        EXPORT_TEST(a_flagged_edge_says_why_and_since_when),
        EXPORT_TEST(every_window_of_a_rate_is_told),
        EXPORT_TEST(rows_of_a_deleted_collection_are_told_without_its_name),
        EXPORT_TEST(a_page_has_a_limit_and_a_cursor_a_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
