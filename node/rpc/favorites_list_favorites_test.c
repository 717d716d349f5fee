/* ListFavorites, and ListByTarget. */
#include <stdio.h>
#include <string.h>

#include "node/rpc/fixture_edges.h"

static int setup(void **state)
{
    int failed = fixture_setup(state);

    if (failed == 0)
        fixture_define_favorites(*state);
    return failed;
}

#define LIST_TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

#define TEXT_SIZE 4096u

/* All targets of ann's, page by page, as "a b | c d |", without bars if `bars` is false; `between`
 * is called after each page. */
static void walk_pages(struct fixture *f, uint32_t page_size, void (*between)(struct fixture *f),
                       bool bars, char text[TEXT_SIZE])
{
    Holdfast__V1__ListFavoritesRequest request = HOLDFAST__V1__LIST_FAVORITES_REQUEST__INIT;
    char cursor[512] = "";
    size_t size = 0;

    request.player_id = text_lend("ann");
    request.page_size = page_size;
    request.cursor = cursor;
    do {
        const Holdfast__V1__ListFavoritesResponse *response =
            fixture_read(f, METHOD_LIST_FAVORITES, &request.base);
        assert_non_null(response);
        for (size_t i = 0; i < response->n_favorites; i++)
            size += (size_t)snprintf(text + size, TEXT_SIZE - size, "%s ",
                                     response->favorites[i]->target_id);
        size += (size_t)snprintf(text + size, TEXT_SIZE - size, "%s", bars ? "| " : "");
        snprintf(cursor, sizeof cursor, "%s", response->next_cursor);
        if (between != NULL)
            between(f);
    } while (cursor[0] != 0);
}

static void walk(struct fixture *f, uint32_t page_size, void (*between)(struct fixture *f),
                 char text[TEXT_SIZE])
{
    walk_pages(f, page_size, between, true, text);
}

static void make_some(struct fixture *f)
{
    static const char *const targets[] = { "pong", "chess", "doom", "zork", "go" };

    for (size_t i = 0; i < 5; i++) {
        assert_non_null(fixture_favorite(f, "ann", targets[i]));
        f->now_ms += i % 2; /* Some at one moment. */
    }
    assert_non_null(fixture_favorite(f, "bob", "tetris"));
}

static void edges_come_newest_first_and_by_target_at_one_moment(void **state)
{
    struct fixture *f = *state;
    char text[TEXT_SIZE];

    make_some(f);
    walk(f, 0, NULL, text);
    assert_string_equal(text, "go doom zork chess pong | ");
    for (uint32_t size = 1; size <= 5; size++) {
        walk_pages(f, size, NULL, false, text);
        assert_string_equal(text, "go doom zork chess pong ");
        fixture_restart(f);
    }
}

static void insert(struct fixture *f)
{
    char target[16];

    f->now_ms++;
    snprintf(target, sizeof target, "new%u", (unsigned)(f->now_ms % 1000));
    assert_non_null(fixture_favorite(f, "ann", target));
}

static void pages_stay_where_they_are_while_edges_come(void **state)
{
    struct fixture *f = *state;
    char text[TEXT_SIZE];

    make_some(f);
    walk(f, 2, insert, text);
    assert_string_equal(text, "go doom | zork chess | pong | ");
}

static void one_that_is_gone_is_not_listed_and_comes_back_as_the_newest(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ListFavoritesRequest request = HOLDFAST__V1__LIST_FAVORITES_REQUEST__INIT;
    char text[TEXT_SIZE];

    make_some(f);
    assert_non_null(fixture_unfavorite(f, "ann", "doom"));
    walk(f, 0, NULL, text);
    assert_string_equal(text, "go zork chess pong | ");
    f->now_ms++;
    assert_non_null(fixture_favorite(f, "ann", "doom"));
    walk(f, 0, NULL, text);
    assert_string_equal(text, "doom go zork chess pong | ");
    assert_non_null(
        fixture_edge(f, &(struct fixture_edge){ .player = "ann", .target = "doom", .ver = 900 }));
    request.player_id = text_lend("ann");
    request.page_size = 1;
    const Holdfast__V1__ListFavoritesResponse *response =
        fixture_read(f, METHOD_LIST_FAVORITES, &request.base);
    assert_int_equal(response->edges, 5);
    assert_int_equal(response->favorites[0]->ver, 900);
    assert_int_equal(response->favorites[0]->created_at_ms, f->now_ms);
    assert_true(response->favorites[0]->favorited);
    fixture_check_edges(f);
}

static void collections_do_not_mix(void **state)
{
    struct fixture *f = *state;
    char text[TEXT_SIZE];

    fixture_define(f, &(struct fixture_collection){ 8, 20, "likes", POLICY_HIGHEST, 0, false });
    make_some(f);
    assert_non_null(
        fixture_edge(f, &(struct fixture_edge){ "ann", "tetris", "likes", 0, 0, false, NULL }));
    walk(f, 0, NULL, text);
    assert_string_equal(text, "go doom zork chess pong | ");
}

static void a_player_without_edges_has_an_empty_list(void **state)
{
    char text[TEXT_SIZE];

    walk(*state, 0, NULL, text);
    assert_string_equal(text, "| ");
}

static void bad_pages_are_refused(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ListFavoritesRequest request = HOLDFAST__V1__LIST_FAVORITES_REQUEST__INIT;

    make_some(f);
    request.player_id = text_lend("ann");
    request.page_size = 201;
    assert_null(fixture_read(f, METHOD_LIST_FAVORITES, &request.base));
    assert_string_equal(f->error->field, "page_size");
    request.page_size = 2;
    request.cursor = text_lend("nonsense");
    assert_null(fixture_read(f, METHOD_LIST_FAVORITES, &request.base));
    assert_string_equal(f->error->field, "cursor");
    request.cursor = text_lend("");
    request.collection = text_lend("likes");
    assert_null(fixture_read(f, METHOD_LIST_FAVORITES, &request.base));
    assert_int_equal(f->error->code, ERROR(NOT_FOUND));
}

/* A cursor is good for its own player and collection. */
static void a_foreign_cursor_is_refused(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ListFavoritesRequest request = HOLDFAST__V1__LIST_FAVORITES_REQUEST__INIT;
    char cursor[512];

    make_some(f);
    request.player_id = text_lend("ann");
    request.page_size = 1;
    const Holdfast__V1__ListFavoritesResponse *response =
        fixture_read(f, METHOD_LIST_FAVORITES, &request.base);
    snprintf(cursor, sizeof cursor, "%s", response->next_cursor);
    request.cursor = cursor;
    request.player_id = text_lend("bob");
    assert_null(fixture_read(f, METHOD_LIST_FAVORITES, &request.base));
    assert_string_equal(f->error->field, "cursor");
}

static void a_target_knows_who_favorited_it(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ListByTargetRequest request = HOLDFAST__V1__LIST_BY_TARGET_REQUEST__INIT;
    static const char *const players[] = { "carl", "ann", "bob" };
    char cursor[512] = "", text[64];
    size_t size = 0;

    for (size_t i = 0; i < 3; i++)
        assert_non_null(fixture_favorite(f, players[i], "pong"));
    assert_non_null(fixture_favorite(f, "dora", "pong2"));
    assert_non_null(fixture_favorite(f, "dora", "pong"));
    assert_non_null(fixture_unfavorite(f, "dora", "pong"));
    request.target_id = text_lend("pong");
    request.page_size = 2;
    request.cursor = cursor;
    do {
        const Holdfast__V1__ListByTargetResponse *response =
            fixture_read(f, METHOD_LIST_BY_TARGET, &request.base);
        assert_non_null(response);
        for (size_t i = 0; i < response->n_edges; i++) {
            size += (size_t)snprintf(text + size, sizeof text - size, "%s ",
                                     response->edges[i]->player_id);
            assert_int_equal(response->edges[i]->created_at_ms, f->now_ms);
        }
        snprintf(cursor, sizeof cursor, "%s", response->next_cursor);
        fixture_restart(f);
    } while (cursor[0] != 0);
    assert_string_equal(text, "ann bob carl ");
    request.page_size = 1001;
    assert_null(fixture_read(f, METHOD_LIST_BY_TARGET, &request.base));
    request.page_size = 0;
    request.target_id = text_lend("");
    assert_null(fixture_read(f, METHOD_LIST_BY_TARGET, &request.base));
    assert_string_equal(f->error->field, "target_id");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LIST_TEST(edges_come_newest_first_and_by_target_at_one_moment),
        LIST_TEST(pages_stay_where_they_are_while_edges_come),
        LIST_TEST(one_that_is_gone_is_not_listed_and_comes_back_as_the_newest),
        LIST_TEST(collections_do_not_mix),
        LIST_TEST(a_player_without_edges_has_an_empty_list),
        LIST_TEST(bad_pages_are_refused),
        LIST_TEST(a_foreign_cursor_is_refused),
        LIST_TEST(a_target_knows_who_favorited_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
