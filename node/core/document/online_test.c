/* Who is online, at a member: the order, pages that lose no player, what ends with its server, its
 * time, a sweep, an erasure or a clear, and what two members that were apart come to say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/core/document/fixture.h"
#include "node/core/document/methods.h"
#include "node/core/document/online.h"
#include "node/core/mergeable/absorb.h"
#include "node/core/mergeable/disk.h"
#include "node/core/mergeable/rounds.h"
#include "node/core/mergeable/write.h"
#include "runtime/base/check.h"

#define ROWS 64u

typedef Holdfast__Internal__V1__ListNodeOnlineResponse page_response;

struct fixture {
    struct pair pair;
    struct online online[2];
    unsigned op;
    const char *hidden; /* An entity. */
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    pair_init(&f->pair);
    for (uint64_t i = 0; i < 2; i++)
        online_begin(&f->online[i], &f->pair.replicas[i]->store);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    pair_deinit(&f->pair);
    for (int i = 0; i < 2; i++)
        online_deinit(&f->online[i]);
    free(f);
    return 0;
}

/* ---- calls ---- */

static void call(struct fixture *f, int member, uint32_t method, const ProtobufCMessage *request)
{
    assert_int_equal(pair_call(&f->pair, member, method, request), ERR_OK);
    if (f->online[member].count <= ROWS) /* It walks over all. */
        online_check(&f->online[member]);
}

static char *op_of(struct fixture *f)
{
    return arena_printf(&f->pair.arena, "018bcfe5-6800-7000-8000-%012u", ++f->op);
}

/* For 60 s, or by server 1-10; a millisecond later than what was set before. */
static void set(struct fixture *f, int member, const char *player, const char *connection,
                bool by_server)
{
    Holdfast__V1__SetPresenceRequest request = HOLDFAST__V1__SET_PRESENCE_REQUEST__INIT;

    f->pair.now_ms++;
    request.player_id = text_lend(player);
    request.op_id = op_of(f);
    request.connection = text_lend(connection);
    if (by_server)
        request.incarnation = text_lend("1-10");
    else
        request.ttl_ms = 60000;
    call(f, member, METHOD_SET_PRESENCE, &request.base);
}

static void clear(struct fixture *f, int member, const char *player)
{
    Holdfast__V1__ClearPresenceRequest request = HOLDFAST__V1__CLEAR_PRESENCE_REQUEST__INIT;

    request.player_id = text_lend(player);
    request.op_id = op_of(f);
    call(f, member, METHOD_CLEAR_PRESENCE, &request.base);
}

static void drop(struct fixture *f, int member, const char *player, const char *connection)
{
    Holdfast__V1__ClearPresenceRequest request = HOLDFAST__V1__CLEAR_PRESENCE_REQUEST__INIT;

    request.player_id = text_lend(player);
    request.op_id = op_of(f);
    request.connection = text_lend(connection);
    call(f, member, METHOD_CLEAR_PRESENCE, &request.base);
}

static bool hides(void *user, struct slice entity)
{
    const struct fixture *f = user;

    return f->hidden != NULL && slice_equal(entity, slice_from_text(f->hidden));
}

static struct online_filter filter_of(struct fixture *f)
{
    return (struct online_filter){
        .living = &f->pair.living, .now_ms = f->pair.now_ms, .hides = hides, .user = f
    };
}

/* Where a page begins and how it goes. */
struct turn {
    bool upwards;
    uint64_t at;
    const char *player;
    uint32_t limit;
};

static page_response *ask(struct fixture *f, int member, struct turn turn)
{
    page_response *response = arena_alloc(&f->pair.arena, sizeof *response);
    const struct online_filter filter = filter_of(f);
    struct slice entity = { 0 };

    if (turn.player != NULL)
        entity = slice_from_text(arena_printf(&f->pair.arena, "player:%s", turn.player));
    const struct online_ask asked = { .behind = { turn.at, entity },
                                      .upwards = turn.upwards,
                                      .limit = turn.limit > 0 ? turn.limit : ROWS,
                                      .filter = &filter,
                                      .arena = &f->pair.arena };
    struct online_part part = { .online = &f->online[member], .replica = f->pair.replicas[member] };

    holdfast__internal__v1__list_node_online_response__init(response);
    response->rows = arena_alloc(&f->pair.arena, ROWS * sizeof *response->rows);
    online_page(&asked, &part, 1, response);
    return response;
}

static const char *names_of(struct fixture *f, const page_response *page)
{
    const char *text = "";

    for (size_t i = 0; i < page->n_rows; i++)
        text = arena_printf(&f->pair.arena, "%s%s%s", text, i > 0 ? " " : "",
                            page->rows[i]->player->player_id);
    return text;
}

static const char *listed(struct fixture *f, int member)
{
    return names_of(f, ask(f, member, (struct turn){ 0 }));
}

static uint64_t counted(struct fixture *f, int member)
{
    const struct online_filter filter = filter_of(f);

    return online_count(&f->online[member], &filter);
}

/* ---- tests ---- */

static void those_who_were_set_last_come_first(void **state)
{
    struct fixture *f = *state;

    set(f, 0, "ada", "game", true);
    set(f, 0, "bo", "game", false);
    set(f, 0, "cy", "game", true);
    assert_string_equal(listed(f, 0), "cy bo ada");
    set(f, 0, "ada", "phone", false);
    const page_response *page = ask(f, 0, (struct turn){ 0 });

    assert_string_equal(names_of(f, page), "ada cy bo");
    assert_int_equal(page->rows[0]->player->connections, 2);
    assert_int_equal(page->rows[0]->player->last_set_at_ms, f->pair.now_ms);
    assert_int_equal(page->rows[1]->player->connections, 1);
    assert_false(page->more);
    assert_int_equal(counted(f, 0), 3);
    clear(f, 0, "cy");
    assert_string_equal(listed(f, 0), "ada bo");
    assert_int_equal(counted(f, 0), 2);
}

static void who_has_no_living_connection_is_not_listed(void **state)
{
    struct fixture *f = *state;
    struct merge_key *after = NULL, *key = NULL;

    set(f, 0, "by-server", "game", true);
    set(f, 0, "by-time", "game", false);
    set(f, 0, "both", "game", true);
    set(f, 0, "both", "phone", false);
    living_put(&f->pair.living, (struct incarnation){ 1, 10 }, true);
    assert_string_equal(listed(f, 0), "both by-time");
    assert_int_equal(counted(f, 0), 2);
    struct document_context context = pair_context(&f->pair, 0);

    while (presence_sweep(&context, after, &key) == ERR_OK) {
        merge_key_unref(after);
        after = key;
        online_check(&f->online[0]);
    }
    merge_key_unref(after);
    assert_int_equal(f->online[0].count, 2);
    assert_string_equal(listed(f, 0), "both by-time");
    f->pair.now_ms += 61000;
    assert_string_equal(listed(f, 0), "");
    assert_int_equal(counted(f, 0), 0);
}

/* Two sides of a cut set one connection: only the later one is shown, and so counts. */
static void a_connection_that_is_not_shown_counts_no_player(void **state)
{
    struct fixture *f = *state;

    set(f, 0, "ada", "game", true);
    set(f, 1, "ada", "game", false);
    fixture_exchange(f->pair.replicas, f->pair.now_ms);
    assert_string_equal(listed(f, 0), "ada");
    assert_int_equal(counted(f, 0), 1);
    f->pair.now_ms += 61000;
    for (int member = 0; member < 2; member++) {
        assert_string_equal(listed(f, member), "");
        assert_int_equal(counted(f, member), 0);
    }
}

static void who_is_erased_is_not_listed_and_who_is_purged_is_gone(void **state)
{
    struct fixture *f = *state;

    set(f, 0, "ada", "game", true);
    set(f, 0, "bo", "game", true);
    f->hidden = "player:bo";
    assert_string_equal(listed(f, 0), "ada");
    assert_int_equal(counted(f, 0), 1);
    f->hidden = NULL;
    assert_int_equal(merge_erase(f->pair.replicas[0], SLICE_LITERAL("player:bo"), 1), ERR_OK);
    online_check(&f->online[0]);
    assert_int_equal(f->online[0].count, 1);
    assert_string_equal(listed(f, 0), "ada");
}

static void what_was_set_at_another_member_is_listed_alike(void **state)
{
    struct fixture *f = *state;

    set(f, 0, "ada", "game", true);
    set(f, 1, "bo", "game", true);
    set(f, 0, "cy", "game", true);
    clear(f, 0, "ada");
    for (int i = 0; i < 4; i++)
        fixture_exchange(f->pair.replicas, f->pair.now_ms);
    for (int member = 0; member < 2; member++) {
        online_check(&f->online[member]);
        assert_string_equal(listed(f, member), "cy bo");
    }
}

/* It was set last behind the reader, and then by what is gone. */
static void a_connection_that_goes_leaves_its_player_where_it_stood(void **state)
{
    struct fixture *f = *state;

    set(f, 0, "p1", "game", true);
    uint64_t begun_ms = f->pair.now_ms;

    set(f, 0, "p1", "web", true);
    set(f, 0, "p2", "game", true);
    const page_response *page = ask(f, 0, (struct turn){ .limit = 1 });

    assert_string_equal(names_of(f, page), "p2");
    drop(f, 0, "p1", "web");
    page = ask(f, 0, (struct turn){ .upwards = true, .at = begun_ms << 16, .player = "p1" });
    assert_string_equal(names_of(f, page), "p1"); /* The other one has come since. */
}

/* A reader of pages of two, between which players are set, come and go. */
static void no_player_who_stays_is_left_out(void **state)
{
    struct fixture *f = *state;
    const char *player = NULL;
    uint64_t at = 0;
    const char *found = "";

    for (int i = 0; i < 8; i++)
        set(f, 0, arena_printf(&f->pair.arena, "p%d", i), "game", true);
    uint64_t begun_ms = f->pair.now_ms;

    for (int turn = 0;; turn++) {
        const page_response *page =
            ask(f, 0, (struct turn){ .at = at, .player = player, .limit = 2 });

        found = arena_printf(&f->pair.arena, "%s%s ", found, names_of(f, page));
        if (!page->more)
            break;
        at = page->at;
        player = page->player_id;
        if (turn == 0) { /* The reader has not come to p1, and will not come to it any more. */
            set(f, 0, "p1", "game", true);
            set(f, 0, "new", "game", true);
            clear(f, 0, "p3");
        }
    }
    assert_string_equal(found, "p7 p6 p5 p4 p2 p0  ");
    const page_response *up =
        ask(f, 0, (struct turn){ .upwards = true, .at = begun_ms << 16, .player = "" });

    assert_string_equal(names_of(f, up), "p1");
    assert_false(up->more);
}

static void players_of_one_moment_are_parted_by_their_names(void **state)
{
    struct fixture *f = *state;
    const page_response *page;

    set(f, 0, "ada", "game", true);
    set(f, 0, "bo", "game", true);
    page = ask(f, 0, (struct turn){ .limit = 1 });
    assert_string_equal(names_of(f, page), "bo");
    assert_true(page->more);
    page = ask(f, 0, (struct turn){ .at = page->at, .player = "ada" });
    assert_string_equal(names_of(f, page), "bo ada");
    page = ask(f, 0, (struct turn){ .at = page->rows[0]->at, .player = "bo" });
    assert_string_equal(names_of(f, page), "ada");
}

/* Rows that are not shown are in the way: a question looks at a bounded number. */
static void a_question_looks_at_a_bounded_number_of_rows(void **state)
{
    struct fixture *f = *state;
    const page_response *page;

    set(f, 0, "last", "game", false);
    for (uint32_t i = 0; i < ONLINE_LOOKS_MAX + 10; i++)
        set(f, 0, arena_printf(&f->pair.arena, "p%u", i), "game", true);
    f->pair.now_ms = PAIR_BEGINS_MS + 30000;
    living_put(&f->pair.living, (struct incarnation){ 1, 10 }, true);
    page = ask(f, 0, (struct turn){ 0 });
    assert_int_equal(page->n_rows, 0);
    assert_true(page->more);
    page = ask(f, 0, (struct turn){ .at = page->at, .player = page->player_id });
    assert_string_equal(names_of(f, page), "last");
    assert_false(page->more);
}

static void a_member_that_starts_lists_what_it_has(void **state)
{
    struct fixture *f = *state;
    struct online again = { 0 };

    set(f, 0, "ada", "game", true);
    set(f, 0, "bo", "game", true);
    set(f, 0, "ada", "game", true);
    f->pair.replicas[0]->store.follower = (struct merge_follower){ 0 };
    online_deinit(&f->online[0]);
    online_begin(&again, &f->pair.replicas[0]->store);
    online_check(&again);
    assert_int_equal(again.count, 2);
    f->online[0] = again;
    f->pair.replicas[0]->store.follower.user = &f->online[0];
    assert_string_equal(listed(f, 0), "ada bo");
    clear(f, 0, "ada");
    assert_string_equal(listed(f, 0), "bo");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(those_who_were_set_last_come_first, setup, teardown),
        cmocka_unit_test_setup_teardown(a_connection_that_is_not_shown_counts_no_player, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(who_has_no_living_connection_is_not_listed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(who_is_erased_is_not_listed_and_who_is_purged_is_gone,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_set_at_another_member_is_listed_alike, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(no_player_who_stays_is_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(a_connection_that_goes_leaves_its_player_where_it_stood,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(players_of_one_moment_are_parted_by_their_names, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_question_looks_at_a_bounded_number_of_rows, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_member_that_starts_lists_what_it_has, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
