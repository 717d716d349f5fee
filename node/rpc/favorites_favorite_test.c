/* Favorite and Unfavorite, and what BatchGetStatus and GetPartials tell of them. */
#include <stdio.h>
#include <string.h>

#include "node/core/codec/arena_proto.h"
#include "node/core/definition/definition.h"
#include "node/core/repair/row_repair.h"
#include "node/rpc/fixture_edges.h"
#include "runtime/base/hex.h"

static int setup(void **state)
{
    int failed = fixture_setup(state);

    if (failed == 0)
        fixture_define_favorites(*state);
    return failed;
}

static int teardown(void **state)
{
    fixture_check_edges(*state);
    return fixture_teardown(state);
}

#define EDGE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* With a `ver`. */
static const Holdfast__V1__FavoriteResponse *at(struct fixture *f, uint64_t ver, bool gone)
{
    return fixture_edge(
        f, &(struct fixture_edge){ .player = "ann", .target = "pong", .ver = ver, .gone = gone });
}

static void an_edge_and_its_count_change_together(void **state)
{
    struct fixture *f = *state;
    const Holdfast__V1__FavoriteResponse *response = fixture_favorite(f, "ann", "pong");

    assert_non_null(response);
    assert_true(response->applied && response->status->favorited);
    assert_string_equal(response->status->target_id, "pong");
    assert_int_equal(response->status->ver, 1);
    assert_int_equal(response->status->created_at_ms, f->now_ms);
    assert_int_equal(response->edges, 1);
    assert_int_equal(fixture_partial(f, "", "pong"), 1);
    assert_non_null(fixture_favorite(f, "bob", "pong"));
    assert_int_equal(fixture_partial(f, "favorites", "pong"), 2);
    assert_int_equal(fixture_partial(f, "", "chess"), 0);
    response = fixture_unfavorite(f, "ann", "pong");
    assert_int_equal(f->outcome.method, METHOD_UNFAVORITE);
    assert_true(response->applied && !response->status->favorited);
    assert_int_equal(response->status->ver, 2);
    assert_int_equal(response->status->created_at_ms, 0);
    assert_int_equal(response->edges, 0);
    assert_int_equal(fixture_partial(f, "", "pong"), 1);
    fixture_restart(f);
    assert_int_equal(fixture_partial(f, "", "pong"), 1);
    assert_false(fixture_status(f, "ann", "pong")->favorited);
    assert_true(fixture_status(f, "bob", "pong")->favorited);
}

static void a_favorite_that_stands_is_not_counted_again(void **state)
{
    struct fixture *f = *state;
    uint64_t since = f->now_ms;

    assert_non_null(fixture_favorite(f, "ann", "pong"));
    f->now_ms += 5000;
    const Holdfast__V1__FavoriteResponse *response = fixture_favorite(f, "ann", "pong");
    assert_true(response->applied);
    assert_int_equal(response->status->ver, 2);
    assert_int_equal(response->status->created_at_ms, since);
    assert_int_equal(response->edges, 1);
    assert_int_equal(fixture_partial(f, "", "pong"), 1);
}

static void a_repetition_finds_the_outcome(void **state)
{
    struct fixture *f = *state;
    const char *id = fixture_op_id(f);
    const struct fixture_edge edge = { .player = "ann", .target = "pong", .op_id = id };
    const struct fixture_edge other = { .player = "ann", .target = "chess", .op_id = id };

    assert_non_null(fixture_edge(f, &edge));
    assert_non_null(fixture_unfavorite(f, "ann", "pong"));
    assert_true(fixture_edge(f, &edge)->status->favorited);
    assert_true(f->outcome.duplicate);
    assert_int_equal(fixture_partial(f, "", "pong"), 0);
    assert_null(fixture_edge(f, &other));
    assert_int_equal(f->error->code, ERROR(OPERATION_ID_MISMATCH));
}

/* Whatever the order in which calls come: the highest `ver` decides. */
static void a_call_with_a_lower_ver_changes_nothing(void **state)
{
    struct fixture *f = *state;

    assert_true(at(f, 100, false)->applied);
    const Holdfast__V1__FavoriteResponse *response = at(f, 99, true);
    assert_false(response->applied);
    assert_true(response->status->favorited);
    assert_int_equal(response->status->ver, 100);
    assert_int_equal(response->edges, 1);
    assert_false(at(f, 100, true)->applied);
    assert_int_equal(fixture_partial(f, "", "pong"), 1);
    assert_true(at(f, 101, true)->applied);
    assert_false(at(f, 100, false)->applied);
    assert_false(at(f, 101, false)->applied);
    assert_int_equal(fixture_partial(f, "", "pong"), 0);
    assert_true(at(f, 102, false)->applied);
    assert_int_equal(at(f, 0, true)->status->ver, 103);
}

/* It was called later, and came first. */
static void an_unfavorite_of_no_edge_keeps_a_late_favorite_away(void **state)
{
    struct fixture *f = *state;
    const Holdfast__V1__FavoriteResponse *response = at(f, 50, true);

    assert_true(response->applied && !response->status->favorited);
    assert_int_equal(response->status->ver, 50);
    assert_int_equal(response->edges, 0);
    assert_int_equal(fixture_partial(f, "", "pong"), 0);
    assert_false(at(f, 40, false)->applied);
    assert_int_equal(fixture_partial(f, "", "pong"), 0);
    assert_int_equal(fixture_status(f, "ann", "pong")->ver, 50);
    f->now_ms += 10;
    assert_true(at(f, 60, true)->applied);
    assert_false(at(f, 55, false)->applied);
    assert_true(at(f, 61, false)->applied);
    assert_int_equal(fixture_partial(f, "", "pong"), 1);
}

static void the_last_write_wins_where_the_collection_says_so(void **state)
{
    struct fixture *f = *state;
    struct fixture_edge edge = { "ann", "pong", "follows", 100, 0, false, NULL };

    fixture_define(f, &(struct fixture_collection){ 8, 20, "follows", POLICY_LAST, 0, false });
    assert_true(fixture_edge(f, &edge)->applied);
    edge.ver = 7;
    edge.gone = true;
    const Holdfast__V1__FavoriteResponse *response = fixture_edge(f, &edge);
    assert_true(response->applied && !response->status->favorited);
    assert_int_equal(response->status->ver, 101);
    assert_int_equal(fixture_partial(f, "follows", "pong"), 0);
}

static void an_if_ver_compares(void **state)
{
    struct fixture *f = *state;
    struct fixture_edge edge = { .player = "ann", .target = "pong", .if_ver = 1 };

    assert_non_null(fixture_edge(f, &edge)); /* None, so far. */
    assert_null(fixture_edge(f, &edge));
    assert_int_equal(f->error->code, ERROR(VERSION_CONFLICT));
    assert_string_equal(f->error->field, "if_ver");
    assert_string_equal(f->error->limit, "0");
    assert_string_equal(f->error->value, "1");
    edge.if_ver = 2;
    edge.gone = true;
    assert_non_null(fixture_edge(f, &edge));
    assert_int_equal(fixture_partial(f, "", "pong"), 0);
}

static void the_highest_ver_is_the_last_one(void **state)
{
    struct fixture *f = *state;

    assert_true(at(f, FAVORITE_VER_MAX, false)->applied);
    assert_int_equal(at(f, 0, true)->status->ver, FAVORITE_VER_MAX);
    assert_int_equal(fixture_partial(f, "", "pong"), 0);
}

static void a_collection_takes_only_so_many_edges(void **state)
{
    struct fixture *f = *state;

    fixture_define(f, &(struct fixture_collection){ 7, 20, "favorites", POLICY_HIGHEST, 2, false });
    assert_non_null(fixture_favorite(f, "ann", "pong"));
    assert_non_null(fixture_favorite(f, "ann", "chess"));
    assert_null(fixture_favorite(f, "ann", "doom"));
    assert_int_equal(f->error->code, ERROR(CAPACITY_FULL));
    assert_string_equal(f->error->field, "target_id");
    assert_string_equal(f->error->limit, "2");
    assert_string_equal(f->error->value, "2");
    assert_string_equal(f->error->capacity->what, "edges");
    assert_int_equal(fixture_partial(f, "", "doom"), 0);
    assert_non_null(fixture_favorite(f, "ann", "pong")); /* It stands. */
    assert_non_null(fixture_favorite(f, "bob", "doom"));
    assert_non_null(fixture_unfavorite(f, "ann", "pong"));
    assert_non_null(fixture_favorite(f, "ann", "doom"));
    fixture_define(f, &(struct fixture_collection){ 7, 30, "favorites", POLICY_HIGHEST, 1, false });
    assert_non_null(fixture_unfavorite(f, "ann", "doom")); /* Too many already. */
    assert_int_equal(fixture_partial(f, "", "doom"), 1);
}

static void an_unknown_collection_is_refused_before_the_log(void **state)
{
    struct fixture *f = *state;
    struct fixture_edge edge = { "ann", "pong", "favorits", 0, 0, false, NULL };

    assert_null(fixture_edge(f, &edge));
    assert_false(f->recorded);
    assert_int_equal(f->error->code, ERROR(NOT_FOUND));
    assert_string_equal(f->error->field, "collection");
    assert_non_null(strstr(f->error->message, "did you mean favorites?"));
    assert_int_equal(fixture_partial(f, "favorits", "pong"), UINT64_MAX);
    assert_int_equal(f->error->code, ERROR(NOT_FOUND));
    edge.collection = "Favorites";
    assert_null(fixture_edge(f, &edge));
    assert_int_equal(f->error->code, ERROR(INVALID_ARGUMENT));
    edge.collection = "pearls";
    assert_null(fixture_edge(f, &edge));
    assert_null(strstr(f->error->message, "did you mean"));
}

/* It was there when the call was checked. */
static void a_collection_that_is_deleted_meanwhile_refuses_at_apply(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__FavoriteRequest request = HOLDFAST__V1__FAVORITE_REQUEST__INIT;
    struct buf body = { 0 };

    request.player_id = text_lend("ann");
    request.op_id = fixture_op_id(f);
    request.target_id = text_lend("pong");
    assert_true(fixture_prepare(f, METHOD_FAVORITE, &request.base, &body));
    fixture_define(f, &(struct fixture_collection){ 7, 20, "favorites", POLICY_HIGHEST, 0, true });
    fixture_commit(f, buf_slice(&body));
    assert_int_equal(f->outcome.kind, OUTCOME_REFUSED);
    const Holdfast__Internal__V1__Refusal *refusal = (const void *)arena_unpack(
        &f->arena, &holdfast__internal__v1__refusal__descriptor, f->outcome.body);
    assert_int_equal(refusal->code, ERROR(NOT_FOUND));
    assert_true(refusal->final);
    buf_deinit(&body);
}

static void a_name_made_again_meets_nothing_of_its_former_life(void **state)
{
    struct fixture *f = *state;

    assert_non_null(fixture_favorite(f, "ann", "pong"));
    fixture_define(f, &(struct fixture_collection){ 7, 20, "favorites", POLICY_HIGHEST, 0, true });
    fixture_define(f, &(struct fixture_collection){ 9, 30, "favorites", POLICY_HIGHEST, 0, false });
    assert_int_equal(fixture_partial(f, "", "pong"), 0);
    assert_int_equal(fixture_status(f, "ann", "pong")->ver, 0);
    const Holdfast__V1__FavoriteResponse *response = fixture_favorite(f, "ann", "pong");
    assert_int_equal(response->status->ver, 1);
    assert_int_equal(response->edges, 1);
    assert_int_equal(fixture_partial(f, "", "pong"), 1);
}

/* Of what is gone the last thousand are remembered. */
static void what_was_gone_for_longest_is_forgotten(void **state)
{
    struct fixture *f = *state;
    char target[16];

    fixture_define_haste(f);
    assert_true(at(f, 100, true)->applied);
    for (uint32_t i = 1; i < FAVORITE_GONE_MAX; i++) {
        f->now_ms++;
        snprintf(target, sizeof target, "t%u", i);
        assert_non_null(fixture_unfavorite(f, "ann", target));
    }
    assert_int_equal(fixture_status(f, "ann", "pong")->ver, 100);
    fixture_restart(f);
    assert_non_null(fixture_unfavorite(f, "ann", "one-more"));
    assert_int_equal(fixture_status(f, "ann", "pong")->ver, 0);
    assert_int_equal(fixture_status(f, "ann", "t1")->ver, 1);
    assert_non_null(fixture_unfavorite(f, "ann", "one-more")); /* Not one more. */
    assert_int_equal(fixture_status(f, "ann", "t1")->ver, 1);
    assert_true(at(f, 1, false)->applied);
}

static void bad_fields_are_refused_before_the_log(void **state)
{
    static const char long_id[] =
        "0123456789012345678901234567890123456789012345678901234567890123"
        "01234567890123456789012345678901234567890123456789012345678901234";
    struct fixture *f = *state;
    static const char *const targets[] = { "", long_id, "\xff", "a\nb" };

    for (size_t i = 0; i < 4; i++) {
        assert_null(fixture_favorite(f, "ann", targets[i]));
        assert_false(f->recorded);
        assert_string_equal(f->error->field, "target_id");
        assert_null(fixture_status(f, "ann", targets[i]));
        assert_string_equal(f->error->field, "target_ids[0]");
    }
    assert_non_null(fixture_favorite(f, "ann", long_id + 1));
    assert_null(at(f, FAVORITE_VER_MAX + 1, false));
    assert_string_equal(f->error->field, "ver");
    assert_null(fixture_edge(f, &(struct fixture_edge){ .player = "ann",
                                                        .target = "pong",
                                                        .if_ver = FAVORITE_VER_MAX + 2 }));
    assert_string_equal(f->error->field, "if_ver");
}

/* Ids of receipts and claims are not for players to use up. */
static void an_op_id_is_a_uuid_or_a_key(void **state)
{
    struct fixture *f = *state;
    static const char *const ids[] = { "receipt:GPA.1", "claim:season-3", "match:m:1", "admin:x" };
    struct fixture_edge edge = { .player = "ann", .target = "pong", .op_id = "key:tap-1" };

    for (size_t i = 0; i < 4; i++) {
        assert_null(fixture_edge(
            f, &(struct fixture_edge){ "ann", "pong", NULL, 0, 0, i % 2 == 1, ids[i] }));
        assert_false(f->recorded);
        assert_string_equal(f->error->field, "op_id");
    }
    assert_true(fixture_edge(f, &edge)->applied);
    assert_non_null(fixture_edge(f, &edge));
    assert_true(f->outcome.duplicate);
}

static void status_and_partials_take_200_targets_each_once(void **state)
{
    struct fixture *f = *state;
    Holdfast__V1__BatchGetStatusRequest request = HOLDFAST__V1__BATCH_GET_STATUS_REQUEST__INIT;
    Holdfast__Internal__V1__GetPartialsRequest partials =
        HOLDFAST__INTERNAL__V1__GET_PARTIALS_REQUEST__INIT;
    char names[201][8];
    char *targets[201];

    for (uint32_t i = 0; i < 201; i++) {
        snprintf(names[i], sizeof names[i], "t%u", i);
        targets[i] = names[i];
    }
    assert_non_null(fixture_favorite(f, "ann", "t199"));
    request.player_id = text_lend("ann");
    request.target_ids = targets;
    request.n_target_ids = 200;
    fixture_restart(f);
    const Holdfast__V1__BatchGetStatusResponse *response =
        fixture_read(f, METHOD_BATCH_GET_STATUS, &request.base);
    assert_int_equal(response->n_statuses, 200);
    assert_true(response->statuses[199]->favorited);
    assert_false(response->statuses[0]->favorited);
    assert_string_equal(response->statuses[5]->target_id, "t5");
    partials.target_ids = targets;
    partials.n_target_ids = 200;
    fixture_restart(f);
    const Holdfast__Internal__V1__GetPartialsResponse *told =
        fixture_read(f, METHOD_GET_PARTIALS, &partials.base);
    assert_int_equal(told->n_counts, 200);
    assert_int_equal(told->counts[199], 1);
    assert_int_equal(told->counts[198], 0);
    assert_int_equal(told->at_ms, f->now_ms);
    assert_int_equal(told->collection_number, 7);
    partials.n_target_ids = 201;
    assert_null(fixture_read(f, METHOD_GET_PARTIALS, &partials.base));
    request.n_target_ids = 201;
    assert_null(fixture_read(f, METHOD_BATCH_GET_STATUS, &request.base));
    assert_string_equal(f->error->field, "target_ids");
    request.n_target_ids = 0;
    assert_null(fixture_read(f, METHOD_BATCH_GET_STATUS, &request.base));
    request.n_target_ids = 3;
    targets[2] = targets[0];
    assert_null(fixture_read(f, METHOD_BATCH_GET_STATUS, &request.base));
    assert_string_equal(f->error->field, "target_ids[2]");
}

/* Definitions that were logged under version 5 left no row of collections. */
static void definitions_of_before_are_looked_through(void **state)
{
    struct fixture *f = *state;
    struct meta *meta = (struct meta *)(uintptr_t)applier_meta(f->applier);
    const struct fixture_collection likes = { 8, 20, "likes", POLICY_HIGHEST, 0, false };
    struct row_key key;

    state_begin(applier_state(f->applier));
    row_key_collection(&key);
    state_delete(applier_state(f->applier), row_key_slice(&key));
    state_commit(applier_state(f->applier));
    meta->apply_version = FAVORITE_APPLY_VERSION - 1;
    fixture_define(f, &likes);
    assert_null(fixture_favorite(f, "ann", "pong"));
    assert_int_equal(f->error->code, ERROR(UNAVAILABLE));
    assert_false(f->recorded);
    meta->apply_version = FAVORITE_APPLY_VERSION;
    fixture_restart(f);
    assert_non_null(fixture_favorite(f, "ann", "pong"));
    assert_int_equal(fixture_partial(f, "likes", "pong"), 0);
    assert_int_equal(fixture_partial(f, "like", "pong"), UINT64_MAX);
    assert_non_null(strstr(f->error->message, "did you mean likes?"));
}

static void spoil(struct fixture *f, const struct row_key *key)
{
    struct state *rows = applier_state(f->applier);

    state_begin(rows);
    state_put(rows, row_key_slice(key), SLICE_LITERAL("?"));
    state_commit(rows);
}

static const Holdfast__V1__RepairRowResponse *repair(struct fixture *f, const struct row_key *key)
{
    Holdfast__V1__RepairRowRequest request = HOLDFAST__V1__REPAIR_ROW_REQUEST__INIT;
    char hex[2 * STATE_KEY_BYTES_MAX + 1];

    hex_print(key->bytes, key->size, hex);
    request.key = hex;
    request.reason = text_lend("rot");
    return fixture_mutate(f, METHOD_REPAIR_ROW, &request.base);
}

static void counts_and_who_favorited_are_made_again(void **state)
{
    struct fixture *f = *state;
    struct row_key partial, favorer;

    assert_non_null(fixture_favorite(f, "ann", "pong"));
    assert_non_null(fixture_favorite(f, "bob", "pong"));
    row_key_partial(&partial, 7, SLICE_LITERAL("pong"));
    spoil(f, &partial);
    assert_int_equal(fixture_partial(f, "", "pong"), UINT64_MAX);
    assert_null(fixture_unfavorite(f, "ann", "pong"));
    assert_int_equal(f->error->code, ERROR(QUARANTINED));
    assert_non_null(repair(f, &partial));
    assert_int_equal(fixture_partial(f, "", "pong"), 2);
    row_key_favorer_prefix(&favorer, 7, SLICE_LITERAL("pong"));
    row_key_favorer_add(&favorer, SLICE_LITERAL("player:ann"));
    spoil(f, &favorer);
    assert_non_null(repair(f, &favorer));
    row_key_partial(&partial, 7, SLICE_LITERAL("chess"));
    spoil(f, &partial); /* There is nothing to count. */
    assert_int_equal(repair(f, &partial)->row->outcome,
                     HOLDFAST__V1__REPAIR_OUTCOME__REPAIR_OUTCOME_DROPPED);
    assert_null(repair(f, &favorer)); /* It can be read. */
}

static void a_repetition_gets_its_answer_after_the_collection_is_deleted(void **state)
{
    struct fixture *f = *state;
    const struct fixture_edge edge = { .player = "ann", .target = "pong", .op_id = "key:once" };

    assert_non_null(fixture_favorite(f, "bob", "pong"));
    assert_non_null(fixture_edge(f, &edge));
    fixture_define(f, &(struct fixture_collection){
                          .number = 7, .revision = 30, .name = "favorites", .deleted = true });
    for (uint32_t i = 0; i < 2; i++) {
        assert_non_null(fixture_edge(f, &edge));
        assert_true(f->outcome.duplicate);
        fixture_restart(f);
    }
    assert_null(fixture_favorite(f, "ann", "chess")); /* Definitions are in memory again. */
    f->now_ms++;
    assert_null(fixture_favorite(f, "ann", "chess"));
    assert_int_equal(f->error->code, ERROR(NOT_FOUND));
    assert_false(f->recorded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        EDGE_TEST(an_edge_and_its_count_change_together),
        EDGE_TEST(a_favorite_that_stands_is_not_counted_again),
        EDGE_TEST(a_repetition_finds_the_outcome),
        EDGE_TEST(a_repetition_gets_its_answer_after_the_collection_is_deleted),
        EDGE_TEST(a_call_with_a_lower_ver_changes_nothing),
        EDGE_TEST(an_unfavorite_of_no_edge_keeps_a_late_favorite_away),
        EDGE_TEST(the_last_write_wins_where_the_collection_says_so),
        EDGE_TEST(an_if_ver_compares),
        EDGE_TEST(the_highest_ver_is_the_last_one),
        EDGE_TEST(a_collection_takes_only_so_many_edges),
        EDGE_TEST(an_unknown_collection_is_refused_before_the_log),
        EDGE_TEST(a_collection_that_is_deleted_meanwhile_refuses_at_apply),
        EDGE_TEST(a_name_made_again_meets_nothing_of_its_former_life),
        EDGE_TEST(what_was_gone_for_longest_is_forgotten),
        EDGE_TEST(bad_fields_are_refused_before_the_log),
        EDGE_TEST(an_op_id_is_a_uuid_or_a_key),
        EDGE_TEST(status_and_partials_take_200_targets_each_once),
        EDGE_TEST(definitions_of_before_are_looked_through),
        EDGE_TEST(counts_and_who_favorited_are_made_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
