/* METHOD_ERASE_PLAYER, METHOD_RESTORE_PLAYER, METHOD_GET_ERASURE, and METHOD_ERASURE_DUE, which
 * carries them out. */
#include <stdio.h>
#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/definition/player_rate.h"
#include "node/core/erasure/erasure.h"
#include "node/core/favorite/partial.h"
#include "node/rpc/fixture_counter.h"
#include "node/rpc/fixture_erasure.h"
#include "node/rpc/fixture_shards.h"
#include "runtime/base/check.h"
#include "runtime/base/hash.h"
#include "runtime/base/hex.h"

/* ---- calls ---- */
static uint32_t listed_edges(struct fixture *f, const char *player)
{
    Holdfast__V1__ListFavoritesRequest request = HOLDFAST__V1__LIST_FAVORITES_REQUEST__INIT;

    request.player_id = text_lend(player);
    const Holdfast__V1__ListFavoritesResponse *response =
        fixture_read(f, METHOD_LIST_FAVORITES, &request.base);
    assert_non_null(response);
    assert_int_equal(response->edges, response->n_favorites);
    return response->edges;
}

static uint32_t listed_targets(struct fixture *f, const char *player)
{
    Holdfast__V1__ListPlayerCountersRequest request =
        HOLDFAST__V1__LIST_PLAYER_COUNTERS_REQUEST__INIT;

    request.player_id = text_lend(player);
    request.counter = text_lend("plays");
    const Holdfast__V1__ListPlayerCountersResponse *response =
        fixture_read(f, METHOD_LIST_PLAYER_COUNTERS, &request.base);
    assert_non_null(response);
    assert_int_equal(response->targets, response->n_counters);
    return response->targets;
}

/* With a space behind each. */
static const char *by_target(struct fixture *f, const char *target, uint32_t page_size)
{
    static char all[256];
    Holdfast__V1__ListByTargetRequest request = HOLDFAST__V1__LIST_BY_TARGET_REQUEST__INIT;
    char *cursor = text_lend("");

    all[0] = '\0';
    request.target_id = text_lend(target);
    request.page_size = page_size;
    do {
        request.cursor = cursor;
        const Holdfast__V1__ListByTargetResponse *response =
            fixture_read(f, METHOD_LIST_BY_TARGET, &request.base);
        assert_non_null(response);
        for (size_t i = 0; i < response->n_edges; i++) {
            size_t used = strlen(all);
            snprintf(all + used, sizeof all - used, "%s ", response->edges[i]->player_id);
        }
        static char place[512];
        snprintf(place, sizeof place, "%s", response->next_cursor);
        cursor = place;
    } while (cursor[0] != '\0');
    return all;
}

/* ---- erased ---- */
static void an_erased_player_is_told_to_no_reader(void **state)
{
    struct fixture *f = *state;

    fixture_some_rows(f, "ann");
    fixture_some_rows(f, "bob");
    const Holdfast__V1__Erasure *told = fixture_erase_player(f, "ann", GRACE_MS);
    assert_non_null(told);
    assert_true(told->number > 0);
    assert_int_equal(told->state, STATE(WITHDRAWING));
    assert_int_equal(told->erased_at_ms, f->now_ms);
    assert_int_equal(told->purge_at_ms, f->now_ms + GRACE_MS);
    /* At once, before any of it is taken out of counts. */
    assert_int_equal(listed_edges(f, "ann"), 0);
    assert_int_equal(listed_targets(f, "ann"), 0);
    assert_int_equal(fixture_status(f, "ann", "pong")->ver, 0);
    assert_int_equal(fixture_status(f, "ann", "tetris")->ver, 0);
    assert_int_equal(fixture_value(f, "ann", "pong"), 0);
    assert_string_equal(by_target(f, "pong", 0), "bob ");
    assert_string_equal(by_target(f, "pong", 1), "bob ");
    assert_int_equal(listed_edges(f, "bob"), 3);
}

static void counts_follow_a_few_rows_an_entry(void **state)
{
    struct fixture *f = *state;

    fixture_some_rows(f, "ann");
    fixture_some_rows(f, "bob");
    assert_non_null(fixture_erase_player(f, "ann", GRACE_MS));
    uint32_t entries = 0;
    while (fixture_erasure(f, "ann")->state == STATE(WITHDRAWING)) {
        uint64_t before = fixture_erasure(f, "ann")->rows_done;
        entries += fixture_pass(f, ERASURE_PACE_MS - 1);
        fixture_check_erased_counts(f);
        assert_true(fixture_erasure(f, "ann")->rows_done <= before + 2);
        assert_true(entries < 20);
    }
    assert_true(entries >= 3);
    assert_int_equal(fixture_erasure(f, "ann")->state, STATE(WITHDRAWN));
    assert_int_equal(fixture_erasure(f, "ann")->rows_done, 7); /* An edge that is gone is one. */
    assert_int_equal(fixture_partial(f, "", "pong"), 1);
    assert_int_equal(fixture_partial(f, "", "tetris"), 0);
    assert_int_equal(fixture_part(f, "plays", "pong"), 7);
    assert_int_equal(fixture_part(f, "plays", "go"), 3);
}

static void a_purge_leaves_no_row_of_the_player(void **state)
{
    struct fixture *f = *state;

    f->reads_once = true;
    fixture_some_rows(f, "ann");
    fixture_some_rows(f, "bob");
    uint32_t of_bob = fixture_edges_of(f, "player:bob");
    const Holdfast__V1__Erasure *told = fixture_erase_player(f, "ann", GRACE_MS);
    uint64_t number = told->number;
    (void)fixture_pass(f, GRACE_MS);
    for (uint32_t i = 0; i < 30; i++) {
        (void)fixture_pass(f, ERASURE_PACE_MS);
        fixture_check_erased_counts(f);
    }
    told = fixture_erasure(f, "ann");
    assert_int_equal(told->state, STATE(PURGED));
    assert_int_equal(told->number, number);
    assert_true(told->ended_at_ms > 0);
    assert_int_equal(fixture_edges_of(f, "player:ann"), 0);
    assert_int_equal(fixture_edges_of(f, "player:bob"), of_bob);
    assert_int_equal(fixture_pass(f, HOUR), 0);
}

/* They are told still, and take room. */
static void a_purge_leaves_the_count_of_outcomes(void **state)
{
    struct fixture *f = *state;

    fixture_policy(f, 0, 1000);
    while (fixture_favorite(f, "ann", "pong") != NULL)
        assert_true(f->ids < 200);
    assert_int_equal(f->error->code, ERROR(THROTTLED));
    assert_non_null(fixture_erase_player(f, "ann", 0));
    for (uint32_t i = 0; i < 20; i++)
        (void)fixture_pass(f, ERASURE_PACE_MS);
    assert_int_equal(fixture_erasure(f, "ann")->state, STATE(PURGED));
    assert_int_equal(fixture_edges_of(f, "player:ann"), 0);
    assert_null(fixture_favorite(f, "ann", "pong"));
    assert_int_equal(f->error->code, ERROR(THROTTLED));
    (void)fixture_pass(f, HOUR);
    assert_non_null(fixture_favorite(f, "ann", "pong"));
}

static void a_purged_player_begins_a_new_life(void **state)
{
    struct fixture *f = *state;

    fixture_some_rows(f, "ann");
    uint64_t number = fixture_erase_player(f, "ann", 0)->number;
    for (uint32_t i = 0; i < 30; i++)
        (void)fixture_pass(f, ERASURE_PACE_MS);
    assert_int_equal(fixture_erasure(f, "ann")->state, STATE(PURGED));
    const Holdfast__V1__FavoriteResponse *response = fixture_favorite(f, "ann", "tetris");
    assert_non_null(response);
    assert_int_equal(response->status->ver, 1); /* What was gone is forgotten. */
    assert_int_equal(response->edges, 1);
    assert_int_equal(fixture_add(f, "ann", "pong", 1), 1);
    for (uint32_t i = 0; i < 30; i++)
        (void)fixture_pass(f, ERASURE_PACE_MS);
    assert_int_equal(listed_edges(f, "ann"), 1);
    assert_int_equal(fixture_part(f, "plays", "pong"), 1);
    assert_true(fixture_erase_player(f, "ann", 0)->number > number);
}

/* ---- refused ---- */
static void writes_of_an_erased_player_are_refused_for_the_moment(void **state)
{
    struct fixture *f = *state;
    const char *id = fixture_op_id(f);
    const struct fixture_edge edge = { .player = "ann", .target = "new", .op_id = id };

    fixture_some_rows(f, "ann");
    assert_non_null(fixture_erase_player(f, "ann", GRACE_MS));
    assert_null(fixture_edge(f, &edge));
    assert_int_equal(f->error->code, ERROR(QUARANTINED));
    assert_string_equal(f->error->field, "player_id");
    assert_int_equal(fixture_add(f, "ann", "pong", 1), -1);
    assert_int_equal(f->error->code, ERROR(QUARANTINED));
    (void)fixture_pass(f, GRACE_MS / 2);
    assert_null(fixture_unfavorite(f, "ann", "pong"));
    assert_int_equal(f->error->retry_after_ms, GRACE_MS / 2);
    for (uint32_t i = 0; i < 40; i++)
        (void)fixture_pass(f, GRACE_MS / 40);
    assert_non_null(fixture_edge(f, &edge)); /* Nothing was recorded of the first try. */
    assert_false(f->outcome.duplicate);
}

static void a_grace_period_and_a_scope_have_limits(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__ErasePlayerRequest request = HOLDFAST__V1__ERASE_PLAYER_REQUEST__INIT;

    assert_null(fixture_erase_player(f, "ann", -1));
    assert_string_equal(f->error->field, "grace_ms");
    assert_string_equal(f->error->limit, "0 to 2592000000");
    assert_string_equal(f->error->value, "-1");
    assert_null(fixture_erase_player(f, "ann", ERASURE_GRACE_MS_MAX + 1));
    assert_int_equal(f->error->code, ERROR(INVALID_ARGUMENT));
    request.player_id = text_lend("ann");
    request.op_id = fixture_op_id(f);
    request.authority = text_lend("system:match");
    assert_null(fixture_mutate(f, METHOD_ERASE_PLAYER, &request.base));
    assert_int_equal(f->error->code, ERROR(PERMISSION_DENIED));
    assert_int_equal(fixture_erasure(f, "ann")->number, 0);
    request.op_id = fixture_op_id(f);
    request.authority = text_lend("system:admin");
    const Holdfast__V1__ErasePlayerResponse *response =
        fixture_mutate(f, METHOD_ERASE_PLAYER, &request.base);
    assert_int_equal(response->erasure->purge_at_ms, f->now_ms + ERASURE_GRACE_MS_DEFAULT);
}

/* ---- undone ---- */
static void an_undone_erasure_brings_all_back_as_it_was(void **state)
{
    struct fixture *f = *state;

    f->reads_once = true;
    fixture_some_rows(f, "ann");
    fixture_some_rows(f, "bob");
    uint64_t before = fixture_edges_digest(f);
    assert_non_null(fixture_erase_player(f, "ann", GRACE_MS));
    for (uint32_t i = 0; i < 20; i++)
        (void)fixture_pass(f, ERASURE_PACE_MS);
    assert_int_equal(fixture_erasure(f, "ann")->state, STATE(WITHDRAWN));
    assert_true(fixture_edges_digest(f) != before);
    assert_int_equal(fixture_undo_erasure(f, "ann")->state, STATE(RESTORING));
    assert_int_equal(listed_edges(f, "ann"), 3);
    assert_null(fixture_favorite(f, "ann", "new")); /* Until counts have followed. */
    for (uint32_t i = 0; i < 20; i++) {
        (void)fixture_pass(f, ERASURE_PACE_MS);
        fixture_check_erased_counts(f);
    }
    assert_int_equal(fixture_erasure(f, "ann")->state, STATE(RESTORED));
    assert_int_equal(fixture_edges_digest(f), before);
    assert_int_equal(fixture_pass(f, GRACE_MS), 0); /* No purge follows. */
    assert_int_equal(fixture_edges_digest(f), before);
    assert_non_null(fixture_favorite(f, "ann", "new"));
}

/* Half of it is out of counts, and half is not. */
static void an_erasure_is_undone_before_it_is_withdrawn(void **state)
{
    struct fixture *f = *state;

    fixture_some_rows(f, "ann");
    uint64_t before = fixture_edges_digest(f);
    assert_non_null(fixture_erase_player(f, "ann", GRACE_MS));
    assert_int_equal(fixture_pass(f, 0), 1);
    assert_int_equal(fixture_erasure(f, "ann")->rows_done, 2);
    assert_non_null(fixture_undo_erasure(f, "ann"));
    assert_null(fixture_erase_player(f, "ann", GRACE_MS));
    assert_int_equal(f->error->code, ERROR(QUARANTINED));
    for (uint32_t i = 0; i < 20; i++)
        (void)fixture_pass(f, ERASURE_PACE_MS);
    assert_int_equal(fixture_erasure(f, "ann")->state, STATE(RESTORED));
    assert_int_equal(fixture_edges_digest(f), before);
}

/* Hours pass meanwhile: what is older than seven days by then comes back to no hour. */
static void hours_come_back_to_where_they_were(void **state)
{
    struct fixture *f = *state;
    struct partial_row partial;
    struct row_key key;
    struct slice value;

    assert_int_equal(fixture_add(f, "ann", "pong", 5), 5);
    f->now_ms += 24 * HOUR;
    assert_int_equal(fixture_add(f, "ann", "pong", 2), 7);
    uint32_t second = hour_of(f->now_ms);
    assert_non_null(fixture_erase_player(f, "ann", 7 * 24 * (int64_t)HOUR));
    (void)fixture_pass(f, 6 * 24 * HOUR + HOUR);
    assert_non_null(fixture_undo_erasure(f, "ann"));
    (void)fixture_pass(f, HOUR);
    row_key_partial(&key, 9, slice_from_text("pong"));
    assert_int_equal(state_find(applier_state(f->applier), row_key_slice(&key), &value),
                     STATE_PRESENT);
    assert_int_equal(partial_row_decode(value, &partial), ERR_OK);
    assert_int_equal(partial.count, 7);
    assert_int_equal(partial.hours.count, 1);
    assert_int_equal(partial.hours.list[0].hour, second);
    assert_int_equal(partial.hours.list[0].count, 2);
}

static void what_is_not_erased_or_being_purged_is_not_undone(void **state)
{
    struct fixture *f = *state;

    assert_null(fixture_undo_erasure(f, "ann"));
    assert_int_equal(f->error->code, ERROR(NOT_FOUND));
    fixture_some_rows(f, "ann");
    assert_non_null(fixture_erase_player(f, "ann", 0));
    for (uint32_t i = 0; fixture_erasure(f, "ann")->state != STATE(PURGING); i++) {
        assert_true(i < 100);
        (void)fixture_pass(f, 1);
    }
    assert_null(fixture_undo_erasure(f, "ann"));
    assert_int_equal(f->error->code, ERROR(NOT_FOUND));
    assert_int_equal(f->outcome.kind, OUTCOME_REFUSED);
    assert_int_equal(fixture_erase_player(f, "ann", GRACE_MS)->state,
                     STATE(PURGING)); /* Nothing changes. */
    for (uint32_t i = 0; i < 30; i++)
        (void)fixture_pass(f, ERASURE_PACE_MS);
    assert_int_equal(fixture_erasure(f, "ann")->state, STATE(PURGED));
}

static void another_call_moves_the_purge(void **state)
{
    struct fixture *f = *state;

    fixture_some_rows(f, "ann");
    uint64_t number = fixture_erase_player(f, "ann", GRACE_MS)->number;
    for (uint32_t i = 0; i < 20; i++)
        (void)fixture_pass(f, ERASURE_PACE_MS);
    const Holdfast__V1__Erasure *told = fixture_erase_player(f, "ann", 2 * GRACE_MS);
    assert_int_equal(told->number, number);
    assert_int_equal(told->state, STATE(WITHDRAWN));
    assert_int_equal(told->purge_at_ms, f->now_ms + 2 * GRACE_MS);
    (void)fixture_pass(f, GRACE_MS);
    assert_int_equal(fixture_erasure(f, "ann")->state, STATE(WITHDRAWN));
    assert_non_null(fixture_erase_player(f, "ann", 0));
    for (uint32_t i = 0; i < 30; i++)
        (void)fixture_pass(f, ERASURE_PACE_MS);
    assert_int_equal(fixture_erasure(f, "ann")->state, STATE(PURGED));
}

/* ---- flagged edges ---- */
static void a_flagged_edge_of_an_erased_player_never_counts(void **state)
{
    struct fixture *f = *state;

    fixture_some_flagged(f);
    uint64_t before = fixture_edges_digest(f), since_ms = applier_meta(f->applier)->review_since_ms;
    assert_int_equal(fixture_partial(f, "", "pong"), 1);
    assert_non_null(fixture_erase_player(f, "ann", GRACE_MS));
    assert_string_equal(fixture_flagged_targets(f), "bob:chess ");
    for (uint32_t i = 0; i < 20; i++) {
        (void)fixture_pass(f, ERASURE_PACE_MS);
        fixture_check_erased_counts(f);
    }
    assert_int_equal(fixture_erasure(f, "ann")->state, STATE(WITHDRAWN));
    assert_int_equal(fixture_partial(f, "", "pong"), 1);
    assert_int_equal(fixture_partial(f, "", "chess"), 0);
    assert_string_equal(by_target(f, "pong", 0), "bob ");
    assert_string_equal(fixture_flagged_targets(f), "bob:chess ");
    assert_non_null(fixture_undo_erasure(f, "ann"));
    assert_string_equal(fixture_flagged_targets(f), "ann:pong bob:chess ann:go ");
    for (uint32_t i = 0; i < 20; i++) {
        (void)fixture_pass(f, ERASURE_PACE_MS);
        fixture_check_erased_counts(f);
    }
    assert_int_equal(fixture_erasure(f, "ann")->state, STATE(RESTORED));
    assert_int_equal(fixture_edges_digest(f), before);
    assert_int_equal(fixture_flagged(f, 0, "")->waiting, 3);
    assert_int_equal(applier_meta(f->applier)->review_since_ms, since_ms);
    assert_int_equal(fixture_partial(f, "", "pong"), 1);
    assert_int_equal(fixture_decide(f, METHOD_ACCEPT_EDGES, "ann", "pong")->edges, 1);
    assert_int_equal(fixture_partial(f, "", "pong"), 2);
}

static void no_moderator_decides_about_an_erased_player(void **state)
{
    static const uint32_t decisions[] = { METHOD_ACCEPT_EDGES, METHOD_REJECT_EDGES,
                                          METHOD_FLAG_EDGES };
    struct fixture *f = *state;

    fixture_some_flagged(f);
    assert_non_null(fixture_erase_player(f, "ann", GRACE_MS));
    uint64_t before = fixture_edges_digest(f);
    for (uint32_t i = 0; i < ARRAY_SIZE(decisions); i++) {
        assert_null(fixture_decide(f, decisions[i], "ann", i < 2 ? "pong" : "chess"));
        assert_int_equal(f->error->code, ERROR(QUARANTINED));
        assert_string_equal(f->error->field, "player_id");
    }
    const struct fixture_review all = { .method = METHOD_FLAG_EDGES, .player = "ann", .all = true };
    assert_null(fixture_review(f, &all));
    assert_int_equal(f->error->code, ERROR(QUARANTINED));
    assert_int_equal(fixture_edges_digest(f), before);
    assert_non_null(fixture_decide(f, METHOD_ACCEPT_EDGES, "bob", "chess"));
}

static void a_purge_takes_what_waits_from_the_list(void **state)
{
    struct fixture *f = *state;

    fixture_some_flagged(f);
    uint64_t of_bob = (uint64_t)fixture_flagged(f, 0, "")->edges[1]->flagged_at_ms;
    assert_non_null(fixture_erase_player(f, "ann", 0));
    for (uint32_t i = 0; i < 40; i++) {
        (void)fixture_pass(f, ERASURE_PACE_MS);
        fixture_check_erased_counts(f);
    }
    assert_int_equal(fixture_erasure(f, "ann")->state, STATE(PURGED));
    assert_int_equal(fixture_edges_of(f, "player:ann"), 0);
    assert_int_equal(fixture_flagged(f, 0, "")->waiting, 1);
    assert_int_equal(applier_meta(f->applier)->review_since_ms, of_bob);
    assert_string_equal(fixture_flagged_targets(f), "bob:chess ");
    fixture_restart(f);
    assert_int_equal(fixture_flagged(f, 0, "")->waiting, 1);
    assert_non_null(fixture_erase_player(f, "bob", 0));
    for (uint32_t i = 0; i < 40; i++)
        (void)fixture_pass(f, ERASURE_PACE_MS);
    assert_int_equal(fixture_flagged(f, 0, "")->waiting, 0);
    assert_int_equal(applier_meta(f->applier)->review_since_ms, 0);
}

/* Homes take all that an entry changes together. */
static void an_entry_changes_a_bounded_number_of_counts(void **state)
{
    struct fixture *f = *state;
    char target[16];

    applier_set_erasure_rows(f->applier, ERASURE_STEP_ROWS_MAX);
    for (uint32_t i = 0; i < 2 * ENTRY_COUNTS_MAX + 1; i++) {
        snprintf(target, sizeof target, "t%02u", i);
        assert_non_null(fixture_favorite(f, "ann", target));
    }
    assert_non_null(fixture_erase_player(f, "ann", GRACE_MS));
    for (uint32_t i = 1; i <= 3; i++) {
        uint64_t most = i < 3 ? (uint64_t)i * ENTRY_COUNTS_MAX : 2 * ENTRY_COUNTS_MAX + 1;
        assert_int_equal(fixture_pass(f, i > 1 ? ERASURE_PACE_MS : 0), 1);
        assert_int_equal(fixture_erasure(f, "ann")->rows_done, most);
        fixture_check_erased_counts(f);
    }
}

/* ---- owners and disks ---- */
static void the_next_owner_goes_on_where_the_one_before_was(void **state)
{
    struct fixture *f = *state;

    fixture_some_rows(f, "ann");
    fixture_some_rows(f, "bob");
    assert_non_null(fixture_erase_player(f, "ann", 0));
    uint64_t last = 0;
    Holdfast__V1__ErasureState was = STATE(WITHDRAWING);
    for (uint32_t i = 0; fixture_erasure(f, "ann")->state != STATE(PURGED); i++) {
        assert_true(i < 60);
        fixture_restart(f);
        applier_set_erasure_rows(f->applier, 1);
        fixture_next_epoch(f);
        const Holdfast__V1__Erasure *told = fixture_erasure(f, "ann");
        assert_true(told->state != was || told->rows_done >= last);
        last = told->rows_done;
        was = told->state;
        (void)fixture_pass(f, ERASURE_PACE_MS);
        fixture_check_erased_counts(f);
    }
    assert_int_equal(fixture_edges_of(f, "player:ann"), 0);
    assert_int_equal(fixture_partial(f, "", "pong"), 1);
    assert_int_equal(fixture_part(f, "plays", "pong"), 7);
}

/* Of a player that only ever had nothing. */
static void nothing_is_erased_at_once(void **state)
{
    struct fixture *f = *state;

    assert_non_null(fixture_erase_player(f, "eve", 0));
    for (uint32_t i = 0; i < 10; i++)
        (void)fixture_pass(f, ERASURE_PACE_MS);
    assert_int_equal(fixture_erasure(f, "eve")->state, STATE(PURGED));
    assert_int_equal(fixture_erasure(f, "eve")->rows_done, 0);
}

static void a_step_that_is_not_due_does_nothing(void **state)
{
    struct fixture *f = *state;
    Holdfast__Internal__V1__ErasureDueRequest due =
        HOLDFAST__INTERNAL__V1__ERASURE_DUE_REQUEST__INIT;
    struct buf body = { 0 };

    fixture_some_rows(f, "ann");
    uint64_t number = fixture_erase_player(f, "ann", GRACE_MS)->number;
    for (uint32_t i = 0; i < 20; i++)
        (void)fixture_pass(f, ERASURE_PACE_MS);
    uint64_t before = fixture_edges_digest(f);
    due.player_id = text_lend("ann");
    due.rows_max = 1000;
    for (due.number = number - 1; due.number <= number + 1; due.number++) {
        buf_clear(&body);
        owner_op_encode(METHOD_ERASURE_DUE, SLICE_LITERAL("player:ann"), &due.base, &body);
        fixture_commit(f, buf_slice(&body));
    }
    buf_deinit(&body);
    assert_int_equal(fixture_erasure(f, "ann")->state, STATE(WITHDRAWN));
    assert_int_equal(fixture_edges_digest(f), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ERASURE_TEST(an_erased_player_is_told_to_no_reader),
        ERASURE_TEST(counts_follow_a_few_rows_an_entry),
        ERASURE_TEST(a_purge_leaves_no_row_of_the_player),
        ERASURE_TEST(a_purge_leaves_the_count_of_outcomes),
        ERASURE_TEST(a_purged_player_begins_a_new_life),
        ERASURE_TEST(writes_of_an_erased_player_are_refused_for_the_moment),
        ERASURE_TEST(a_grace_period_and_a_scope_have_limits),
        ERASURE_TEST(an_undone_erasure_brings_all_back_as_it_was),
        ERASURE_TEST(an_erasure_is_undone_before_it_is_withdrawn),
        ERASURE_TEST(hours_come_back_to_where_they_were),
        ERASURE_TEST(what_is_not_erased_or_being_purged_is_not_undone),
        ERASURE_TEST(another_call_moves_the_purge),
        ERASURE_TEST(a_flagged_edge_of_an_erased_player_never_counts),
        ERASURE_TEST(no_moderator_decides_about_an_erased_player),
        ERASURE_TEST(a_purge_takes_what_waits_from_the_list),
        ERASURE_TEST(an_entry_changes_a_bounded_number_of_counts),
        ERASURE_TEST(the_next_owner_goes_on_where_the_one_before_was),
        ERASURE_TEST(nothing_is_erased_at_once),
        ERASURE_TEST(a_step_that_is_not_due_does_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
