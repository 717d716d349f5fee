/* Erasures of players who are held back for review, and of rows that cannot be read. */
#include <string.h>

#include "idl/method.h"
#include "node/core/codec/arena_proto.h"
#include "node/rpc/fixture_counter.h"
#include "node/rpc/fixture_erasure.h"
#include "node/rpc/fixture_shards.h"
#include "runtime/base/hex.h"

static void put_row(struct fixture *f, const struct row_key *key, struct slice value)
{
    state_begin(applier_state(f->applier));
    state_put(applier_state(f->applier), row_key_slice(key), value);
    state_commit(applier_state(f->applier));
}

static const Holdfast__V1__RepairPlayerResponse *repair_row(struct fixture *f,
                                                            const struct row_key *key)
{
    Holdfast__V1__RepairPlayerRequest *request = fixture_repair_request(f, "ann");
    char *row = arena_alloc(&f->arena, 2 * key->size + 1);

    hex_print(key->bytes, key->size, row);
    request->rows = &row;
    request->n_rows = 1;
    return fixture_mutate(f, METHOD_REPAIR_PLAYER, &request->base);
}

/* Of a withdrawn player nothing stands with the targets: no repair may conclude that there was
 * nothing. */
static void no_repair_takes_what_an_undo_needs(void **state)
{
    struct fixture *f = *state;
    struct row_key edge, addition;

    fixture_some_rows(f, "ann");
    row_key_favorite(&edge, SLICE_LITERAL("player:ann"), 7, slice_from_text("pong"));
    row_key_added_prefix(&addition, SLICE_LITERAL("player:ann"), 9);
    row_key_added_add(&addition, slice_from_text("pong"));
    assert_non_null(fixture_erase_player(f, "ann", GRACE_MS));
    fixture_pass_steps(f);
    assert_int_equal(fixture_erasure(f, "ann")->state, STATE(WITHDRAWN));
    put_row(f, &edge, SLICE_LITERAL("\xff"));
    put_row(f, &addition, SLICE_LITERAL("\xff"));
    fixture_contain(f, "ann");
    assert_null(repair_row(f, &edge));
    assert_int_equal(f->error->code, ERROR(INVALID_ARGUMENT));
    assert_non_null(strstr(f->error->message, "RestorePlayer comes first"));
    assert_null(repair_row(f, &addition));
    assert_non_null(strstr(f->error->message, "RestorePlayer comes first"));
    fixture_release(f, "ann");
    assert_non_null(fixture_undo_erasure(f, "ann"));
    fixture_contain(f, "ann");
    assert_null(repair_row(f, &edge));
    assert_non_null(strstr(f->error->message, "being put back"));
    fixture_pass_steps(f);
    assert_int_equal(fixture_erasure(f, "ann")->state, STATE(RESTORED));
    const Holdfast__V1__RepairPlayerResponse *told = repair_row(f, &edge);
    assert_non_null(told);
    assert_int_equal(told->rows[0]->outcome,
                     HOLDFAST__V1__REPAIR_OUTCOME__REPAIR_OUTCOME_MADE_AGAIN);
    assert_non_null(repair_row(f, &addition)); /* What it was is not known. */
    assert_int_equal(fixture_partial(f, "", "pong"), 1);
}

/* Ann's first edge is flagged, and its own row cannot be read when it is taken out of counts. */
static uint64_t erase_unreadable(struct fixture *f, int64_t grace_ms)
{
    struct row_key edge;

    fixture_some_flagged(f);
    uint64_t before = fixture_edges_digest(f);
    row_key_favorite(&edge, SLICE_LITERAL("player:ann"), 7, slice_from_text("pong"));
    put_row(f, &edge, SLICE_LITERAL("\xff"));
    assert_non_null(fixture_erase_player(f, "ann", grace_ms));
    for (uint32_t i = 0; i < 40; i++) {
        (void)fixture_pass(f, ERASURE_PACE_MS);
        fixture_check_erased_counts(f);
    }
    return before;
}

static void a_flagged_edge_that_is_unreadable_comes_back_flagged(void **state)
{
    struct fixture *f = *state;

    uint64_t before = erase_unreadable(f, GRACE_MS);
    assert_int_equal(fixture_erasure(f, "ann")->state, STATE(WITHDRAWN));
    assert_non_null(fixture_undo_erasure(f, "ann"));
    fixture_pass_steps(f);
    assert_int_equal(fixture_edges_digest(f), before);
    assert_int_equal(fixture_partial(f, "", "pong"), 1);
    assert_string_equal(fixture_flagged_targets(f), "ann:pong bob:chess ann:go ");
}

static void a_flagged_edge_that_is_unreadable_is_purged(void **state)
{
    struct fixture *f = *state;

    (void)erase_unreadable(f, 0);
    assert_int_equal(fixture_erasure(f, "ann")->state, STATE(PURGED));
    assert_int_equal(fixture_edges_of(f, "player:ann"), 0);
    assert_int_equal(fixture_flagged(f, 0, "")->waiting, 1);
    assert_string_equal(fixture_flagged_targets(f), "bob:chess ");
}

/* Of a player that is held back for review nothing is taken for good. */
static void the_erasure_of_a_quarantined_player_waits(void **state)
{
    struct fixture *f = *state;

    fixture_some_rows(f, "ann");
    uint64_t before = fixture_edges_digest(f);
    assert_non_null(fixture_erase_player(f, "ann", GRACE_MS));
    fixture_contain(f, "ann");
    fixture_pass_steps(f);
    assert_int_equal(fixture_erasure(f, "ann")->rows_done, 0);
    fixture_release(f, "ann");
    fixture_pass_steps(f);
    assert_int_equal(fixture_erasure(f, "ann")->state, STATE(WITHDRAWN));
    fixture_contain(f, "ann");
    (void)fixture_pass(f, 2 * GRACE_MS);
    fixture_restart(f);
    fixture_pass_steps(f);
    assert_int_equal(fixture_erasure(f, "ann")->state, STATE(WITHDRAWN));
    assert_null(fixture_undo_erasure(f, "ann"));
    assert_int_equal(f->error->code, ERROR(QUARANTINED));
    fixture_release(f, "ann");
    assert_non_null(fixture_undo_erasure(f, "ann"));
    fixture_pass_steps(f);
    assert_int_equal(fixture_edges_digest(f), before);
}

static void a_purge_goes_on_once_the_player_is_released(void **state)
{
    struct fixture *f = *state;

    fixture_some_rows(f, "ann");
    assert_non_null(fixture_erase_player(f, "ann", 0));
    while (fixture_erasure(f, "ann")->state != STATE(PURGING))
        (void)fixture_pass(f, ERASURE_PACE_MS);
    fixture_contain(f, "ann");
    fixture_pass_steps(f);
    assert_int_equal(fixture_erasure(f, "ann")->state, STATE(PURGING));
    fixture_release(f, "ann");
    fixture_pass_steps(f);
    assert_int_equal(fixture_erasure(f, "ann")->state, STATE(PURGED));
    assert_int_equal(fixture_edges_of(f, "player:ann"), 0);
}

/* What is purged is not wanted any more. */
static void a_row_of_a_purge_is_dropped(void **state)
{
    struct fixture *f = *state;
    struct row_key edge;

    fixture_some_rows(f, "ann");
    row_key_favorite(&edge, SLICE_LITERAL("player:ann"), 7, slice_from_text("pong"));
    assert_non_null(fixture_erase_player(f, "ann", 0));
    while (fixture_erasure(f, "ann")->state != STATE(PURGING))
        (void)fixture_pass(f, ERASURE_PACE_MS);
    put_row(f, &edge, SLICE_LITERAL("\xff"));
    fixture_contain(f, "ann");
    assert_non_null(repair_row(f, &edge));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ERASURE_TEST(no_repair_takes_what_an_undo_needs),
        ERASURE_TEST(a_flagged_edge_that_is_unreadable_comes_back_flagged),
        ERASURE_TEST(a_flagged_edge_that_is_unreadable_is_purged),
        ERASURE_TEST(the_erasure_of_a_quarantined_player_waits),
        ERASURE_TEST(a_purge_goes_on_once_the_player_is_released),
        ERASURE_TEST(a_row_of_a_purge_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
